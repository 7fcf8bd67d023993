/* PMIx, by run-time loading: Open MPI's mpirun, PRRTE's prterun, Slurm's srun --mpi=pmix. Their server, one per host,
 * keeps a key-value space for the job.
 *
 *   PMIx_Init ─▶ PMIx_Get(job size) ▶ [ PMIx_Put, PMIx_Commit ─▶ PMIx_Fence ─▶ PMIx_Get of all ranks ] ─▶ PMIx_Finalize
 *                                        once per round of bootstrap
 *
 * libpmix runs a thread of its own between Init and Finalize, so it is finalised as soon as bootstrap is over. A
 * program that uses PMIx itself (through MPI) is not disturbed: the library counts its users.
 *
 * The declarations are those of the PMIx standard (version 4, sections 3.2 and B.1), unchanged in its library since
 * version 2; only the names used here are declared. The waits of the library have no time limit. So the waits for other
 * ranks are started with a callback, and the memory that the callback writes outlives a missed deadline. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bootstrap/launcher.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"

#define LIBRARY "libpmix.so.2"
#define EVERYBODY (UINT32_MAX - 1) /* PMIX_RANK_WILDCARD: of the job as a whole */

enum { GLOBAL = 3 };                                                         /* scope */
enum { OVER_ALREADY = -157 };                                                /* PMIX_OPERATION_SUCCEEDED: at once */
enum { TYPE_BOOL = 1, TYPE_UINT16 = 13, TYPE_UINT32 = 14, TYPE_BYTES = 27 }; /* of a value */

struct process {
    char space[256];
    uint32_t rank;
};

struct value {
    uint16_t type;
    union {
        bool flag;
        uint16_t number16;
        uint32_t number32;
        struct {
            char *bytes;
            size_t size;
        } object;
        uint64_t room[4]; /* no member of the standard's is larger than its pair of pointers and two words */
    } data;
};

struct info {
    char key[512];
    uint32_t flags;
    struct value value;
};

typedef void (*done_func)(int status, void *user);

static struct {
    int (*init)(struct process *process, struct info *info, size_t infos);
    int (*finalize)(const struct info *info, size_t infos);
    int (*put)(uint8_t scope, const char *key, struct value *value);
    int (*commit)(void);
    int (*fence_nb)(const struct process *who, size_t count, const struct info *info, size_t infos, done_func done,
                    void *user);
    int (*get)(const struct process *who, const char *key, const struct info *info, size_t infos,
               struct value **value_p);
    const char *(*error_string)(int status);
} pmix;

/* Of one world that is being made. */
struct meeting {
    struct process own;
    int size;
    unsigned world, round; /* in the keys: worlds of this process so far, and exchanges of this one */
    int64_t deadline;
    struct gy_error *error;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards `pmix` while it is filled, and `worlds` */
static unsigned worlds;                                  /* made through PMIx: keys are used once */

static bool load(struct gy_error *error)
{
    static const struct {
        const char *name;
        void *function;
    } needed[] = {{"PMIx_Init", &pmix.init},
                  {"PMIx_Finalize", &pmix.finalize},
                  {"PMIx_Put", &pmix.put},
                  {"PMIx_Commit", &pmix.commit},
                  {"PMIx_Fence_nb", &pmix.fence_nb},
                  {"PMIx_Get", &pmix.get},
                  {"PMIx_Error_string", &pmix.error_string}};
    void *library;
    bool good = true;

    pthread_mutex_lock(&lock);
    library = pmix.error_string ? NULL
                                : dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL); /* stays: it is not made to be unloaded */
    if (!library && !pmix.error_string) {
        gy_error_set(error, GYRE_MEETING_FAILED, -1,
                     "the ranks would meet through PMIx, but its library cannot be loaded (%s): install it (Debian: "
                     "libpmix2), or set GYRE_ADDRESS=tcp://HOST:PORT on every rank",
                     dlerror());
        good = false;
    }
    for (size_t i = 0; library && good && i < GY_ARRAY_LENGTH(needed); i++) {
        void *function = dlsym(library, needed[i].name);

        memcpy(needed[i].function, &function, sizeof(function));
        if (!function) {
            gy_error_set(error, GYRE_MEETING_FAILED, -1,
                         "%s has no function %s; set GYRE_ADDRESS=tcp://HOST:PORT on every rank", LIBRARY,
                         needed[i].name);
            memset(&pmix, 0, sizeof(pmix));
            good = false;
        }
    }
    pthread_mutex_unlock(&lock);
    return good;
}

