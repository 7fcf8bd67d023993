/* Ranks for the tests of boot: processes (or threads) that meet, and perhaps make the overlay, each with what it is
 * asked to be and what came of it in one place that all share.
 *
 *   ranks_make ─► the test changes what is to be wrong ─► ranks_start ─► ranks_await ... ─► ranks_end ─► results
 *
 * A failed CHECK prints where and ends its process; everything else is ended by ranks_end, a parent-death signal or the
 * alarm of main, so nothing is left to hang. */
#ifndef GY_TESTS_BOOT_RANKS_H
#define GY_TESTS_BOOT_RANKS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "membership/overlay.h"

#define RANKS_MOST 64
#define SECRET "a secret for the tests"

#define CHECK(condition, ...)                                               \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                   \
            fputc('\n', stderr);                                            \
            _exit(1);                                                       \
        }                                                                   \
    } while (0)

enum stage {
    STAGE_NONE,
    STAGE_SEATED,
    STAGE_READY,
    STAGE_TOLD,
    STAGE_ASKED,
    STAGE_ENDED
}; /* SEATED: set by a test that can see it */

struct rank {
    /* What it is asked to be. */
    int rank, size;
    char address[96];
    const char *secret;
    bool exchange, overlay;
    bool together;                 /* no rank leaves before all are ready */
    bool later;                    /* it takes its world for that of a later epoch */
    int again;                     /* after the first world, so many more */
    const char *setting[2];        /* name and value in the environment; processes only */
    uint16_t version;              /* of the handshake; 0: ours. For tests that wrap it */
    int64_t meet_timeout, timeout; /* timeout: how long `body` may take */
    void (*body)(struct rank *rank, struct gy_poller *poller,
                 struct gy_overlay *overlay); /* says READY itself; or NULL */
    int choice;                               /* for the body */
    bool victim;                              /* will be killed: its end is no failure */
    /* What came of it. */
    gyre_status status;
    struct gy_error error;
    int64_t when; /* it ended */
    struct gy_boot_counters counters;
    uint64_t job;
    int nlocals, hosts;
    _Atomic int stage;
    long found[8]; /* by the body, or by a wrapped function */
    /* The harness's own. */
    struct ranks *ranks;
    pid_t pid;
    pthread_t thread;
};

/* The rank that this process, or thread, is. */
extern _Thread_local struct rank *rank_self;

/* To be called first: the process ends after `limit_s` seconds, stdout is buffered by lines, and the network is this
 * test's own where the system allows it. */
void ranks_begin(unsigned limit_s);
/* From now on what gyre logs is lost, and what a failed CHECK says is not. */
void ranks_hush(void);
/* Ranks 0 .. count-1 of `size` in shared memory, with SECRET and a meeting at `address`; ends with the next
 * ranks_make. */
struct rank *ranks_make(int count, int size, const char *address);
/* All of `size`, which meet over TCP and are in the overlay, with a body for it. */
struct rank *ranks_watch(int size, void (*body)(struct rank *, struct gy_poller *, struct gy_overlay *));
void ranks_start(struct rank *ranks, int count, bool processes);
/* Until all but victims have reached `stage`. */
void ranks_await(struct rank *ranks, int count, enum stage stage);
/* Waits for their ends, which must be in order except for victims'. */
void ranks_end(struct rank *ranks, int count);
/* All three: as processes, to the end. */
void ranks_run(struct rank *ranks, int count);
/* Each of them ended with `status` and a sentence that has `words` in it. */
void ranks_expect(const struct rank *ranks, int count, gyre_status status, const char *words);
/* For bodies: one turn of the overlay, that tells the rank; and turns until all are as far as `stage`, as this one is
 * now. */
void ranks_poll(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay);
void ranks_reach(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay, enum stage stage);
/* "tcp://127.0.0.1:PORT" with a free port; "file:///tmp/…" with the name of no file. */
void ranks_address_tcp(char address_p[96]);
void ranks_address_file(char address_p[96]);

#endif
