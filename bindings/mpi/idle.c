#include "idle.h"

#include <sched.h>

#define TESTS_ALONE 200  /* tests of gyre's request before the MPI library is asked for progress */
#define TESTS_AWAKE 2000 /* tests before the processor is offered to others after each */

static int query(void *state, MPI_Status *status)
{
    (void)state;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return MPI_SUCCESS;
}

static int release(void *state)
{
    (void)state;
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS;
}

void gm_idle_begin(MPI_Request *request)
{
    PMPI_Grequest_start(query, release, cancel, NULL, request);
}

void gm_idle_end(MPI_Request *request)
{
    if (*request == MPI_REQUEST_NULL)
        return;
    PMPI_Grequest_complete(*request);
    PMPI_Wait(request, MPI_STATUS_IGNORE);
}

static void progress(struct gm_twin *twin)
{
    int complete;
    PMPI_Test(&twin->idle, &complete, MPI_STATUS_IGNORE);
}

/* The processor is another rank's as soon as it may be one that this rank waits for. */
static __attribute__((noinline)) gyre_status wait_long(struct gm_twin *twin, gyre_request **request)
{
    gyre_status status;
    for (unsigned tests = twin->crowded ? TESTS_AWAKE : 0; (status = gyre_test(request)) == GYRE_IN_PROGRESS; tests++) {
        progress(twin);
        if (tests >= TESTS_AWAKE)
            sched_yield();
    }
    return status;
}

gyre_status gm_idle_wait(struct gm_twin *twin, gyre_request **request)
{
    for (int tests = twin->crowded ? TESTS_ALONE : 0; tests < TESTS_ALONE; tests++) {
        gyre_status status = gyre_test(request);
        if (status != GYRE_IN_PROGRESS)
            return status;
    }
    return wait_long(twin, request);
}
