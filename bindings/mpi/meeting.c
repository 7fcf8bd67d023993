/* Every rank takes the same steps, whatever fails where. A step is an AND over all ranks: of a bit that says that
 * nothing has failed, and of the calls that are to be taken over. There is one before each round of gyre's exchange and
 * one at the end. A rank whose gyre_comm_create fails by itself takes one more step, with the answer no, in which the
 * others learn of it. */
#include "meeting.h"

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
#define NEAR (1u << (GM_CALLS + 1)) /* in the last step */
#define SECRET_BYTES 16
#define TIMEOUT "1000000"

struct meeting {
    struct gm_twin *twin;
    bool failed; /* a step has said so */
};

static bool step(struct meeting *meeting, bool well)
{
    unsigned mine = well ? meeting->twin->mask | WELL : 0, all = 0;
    if (meeting->failed)
        return false;
    if (gm_library.Allreduce(&mine, &all, 1, MPI_UNSIGNED, MPI_BAND, meeting->twin->mpi) != MPI_SUCCESS)
        all = 0;
    meeting->failed = !(all & WELL);
    meeting->twin->mask = all & ~WELL;
    return !meeting->failed;
}

/* As gyre_exchange_func says. */
static int exchange(void *user, const void *mine, void *all, size_t bytes)
{
    struct meeting *meeting = user;
    if (!step(meeting, true))
        return 1;
    return gm_library.Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, meeting->twin->mpi) !=
           MPI_SUCCESS;
}

/* Rank 0 draws a secret for all ranks. It travels as the program's own data do. `text` is empty on every rank when none
 * could be drawn. */
static void draw_secret(const struct gm_twin *twin, char text[2 * SECRET_BYTES + 1])
{
    unsigned char random[SECRET_BYTES];
    memset(text, 0, 2 * SECRET_BYTES + 1);
    if (twin->rank == 0 && getrandom(random, sizeof(random), 0) == (ssize_t)sizeof(random))
        for (int i = 0; i < SECRET_BYTES; i++)
            snprintf(text + 2 * i, 3, "%02x", random[i]);
    explicit_bzero(random, sizeof(random));
    gm_library.Bcast(text, 2 * SECRET_BYTES + 1, MPI_CHAR, 0, twin->mpi);
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

/* A secret of the environment is gyre's to read. The first world takes it out, so that it is looked for once. */
static bool has_secret(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, look_for_secret);
    return secret_is_given;
}

static bool create(struct meeting *meeting, const char *secret)
{
    struct gm_twin *twin = meeting->twin;
    const gyre_config config = {.size = sizeof(config),
                                .rank = twin->rank,
                                .world_size = twin->size,
                                .secret = *secret && !has_secret() ? secret : NULL,
                                .exchange = exchange,
                                .exchange_user = meeting};
    if (gyre_comm_create(&config, &twin->comm) == GYRE_SUCCESS)
        return true;
    fprintf(stderr, "gyre-mpi: rank %d: calls are left to MPI: %s\n", twin->rank, gyre_last_error(NULL));
    twin->comm = NULL;
    return false;
}

/* MPI has no limit of the time that a rank may come late, and gyre has one. */
static void wait_for_late_ranks(struct gm_twin *twin)
{
    if (!getenv("GYRE_TIMEOUT"))
        gyre_comm_set(twin->comm, "timeout", TIMEOUT);
}

/* The largest communicator whose ranks are near. Ranks that share a core are not: there gyre's calls with a root let it
 * go on without the others. */
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

static bool is_near(const struct gm_twin *twin)
{
    gyre_rank_place place = {.size = sizeof(place)};
    for (int rank = 0; rank < twin->size; rank++)
        if (rank != twin->rank &&
            (gyre_comm_topology(twin->comm, rank, &place) != GYRE_SUCCESS || strcmp(place.transport, "shm") != 0))
            return false;
    return twin->size <= near_ranks();
}

void gm_meeting_hold(struct gm_twin *twin, bool ready)
{
    struct meeting meeting = {twin, false};
    char secret[2 * SECRET_BYTES + 1];

    twin->mask = gm_call_mask(getenv("GYREMPI_PASS"));
    if (!step(&meeting, ready))
        return;
    draw_secret(twin, secret);
    bool created = create(&meeting, secret);
    explicit_bzero(secret, sizeof(secret));
    twin->mask |= created && is_near(twin) ? NEAR : 0;
    if (step(&meeting, created)) {
        twin->near = twin->mask & NEAR;
        wait_for_late_ranks(twin);
        gm_progress_begin(&twin->idle);
    } else if (created) {
        gyre_comm_destroy(twin->comm);
        twin->comm = NULL;
    }
}
