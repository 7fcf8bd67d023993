/* Progress of the MPI library while a rank waits for gyre. MPI wants a rank inside a collective call to take part in
 * its other operations: the receiver of an MPI_Isend may have to get the message before it comes to the same collective
 * call. The MPI library has no public function for that; a test of a request that is not complete does it.
 *
 * gyre is linked into the interposer, and its calls of sched_yield, epoll_wait, epoll_pwait2 and ppoll, which are all
 * it does when a wait takes more than 100 microseconds, go to progress.c (ld --wrap). No thread takes part. */
#ifndef GYRE_MPI_PROGRESS_H
#define GYRE_MPI_PROGRESS_H

#include <mpi.h>
#include <stddef.h>

/* Makes a generalized request that is complete only at its end. */
void gm_progress_begin(MPI_Request *request);
void gm_progress_end(MPI_Request *request);

/* The request that this thread tests when it waits in gyre; NULL: it is not in gyre. Initial-exec: the interposer is
 * loaded at the start. */
extern _Thread_local MPI_Request *gm_progress_request __attribute__((tls_model("initial-exec"), visibility("hidden")));

static inline void gm_progress_enter(MPI_Request *request)
{
    gm_progress_request = request;
}

static inline void gm_progress_leave(void)
{
    gm_progress_request = NULL;
}

#endif
