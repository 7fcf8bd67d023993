/* The socket calls of a test program stand before the C library's for libgyre too: they count what moves frames, and on request
 * play a socket that is nearly full. Needs ENABLE_EXPORTS. */
#ifndef GYRE_TESTS_SYSTEM_MEDDLER_H
#define GYRE_TESTS_SYSTEM_MEDDLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct meddler {
    unsigned long sends;    /* calls that sent anything of frames */
    unsigned long receives; /* calls that brought anything from where frames went to */
    unsigned long misses;   /* ... that found nothing there */
    unsigned long sleeps;   /* calls of poll and epoll_wait */
    unsigned long clocks;   /* looks at the clock */
    unsigned long parts;    /* frames that were taken in part */
    size_t owed;            /* bytes of the last of these that are still to come */
    int fd;                 /* where frames went last; −1: nowhere */
    uint32_t longest;       /* payload of a frame that was the first of its call */
};

extern struct meddler meddler;

/* From now on one frame in three is taken in part only, and what follows is refused a few times. */
void meddle(bool on);

#endif
