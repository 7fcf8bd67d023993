/* The socket calls of a test program stand before the C library's for libgyre too. They count what moves frames, and
 * on request play a socket that is nearly full; and they know which ranks sleep while the kernel is to report
 * nothing. Needs ENABLE_EXPORTS. */
#ifndef GYRE_TESTS_SYSTEM_MEDDLER_H
#define GYRE_TESTS_SYSTEM_MEDDLER_H

#define QUIET_BYTES 65536 /* and more: it is quiet */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct meddler {
    unsigned long sends;    /* calls that sent anything of frames */
    unsigned long receives; /* calls that brought anything from where frames went to */
    unsigned long misses;   /* ... that found nothing there */
    unsigned long sleeps;   /* calls of poll and epoll_wait, which are there to look */
    unsigned long clocks;   /* looks at the clock */
    unsigned long parts;    /* frames that were taken in part */
    size_t owed;            /* bytes of the last of these that are still to come */
    int fd;                 /* where frames went last; −1: nowhere */
    uint32_t longest;       /* payload of a frame that was the first of its call */
};

extern struct meddler meddler;

/* Sleeps in the event set, of all threads. The link is that where frames went last; it is quiet where more than 64 KiB
 * have to come before the set hears of it. */
struct meddler_naps {
    _Atomic unsigned long begun;
    _Atomic unsigned long deaf;  /* began, or went on, while it was quiet */
    _Atomic unsigned long heard; /* ended by something, when something was there */
};

extern struct meddler_naps meddler_naps;

/* Bytes that wake a rank that sleeps on the link; 0: there is none. */
int meddler_wakes_at(void);

/* From now on one frame in three is taken in part only, and what follows is refused a few times. */
void meddle(bool on);

#endif