static bool fail(struct meeting *meeting, const char *what, int status)
{
    gy_error_set(
        meeting->error, GYRE_MEETING_FAILED, -1,
        "rank %u cannot meet the others through PMIx: %s gave %s (%d); set GYRE_ADDRESS=tcp://HOST:PORT on every "
        "rank to meet without it",
        meeting->own.rank, what, pmix.error_string(status), status);
    return false;
}

/* A number about this process, or about its job; what libpmix allocated is freed. */
static bool get_number(struct meeting *meeting, const char *key, uint32_t rank, uint32_t *number_p)
{
    struct process who = meeting->own;
    /* After the fence it is there, or never: the server is not to wait for it. */
    struct info now = {.key = "pmix.immediate", .value = {.type = TYPE_BOOL, .data.flag = true}};
    struct value *value = NULL;
    int status;

    who.rank = rank;
    status = pmix.get(&who, key, &now, 1, &value);
    if (status != 0 || !value)
        return false;
    *number_p = value->type == TYPE_UINT16 ? value->data.number16 : value->data.number32;
    status = value->type == TYPE_UINT16 || value->type == TYPE_UINT32 ? 0 : -1;
    free(value);
    return status == 0;
}

static void end(void *user)
{
    pmix.finalize(NULL, 0);
    gy_free(user);
}

static gyre_status begin(struct gy_identity *identity, const struct gy_config *config, struct gy_error *error)
{
    struct meeting *meeting;
    int status;

    if (!load(error))
        return error->status;
    meeting = gy_alloc_zero(1, sizeof(*meeting));
    if (!meeting)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory to meet through PMIx");
    meeting->error = error;
    meeting->own.rank = (uint32_t)identity->rank;
    meeting->deadline = gy_now() + config->meet_timeout_ns;
    status = pmix.init(&meeting->own, NULL, 0);
    if (status != 0) {
        fail(meeting, "PMIx_Init", status);
        gy_free(meeting);
        return error->status;
    }
    identity->exchange_user = meeting;
    identity->exchange_end = end;
    if (meeting->own.rank != (uint32_t)identity->rank)
        return gy_error_set(
            error, GYRE_BAD_CONFIGURATION, -1,
            "PMIx says that this is rank %u, %s says %d: one of them was left over from another launcher",
            meeting->own.rank, identity->launcher->rank, identity->rank);
    return GYRE_SUCCESS;
}

/* Nothing but PMIx itself knows how many ranks there are. */
static gyre_status ask(struct gy_identity *identity, const struct gy_config *config, struct gy_error *error)
{
    uint32_t number;
    gyre_status status = begin(identity, config, error);

    if (status != GYRE_SUCCESS)
        return status;
    if (!get_number(identity->exchange_user, "pmix.job.size", EVERYBODY, &number) || number > INT32_MAX)
        return gy_error_set(error, GYRE_MEETING_FAILED, -1,
                            "rank %d: PMIx does not say how many ranks there are (pmix.job.size); set GYRE_LAUNCHER",
                            identity->rank);
    identity->size = (int)number;
    if (get_number(identity->exchange_user, "pmix.lrank", (uint32_t)identity->rank, &number))
        identity->local_rank = (int)number;
    return GYRE_SUCCESS;
}

/* ---- one round ---- */

/* Shared by the waiting thread and the thread of libpmix; the last of them frees it. */
struct fence {
    sem_t done;
    int status;
    _Atomic int users;
};

static void leave_fence(struct fence *fence)
{
    if (--fence->users > 0)
        return;
    sem_destroy(&fence->done);
    gy_free(fence);
}

static void on_fence(int status, void *user)
{
    struct fence *fence = user;

    fence->status = status;
    sem_post(&fence->done);
    leave_fence(fence);
}

static bool await(struct fence *fence, int64_t deadline)
{
    const struct timespec until = {.tv_sec = deadline / GY_SECOND, .tv_nsec = deadline % GY_SECOND};

    while (sem_clockwait(&fence->done, CLOCK_MONOTONIC, &until) != 0)
        if (errno != EINTR)
            return false;
    return true;
}

