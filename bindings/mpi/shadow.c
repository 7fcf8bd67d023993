#include "shadow.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bootstrap.h"
#include "progress.h"
#include "report.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and the keys */
static struct gm_shadow *first;
static int shadow_key = MPI_KEYVAL_INVALID; /* attribute of each communicator: its shadow */
static int end_key = MPI_KEYVAL_INVALID;    /* attribute of MPI_COMM_SELF, which MPI_Finalize deletes first */

/* Cache: the last communicator of this thread and its shadow. MPI may reuse the handle of a communicator that has been
 * freed. The cache is therefore valid only while the number of shadows that have ended is the same. */
static atomic_uint ended;
static _Thread_local struct {
    MPI_Comm mpi;
    struct gm_shadow *shadow;
    unsigned ended;
} last __attribute__((tls_model("initial-exec"))); /* the interposer is loaded when the program starts */

/* Destroys the gyre communicator and keeps the shadow. Later calls are left to the MPI library. */
static void end(struct gm_shadow *shadow)
{
    if (!shadow->comm)
        return;
    gyre_comm_destroy(shadow->comm);
    shadow->comm = NULL;
    gm_progress_end(&shadow->idle);
    gm_report_add(shadow->taken);
}

static void unlink_shadow(const struct gm_shadow *shadow)
{
    struct gm_shadow **place = &first;
    while (*place && *place != shadow)
        place = &(*place)->next;
    if (*place)
        *place = shadow->next;
}

static int delete_shadow(MPI_Comm comm, int keyval, void *value, void *state)
{
    struct gm_shadow *shadow = value;
    (void)comm, (void)keyval, (void)state;
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&ended, 1);
    unlink_shadow(shadow);
    end(shadow);
    pthread_mutex_unlock(&lock);
    free(shadow->lists);
    free(shadow);
    return MPI_SUCCESS;
}

static int delete_end(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm, (void)keyval, (void)value, (void)state;
    pthread_mutex_lock(&lock);
    for (struct gm_shadow *shadow = first; shadow; shadow = shadow->next)
        end(shadow);
    pthread_mutex_unlock(&lock);
    gm_report_print();
    return MPI_SUCCESS;
}

/* Creates the keys once per process. The attribute of MPI_COMM_SELF ends all shadows in MPI_Finalize, whichever way the
 * program calls it. */
static bool make_keys(void)
{
    bool made;
    pthread_mutex_lock(&lock);
    if (shadow_key == MPI_KEYVAL_INVALID &&
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_end, &end_key, NULL) == MPI_SUCCESS &&
        PMPI_Comm_set_attr(MPI_COMM_SELF, end_key, NULL) == MPI_SUCCESS)
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_shadow, &shadow_key, NULL);
    made = shadow_key != MPI_KEYVAL_INVALID;
    pthread_mutex_unlock(&lock);
    return made;
}

static bool allocate(struct gm_shadow *shadow)
{
    shadow->lists = calloc((size_t)shadow->size * GM_LISTS, sizeof(*shadow->lists));
    return shadow->lists != NULL;
}

/* Communicators of one rank and inter-communicators have no gyre communicator: their calls are left to the MPI
 * library. */
static bool may_have_comm(struct gm_shadow *shadow)
{
    int is_inter = 1;
    if (PMPI_Comm_test_inter(shadow->mpi, &is_inter) != MPI_SUCCESS || is_inter)
        return false;
    PMPI_Comm_size(shadow->mpi, &shadow->size);
    PMPI_Comm_rank(shadow->mpi, &shadow->rank);
    return shadow->size > 1;
}

static struct gm_shadow *make(MPI_Comm comm)
{
    struct gm_shadow *shadow = calloc(1, sizeof(*shadow));
    if (!shadow) { /* the other ranks would wait for this one for ever */
        fputs("gyre-mpi: no memory for a communicator; the process ends\n", stderr);
        abort();
    }
    shadow->mpi = comm;
    shadow->idle = MPI_REQUEST_NULL;
    if (may_have_comm(shadow))
        gm_bootstrap_run(shadow, allocate(shadow));
    pthread_mutex_lock(&lock);
    shadow->next = first;
    first = shadow;
    pthread_mutex_unlock(&lock);
    PMPI_Comm_set_attr(comm, shadow_key, shadow);
    return shadow;
}

static struct gm_shadow *look_up(MPI_Comm comm)
{
    struct gm_shadow *shadow = NULL;
    int found = 0;
    if (comm == MPI_COMM_NULL || !make_keys() || PMPI_Comm_get_attr(comm, shadow_key, &shadow, &found) != MPI_SUCCESS)
        return NULL;
    return found ? shadow : make(comm);
}

static struct gm_shadow *shadow_of(MPI_Comm comm)
{
    unsigned now = atomic_load_explicit(&ended, memory_order_acquire);
    if (last.shadow && last.mpi == comm && last.ended == now)
        return last.shadow;
    struct gm_shadow *shadow = look_up(comm);
    last.mpi = comm;
    last.shadow = shadow;
    last.ended = now;
    return shadow;
}

struct gm_shadow *gm_shadow_find(MPI_Comm comm, enum gm_call call)
{
    struct gm_shadow *shadow = shadow_of(comm);
    return shadow && shadow->comm && (shadow->mask >> call & 1) ? shadow : NULL;
}
