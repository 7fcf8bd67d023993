#include "failure.h"

#include <pthread.h>
#include <stdio.h>

/* The error code whose text is the sentence of the last failure. MPICH 4.0 adds no text to a code of a predefined
 * class: its MPI_Error_string prints whatever message of its own has the same number. There the code is the class, and
 * the sentence is on standard error only. */
static int code_with_text(const char *sentence)
{
#ifdef MPICH_VERSION
    (void)sentence;
    return MPI_ERR_OTHER;
#else
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int added = MPI_ERR_OTHER;
    char text[MPI_MAX_ERROR_STRING];
    snprintf(text, sizeof(text), "%s", sentence);
    pthread_mutex_lock(&lock);
    if (added == MPI_ERR_OTHER && PMPI_Add_error_code(MPI_ERR_OTHER, &added) != MPI_SUCCESS)
        added = MPI_ERR_OTHER;
    if (added != MPI_ERR_OTHER)
        PMPI_Add_error_string(added, text);
    pthread_mutex_unlock(&lock);
    return added;
#endif
}

static int code_of(gyre_status status, const char *sentence)
{
#if defined(MPI_ERR_PROC_FAILED)
    if (status == GYRE_PEER_DEAD || status == GYRE_PEER_UNREACHABLE)
        return MPI_ERR_PROC_FAILED;
#elif defined(MPIX_ERR_PROC_FAILED)
    if (status == GYRE_PEER_DEAD || status == GYRE_PEER_UNREACHABLE)
        return MPIX_ERR_PROC_FAILED;
#else
    (void)status;
#endif
    return code_with_text(sentence);
}

/* Once per communicator: a program that goes on gets the same failure from every call. */
static void report(struct gm_twin *twin, const char *sentence, enum gm_call call)
{
    if (!twin->reported)
        fprintf(stderr, "gyre-mpi: rank %d of %d: MPI_%s: %s\n", twin->rank, twin->size, gm_call_name(call), sentence);
    twin->reported = true;
}

static int fail(struct gm_twin *twin, gyre_status status, enum gm_call call, const char *sentence)
{
    report(twin, sentence, call);
    int code = code_of(status, sentence);
    PMPI_Comm_call_errhandler(twin->mpi, code);
    return code;
}

int gm_failure_end(struct gm_twin *twin, gyre_status status, enum gm_call call)
{
    if (status != GYRE_SUCCESS)
        return fail(twin, status, call, gyre_last_error(twin->comm));
    twin->taken[call]++;
    return MPI_SUCCESS;
}

int gm_failure_memory(struct gm_twin *twin, enum gm_call call)
{
    gyre_comm_abort(twin->comm);
    return fail(twin, GYRE_NO_MEMORY, call, "out of memory for a copy of the data");
}
