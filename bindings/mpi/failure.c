#include "failure.h"

#include <pthread.h>
#include <stdio.h>

/* Returns an error code whose text is the message of the last failure. MPICH 4.0 cannot add a text to a code of a
 * predefined class: its MPI_Error_string then prints an unrelated message. With MPICH the code is therefore the class,
 * and the message appears on standard error only. */
static int code_with_text(const char *message)
{
#ifdef MPICH_VERSION
    (void)message;
    return MPI_ERR_OTHER;
#else
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static int added = MPI_ERR_OTHER;
    char text[MPI_MAX_ERROR_STRING];
    snprintf(text, sizeof(text), "%s", message);
    pthread_mutex_lock(&lock);
    if (added == MPI_ERR_OTHER && PMPI_Add_error_code(MPI_ERR_OTHER, &added) != MPI_SUCCESS)
        added = MPI_ERR_OTHER;
    if (added != MPI_ERR_OTHER)
        PMPI_Add_error_string(added, text);
    pthread_mutex_unlock(&lock);
    return added;
#endif
}

static int code_of(gyre_status status, const char *message)
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
    return code_with_text(message);
}

/* Writes the first failure of a communicator. A program that continues gets the same failure from every call. */
static void report(struct gm_shadow *shadow, const char *message, enum gm_call call)
{
    if (!shadow->reported)
        fprintf(stderr, "gyre-mpi: rank %d of %d: MPI_%s: %s\n", shadow->rank, shadow->size, gm_call_name(call),
                message);
    shadow->reported = true;
}

static int fail(struct gm_shadow *shadow, gyre_status status, enum gm_call call, const char *message)
{
    report(shadow, message, call);
    int code = code_of(status, message);
    PMPI_Comm_call_errhandler(shadow->mpi, code);
    return code;
}

int gm_failure_end(struct gm_shadow *shadow, gyre_status status, enum gm_call call)
{
    if (status != GYRE_SUCCESS)
        return fail(shadow, status, call, gyre_last_error(shadow->comm));
    shadow->taken[call]++;
    return MPI_SUCCESS;
}

int gm_failure_no_memory(struct gm_shadow *shadow, enum gm_call call)
{
    gyre_comm_abort(shadow->comm);
    return fail(shadow, GYRE_NO_MEMORY, call, "out of memory for a copy of the data");
}
