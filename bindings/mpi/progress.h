/* Progress of the MPI library while a rank waits in gyre. MPI requires that a rank inside a collective call progresses
 * its other operations: the receiver of an MPI_Isend may need the message before it makes the same collective call. The
 * MPI library has no public function for that, but testing an incomplete request has this effect.
 *
 * gyre is linked into the interposer. A wait of gyre that takes more than 100 microseconds calls only sched_yield,
 * epoll_wait, epoll_pwait2 or ppoll. The linker redirects these calls to progress.c (ld --wrap). No thread is
 * needed. */
#ifndef GYRE_MPI_PROGRESS_H
#define GYRE_MPI_PROGRESS_H

#include <mpi.h>
#include <stddef.h>

/* begin creates a generalized request, which stays incomplete until end completes it. */
void gm_progress_begin(MPI_Request *request);
void gm_progress_end(MPI_Request *request);

/* The request that this thread tests when it waits in gyre; NULL: the thread is not in gyre. Initial-exec is possible
 * since the interposer is loaded when the program starts. */
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
