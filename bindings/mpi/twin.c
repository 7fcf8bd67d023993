#include "twin.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "meeting.h"
#include "progress.h"
#include "report.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list, and of what is made once */
static struct gm_twin *first;
static int twin_key = MPI_KEYVAL_INVALID; /* of each communicator: its twin */
static int end_key = MPI_KEYVAL_INVALID;  /* of MPI_COMM_SELF: MPI_Finalize deletes it first of all */

/* The last communicator of this thread and its twin. A handle may be given to another communicator when its
 * communicator has been freed; the number of twins that have ended says whether that may have happened. */
static atomic_uint ended;
static _Thread_local struct {
    MPI_Comm mpi;
    struct gm_twin *twin;
    unsigned ended;
} last __attribute__((tls_model("initial-exec"))); /* the interposer is loaded at the start */

/* The communicator of gyre ends, the twin stays: its calls are left to the MPI library from then on. */
static void end(struct gm_twin *twin)
{
    if (!twin->comm)
        return;
    gyre_comm_destroy(twin->comm);
    twin->comm = NULL;
    gm_progress_end(&twin->idle);
    gm_report_add(twin->taken);
}

static void unlink_twin(const struct gm_twin *twin)
{
    struct gm_twin **place = &first;
    while (*place && *place != twin)
        place = &(*place)->next;
    if (*place)
        *place = twin->next;
}

static int delete_twin(MPI_Comm comm, int keyval, void *value, void *state)
{
    struct gm_twin *twin = value;
    (void)comm, (void)keyval, (void)state;
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&ended, 1);
    unlink_twin(twin);
    end(twin);
    pthread_mutex_unlock(&lock);
    free(twin->lists);
    free(twin);
    return MPI_SUCCESS;
}

static int delete_end(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm, (void)keyval, (void)value, (void)state;
    pthread_mutex_lock(&lock);
    for (struct gm_twin *twin = first; twin; twin = twin->next)
        end(twin);
    pthread_mutex_unlock(&lock);
    gm_report_print();
    return MPI_SUCCESS;
}

/* Once per process. The attribute of MPI_COMM_SELF ends all twins in MPI_Finalize, however a program calls that. */
static bool make_keys(void)
{
    bool made;
    pthread_mutex_lock(&lock);
    if (twin_key == MPI_KEYVAL_INVALID &&
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_end, &end_key, NULL) == MPI_SUCCESS &&
        PMPI_Comm_set_attr(MPI_COMM_SELF, end_key, NULL) == MPI_SUCCESS)
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_twin, &twin_key, NULL);
    made = twin_key != MPI_KEYVAL_INVALID;
    pthread_mutex_unlock(&lock);
    return made;
}

static bool allocate(struct gm_twin *twin)
{
    twin->lists = calloc((size_t)twin->size * GM_LISTS, sizeof(*twin->lists));
    return twin->lists != NULL;
}

/* Communicators of one rank need no messages, and those with a remote group have no twin. */
static bool may_have_comm(struct gm_twin *twin)
{
    int is_inter = 1;
    if (PMPI_Comm_test_inter(twin->mpi, &is_inter) != MPI_SUCCESS || is_inter)
        return false;
    PMPI_Comm_size(twin->mpi, &twin->size);
    PMPI_Comm_rank(twin->mpi, &twin->rank);
    return twin->size > 1;
}

static struct gm_twin *make(MPI_Comm comm)
{
    struct gm_twin *twin = calloc(1, sizeof(*twin));
    if (!twin) { /* the other ranks would wait for this one */
        fputs("gyre-mpi: no memory for a communicator; the process ends\n", stderr);
        abort();
    }
    twin->mpi = comm;
    twin->idle = MPI_REQUEST_NULL;
    if (may_have_comm(twin))
        gm_meeting_hold(twin, allocate(twin));
    pthread_mutex_lock(&lock);
    twin->next = first;
    first = twin;
    pthread_mutex_unlock(&lock);
    PMPI_Comm_set_attr(comm, twin_key, twin);
    return twin;
}

static struct gm_twin *look_up(MPI_Comm comm)
{
    struct gm_twin *twin = NULL;
    int found = 0;
    if (comm == MPI_COMM_NULL || !make_keys() || PMPI_Comm_get_attr(comm, twin_key, &twin, &found) != MPI_SUCCESS)
        return NULL;
    return found ? twin : make(comm);
}

static struct gm_twin *twin_of(MPI_Comm comm)
{
    unsigned now = atomic_load_explicit(&ended, memory_order_acquire);
    if (last.twin && last.mpi == comm && last.ended == now)
        return last.twin;
    struct gm_twin *twin = look_up(comm);
    last.mpi = comm;
    last.twin = twin;
    last.ended = now;
    return twin;
}

struct gm_twin *gm_twin_find(MPI_Comm comm, enum gm_call call)
{
    struct gm_twin *twin = twin_of(comm);
    return twin && twin->comm && (twin->mask >> call & 1) ? twin : NULL;
}