/* When all ranks have passed the fence, the parts of all ranks are at every server. */
static bool bootstrap(struct meeting *meeting)
{
    struct fence *fence = gy_alloc_zero(1, sizeof(*fence));
    struct info collect = {.key = "pmix.collect", .value = {.type = TYPE_BOOL, .data.flag = true}};
    struct process all = meeting->own;
    bool came;
    int status;

    if (!fence || sem_init(&fence->done, 0, 0) != 0) {
        gy_free(fence);
        gy_error_set(meeting->error, GYRE_NO_MEMORY, -1, "no memory to meet through PMIx");
        return false;
    }
    all.rank = EVERYBODY;
    fence->users = 2;
    status = pmix.fence_nb(&all, 1, &collect, 1, on_fence, fence);
    if (status != 0) { /* no callback will come */
        leave_fence(fence);
        leave_fence(fence);
        return status == OVER_ALREADY || fail(meeting, "PMIx_Fence", status);
    }
    came = await(fence, meeting->deadline);
    status = came ? fence->status : 0;
    leave_fence(fence);
    if (!came)
        gy_error_set(meeting->error, GYRE_MEETING_FAILED, -1,
                     "rank %u waited in PMIx for the other ranks, and some did not come to the meeting in time "
                     "(GYRE_MEET_TIMEOUT); does every process of the job call gyre_comm_create?",
                     meeting->own.rank);
    return came && (status == 0 || fail(meeting, "PMIx_Fence", status));
}

static bool get_part(struct meeting *meeting, const char *key, int rank, uint8_t *part_p, size_t bytes)
{
    struct process who = meeting->own;
    struct value *value = NULL;
    int status;
    bool good;

    who.rank = (uint32_t)rank;
    status = pmix.get(&who, key, NULL, 0, &value);
    if (status != 0 || !value)
        return fail(meeting, "PMIx_Get", status);
    good = value->type == TYPE_BYTES && value->data.object.size == bytes;
    if (good)
        memcpy(part_p, value->data.object.bytes, bytes);
    if (value->type == TYPE_BYTES)
        free(value->data.object.bytes);
    free(value);
    if (!good)
        gy_error_set(meeting->error, GYRE_PROTOCOL, rank, "rank %d left something in PMIx that is not gyre's", rank);
    return good;
}

/* As gyre_exchange_func. */
static int exchange(void *user, const void *mine, void *all, size_t bytes)
{
    struct meeting *meeting = user;
    struct value value = {.type = TYPE_BYTES};
    uint8_t *copy = gy_alloc(bytes); /* libpmix wants to be able to write it */
    char key[64];
    int status;
    bool good = copy != NULL;

    snprintf(key, sizeof(key), "gyre-%u-%u", meeting->world, meeting->round++);
    if (good) {
        memcpy(copy, mine, bytes);
        value.data.object.bytes = (char *)copy;
        value.data.object.size = bytes;
        status = pmix.put(GLOBAL, key, &value);
        good = status == 0 || fail(meeting, "PMIx_Put", status);
    }
    if (good) {
        status = pmix.commit();
        good = status == 0 || fail(meeting, "PMIx_Commit", status);
    }
    gy_free(copy);
    good = good && bootstrap(meeting);
    for (int rank = 0; good && rank < meeting->size; rank++)
        good = get_part(meeting, key, rank, (uint8_t *)all + (size_t)rank * bytes, bytes);
    return good ? 0 : -1;
}

static gyre_status place(struct gy_identity *identity, const struct gy_config *config, struct gy_error *error)
{
    gyre_status status = GYRE_SUCCESS;
    struct meeting *meeting;

    if (!identity->exchange_user)
        status = begin(identity, config, error);
    meeting = identity->exchange_user;
    if (status != GYRE_SUCCESS || !meeting)
        return status;
    meeting->size = identity->size;
    pthread_mutex_lock(&lock);
    meeting->world = ++worlds;
    pthread_mutex_unlock(&lock);
    identity->exchange = exchange;
    snprintf(identity->address_from, sizeof(identity->address_from), "PMIx");
    return GYRE_SUCCESS;
}

const struct gy_launcher gy_launcher_pmix = {
    .name = "pmix",
    .program = "prterun, or srun --mpi=pmix",
    .rank = "PMIX_RANK",
    .local = "PMIX_LOCAL_RANK", /* never set; `ask` finds out */
    .run = {"PMIX_NAMESPACE"},
    .inner = "PMIX_RANK",
    .ask = ask,
    .place = place,
};

/* Open MPI's mpirun has variables of its own beside those of its PMIx server. */
const struct gy_launcher gy_launcher_openmpi = {
    .name = "openmpi",
    .program = "Open MPI's mpirun",
    .rank = "OMPI_COMM_WORLD_RANK",
    .size = "OMPI_COMM_WORLD_SIZE",
    .local = "OMPI_COMM_WORLD_LOCAL_RANK",
    .run = {"PMIX_NAMESPACE"},
    .inner = "OMPI_COMM_WORLD_RANK",
    .place = place,
};
