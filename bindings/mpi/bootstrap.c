/* Creation of a shadow. All ranks execute the same sequence of steps, even after a failure of one of them. A step is an
 * all-reduce of bits by AND. One bit says that nothing has failed; the others are the calls to take over. There is a
 * step before each round of gyre's exchange, and one at the end. A rank whose gyre_comm_create fails executes one more
 * step with the first bit cleared, so the other ranks learn of the failure. */
#include "bootstrap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "library.h"
#include "progress.h"

#define WELL (1u << GM_CALLS)
#define NEAR (1u << (GM_CALLS + 1)) /* used in the last step only */
#define SECRET_BYTES 16
#define TIMEOUT "1000000"

struct bootstrap {
    struct gm_shadow *shadow;
    bool failed; /* a step has reported a failure of a rank */
};

static bool step(struct bootstrap *bootstrap, bool well)
{
    unsigned mine = well ? bootstrap->shadow->mask | WELL : 0, all = 0;
    if (bootstrap->failed)
        return false;
    if (gm_library.Allreduce(&mine, &all, 1, MPI_UNSIGNED, MPI_BAND, bootstrap->shadow->mpi) != MPI_SUCCESS)
        all = 0;
    bootstrap->failed = !(all & WELL);
    bootstrap->shadow->mask = all & ~WELL;
    return !bootstrap->failed;
}

/* The callback gyre_exchange_func. */
static int exchange(void *user, const void *mine, void *all, size_t bytes)
{
    struct bootstrap *bootstrap = user;
    if (!step(bootstrap, true))
        return 1;
    return gm_library.Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, bootstrap->shadow->mpi) !=
           MPI_SUCCESS;
}

/* Rank 0 generates a secret for all ranks and broadcasts it by MPI, with the protection that the program's own data
 * have. `text` is empty on every rank if there were no random bytes. */
static void draw_secret(const struct gm_shadow *shadow, char text[2 * SECRET_BYTES + 1])
{
    unsigned char random[SECRET_BYTES];
    memset(text, 0, 2 * SECRET_BYTES + 1);
    if (shadow->rank == 0 && getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random))
        for (int i = 0; i < SECRET_BYTES; i++)
            snprintf(text + 2 * i, 3, "%02x", random[i]);
    explicit_bzero(random, sizeof(random));
    gm_library.Bcast(text, 2 * SECRET_BYTES + 1, MPI_CHAR, 0, shadow->mpi);
}

static bool is_set(const char *name)
{
    const char *text = getenv(name);
    return text && *text;
}

static bool secret_is_given;

static void look_for_secret(void)
{
    secret_is_given = is_set("GYRE_SECRET") || is_set("GYRE_SECRET_FILE");
}

/* True if the environment sets a secret, which gyre then reads itself. The first world removes it from the environment,
 * so the environment is read once. */
static bool has_secret(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_for_secret);
    return secret_is_given;
}

static bool create(struct bootstrap *bootstrap, const char *secret)
{
    struct gm_shadow *shadow = bootstrap->shadow;
    const gyre_config config = {.size = sizeof(config),
                                .rank = shadow->rank,
                                .world_size = shadow->size,
                                .secret = *secret && !has_secret() ? secret : NULL,
                                .exchange = exchange,
                                .exchange_user = bootstrap};
    if (gyre_comm_create(&config, &shadow->comm) == GYRE_SUCCESS)
        return true;
    fprintf(stderr, "gyre-mpi: rank %d: calls are left to MPI: %s\n", shadow->rank, gyre_last_error(NULL));
    shadow->comm = NULL;
    return false;
}

/* MPI does not limit how late a rank may call; gyre's default timeout is replaced by a long one. */
static void wait_for_late_ranks(struct gm_shadow *shadow)
{
    if (!getenv("GYRE_TIMEOUT"))
        gyre_comm_set(shadow->comm, "timeout", TIMEOUT);
}

/* Returns the largest communicator for which short calls use all_gather and all_reduce (short.h). Ranks that share a
 * core gain nothing: a rooted call of gyre lets a rank return before the others have called. */
static long near_ranks(void)
{
    static atomic_flag reported = ATOMIC_FLAG_INIT;
    const char *text = getenv("GYREMPI_NEAR");
    char *end = NULL;
    long processors = sysconf(_SC_NPROCESSORS_ONLN), most = text ? strtol(text, &end, 10) : 0;
    if (text && end != text && *end == '\0' && most >= 0)
        return most;
    if (text && !atomic_flag_test_and_set(&reported))
        fprintf(stderr, "gyre-mpi: GYREMPI_NEAR: '%.32s' is no number of ranks\n", text);
    return processors < 8 ? processors : 8;
}

static bool is_near(const struct gm_shadow *shadow)
{
    gyre_rank_place place = {.size = sizeof(place)};
    for (int rank = 0; rank < shadow->size; rank++)
        if (rank != shadow->rank &&
            (gyre_comm_topology(shadow->comm, rank, &place) != GYRE_SUCCESS || strcmp(place.transport, "shm") != 0))
            return false;
    return shadow->size <= near_ranks();
}

void gm_bootstrap_run(struct gm_shadow *shadow, bool ready)
{
    struct bootstrap bootstrap = {shadow, false};
    char secret[2 * SECRET_BYTES + 1];

    shadow->mask = gm_call_mask(getenv("GYREMPI_PASS"));
    if (!step(&bootstrap, ready))
        return;
    draw_secret(shadow, secret);
    bool created = create(&bootstrap, secret);
    explicit_bzero(secret, sizeof(secret));
    shadow->mask |= created && is_near(shadow) ? NEAR : 0;
    if (step(&bootstrap, created)) {
        shadow->near = shadow->mask & NEAR;
        wait_for_late_ranks(shadow);
        gm_progress_begin(&shadow->idle);
    } else if (created) {
        gyre_comm_destroy(shadow->comm);
        shadow->comm = NULL;
    }
}
