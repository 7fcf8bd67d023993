/* The same bytes as an all_reduce between two hosts moves, sent and received by two threads that do nothing else: what
 * the machine itself takes from a rank that computes beside them. Sleeps end as seldom as the kernel can be asked for. */
#ifndef GYRE_PERF_COSTS_BARE_H
#define GYRE_PERF_COSTS_BARE_H

#include <gyre/gyre.h>
#include <pthread.h>

struct bare {
    gyre_comm *comm;
    int fd; /* to the other of two ranks; −1: there is none */
    char *out, *in;
    size_t bytes;
    pthread_t sender, receiver;
    _Atomic(const char *) failed; /* the call of a thread that failed, NULL: none */
    int problem;                  /* its errno, 0: the connection ended */
};

/* Joins ranks 0 and 1 at MASTER_ADDR, where scripts/hosts has rank 0; bare->fd −1 where that cannot be or there are more
 * ranks. Collective. */
void bare_open(struct bare *bare, gyre_comm *comm, void *out, void *in, size_t bytes);
void bare_start(struct bare *bare);
/* Waits for both threads. Ends the program where one failed: with the message of the world, if that has failed too, as
 * it has when the other rank died. */
void bare_wait(struct bare *bare);

#endif
