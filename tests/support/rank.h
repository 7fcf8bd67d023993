/* For the rank programs of the system tests. A rank prints nothing unless it fails; it ends by _exit, after a time
 * limit of its own at the latest. */
#ifndef GYRE_TESTS_SUPPORT_RANK_H
#define GYRE_TESTS_SUPPORT_RANK_H

#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gyre/gyre.h>

#define SKIPPED 77

__attribute__((format(printf, 1, 2))) _Noreturn static inline void rank_fail(const char *format, ...)
{
    const char *rank = getenv("RANK");
    va_list arguments;
    char text[2048];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "rank %s: %s\n", rank ? rank : "?", text);
    _exit(1);
}

/* An internal wait that never ends becomes SIGALRM, which the launcher reports. */
static inline gyre_comm *rank_begin(unsigned seconds)
{
    gyre_comm *comm;
    alarm(seconds);
    gyre_status status = gyre_comm_create(NULL, &comm);
    if (status != GYRE_SUCCESS)
        rank_fail("create: %s: %s", gyre_status_name(status), gyre_last_error(NULL));
    return comm;
}

static inline void rank_expect(const gyre_comm *comm, gyre_status status, gyre_status wanted, const char *what,
                               int line)
{
    if (status != wanted)
        rank_fail("line %d: %s gave %s instead of %s: %s", line, what, gyre_status_name(status),
                  gyre_status_name(wanted), gyre_last_error(comm));
}

#define OK(comm, call) rank_expect(comm, call, GYRE_SUCCESS, #call, __LINE__)
#define GIVES(wanted, comm, call) rank_expect(comm, call, wanted, #call, __LINE__)
#define CHECK(condition)                                              \
    do {                                                              \
        if (!(condition))                                             \
            rank_fail("line %d: not true: %s", __LINE__, #condition); \
    } while (0)

/* Called before a rank ends the world: when it returns, no rank is still bootstrapping, or inside an earlier call.
 * The rank that is through it first may have ended the world before the others are: on them it returns `later`, as
 * do the calls that follow. */
static inline void rank_gather(gyre_comm *comm, gyre_status later)
{
    gyre_status status = gyre_barrier(comm);
    if (status != GYRE_SUCCESS)
        rank_expect(comm, status, later, "the barrier before it", 0);
}

static inline int64_t rank_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* How many descriptors this process has open; the one that looks included. */
static inline int rank_count_descriptors(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    CHECK(folder != NULL);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

#endif
