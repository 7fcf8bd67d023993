/* Two threads that only send and receive the bytes that an all_reduce between two hosts moves: the time that the
 * machine itself takes from a rank that computes beside them. Sleeps end as seldom as the kernel allows. */
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

/* Connects ranks 0 and 1 at MASTER_ADDR, where scripts/hosts has rank 0. bare->fd is −1 if that fails or there are
 * more ranks. Collective. */
void bare_open(struct bare *bare, gyre_comm *comm, void *out, void *in, size_t bytes);
void bare_start(struct bare *bare);
/* Waits for both threads. Ends the program where one failed: with the message of the world, if that has failed too, as
 * it has when the other rank died. */
void bare_wait(struct bare *bare);

#endif
