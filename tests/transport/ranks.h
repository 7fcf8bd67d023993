/* Ranks for transport tests: a world of N ranks, as threads or as forked processes, each with one transport open.
 *
 * A failed CHECK prints where and ends everything with status 1; an alarm ends what hangs. */
#ifndef GY_TESTS_TRANSPORT_RANKS_H
#define GY_TESTS_TRANSPORT_RANKS_H

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "transport/shm/segment.h"
#include "transport/transport.h"

#define CHECK(condition, ...)                                                        \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: %s is false: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                            \
            fputc('\n', stderr);                                                     \
            _Exit(1);                                                                \
        }                                                                            \
    } while (0)

#define RANKS_MOST 8

/* One direction there and one back, between this rank and another. */
struct rank_pair {
    int peer;
    bool linked;          /* rank_link was called */
    struct gy_link *link; /* since then */
    uint64_t posted;      /* frames of all exchanges so far */
    /* what the receive handler saw */
    unsigned char *landing;
    uint64_t arrived, arrived_bytes, broken;
    uint64_t placed;               /* payloads that it was asked for a place for */
    uint64_t grants, before_grant; /* grants, and what had arrived before the last of them */
    uint64_t more;                 /* frames behind which the link said that there were others */
    gyre_status broken_status;
};

struct rank {
    int rank, size;
    const struct gy_transport_ops *ops;
    struct gy_config config;
    struct gy_poller *poller;
    struct gy_world *world;
    struct gy_segment *segment;
    void *instance;
    int pairs; /* with every other rank, or with oneself in a world of one */
    struct rank_pair pair[RANKS_MOST];
    bool announces;    /* the memory that it sends from */
    bool closed;       /* any call of the receive handler from now on is an error */
    int64_t linger_ns; /* time arrived() takes: a slow receiver */
};

typedef void (*rank_func)(struct rank *rank);

struct ranks_options {
    const char *transport;
    const struct gy_transport_ops *ops; /* NULL: the library's table of that name */
    bool ipv6, processes;
    int size;
    const char *const *devices; /* [size], as GYRE_RDMA_DEVICES; NULL: as the environment says */
};

/* Runs `body` on every rank and returns when all are done. */
void ranks_run(const struct ranks_options *options, const char *name, rank_func body);

/* Links this rank with every other. */
void rank_link(struct rank *rank);
/* That, and an empty frame, number 1, to every rank and from every rank: the links are ready. */
void rank_ready(struct rank *rank);
struct rank_pair *rank_pair(struct rank *rank, int peer);
/* All ranks are here (without making progress). */
void rank_barrier(struct rank *rank);
/* A payload that depends on (sender, receiver, sequence), and the header with its hash in `value`. */
void rank_frame(struct rank *rank, int peer, struct gy_frame_out *frame, uint64_t sequence, unsigned char *payload,
                uint32_t bytes);
/* Progress, or poll, or (sleep) arm and wait in the poller. A sleep of seconds means a lost wake-up: an error. */
void rank_progress(struct rank *rank, bool sleep);
/* For how long this thread has had something to do, and no core. */
int64_t rank_without_core(void);

#endif
