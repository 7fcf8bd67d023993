/* One event, one line, one write(2): lines of several ranks and threads do not mix on a terminal, a file or a pipe.
 *
 * Nothing here allocates, locks or changes errno. A reader that has gone must not kill the program: SIGPIPE is held
 * back for the time of the write, and taken away if the write was what raised it. */
#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 2048
#define LEVEL_UNREAD (-1)

static const char *const level_names[] = {"error", "warn", "info", "debug"};
static const char *const level_titles[] = {"ERROR", "WARN", "INFO", "DEBUG"};
static _Atomic int threshold = LEVEL_UNREAD;
static _Thread_local int log_rank = -1;
static _Atomic(gyre_log_func) sink; /* NULL: stderr */
static _Atomic(void *) sink_user;   /* written before receive handler */

bool gy_log_level_parse(const char *text, enum gy_log_level *level_p)
{
    for (size_t i = 0; i < GY_ARRAY_LENGTH(level_names); i++) {
        if (strcmp(text, level_names[i]) == 0) {
            *level_p = (enum gy_log_level)i;
            return true;
        }
    }
    return false;
}

/* Read at the first use; two threads that race here store the same value. A bad value is config.c's to report. */
static int threshold_get(void)
{
    int level = atomic_load_explicit(&threshold, memory_order_relaxed);

    if (level == LEVEL_UNREAD) {
        enum gy_log_level parsed = GY_LOG_WARN;
        const char *text = getenv("GYRE_LOG");

        if (text)
            gy_log_level_parse(text, &parsed);
        level = (int)parsed;
        atomic_store_explicit(&threshold, level, memory_order_relaxed);
    }
    return level;
}

bool gy_log_enabled(enum gy_log_level level)
{
    return (int)level <= threshold_get();
}

void gy_log_set_sink(gyre_log_func func, void *user)
{
    atomic_store(&sink, NULL);
    atomic_store(&sink_user, user);
    atomic_store(&sink, func);
}

void gy_log_set_rank(int rank)
{
    log_rank = rank;
}

static void write_quietly(const char *line, size_t bytes)
{
    sigset_t pipe_set, old_set, pending;
    const struct timespec at_once = {0};
    bool was_pending;
    ssize_t written;

    sigemptyset(&pipe_set);
    sigaddset(&pipe_set, SIGPIPE);
    sigpending(&pending);
    was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_set, &old_set);
    do
        written = write(STDERR_FILENO, line, bytes);
    while (written < 0 && errno == EINTR);
    if (written < 0 && errno == EPIPE && !was_pending)
        sigtimedwait(&pipe_set, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &old_set, NULL);
}

/* Text from peers and from the environment may hold anything; a line stays a line. */
static void replace_control_characters(char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            text[i] = '?';
    }
}

static GY_PRINTF(2, 0)
void write_line(enum gy_log_level level, const char *format, va_list args)
{
    char line[LINE_BYTES];
    int saved_errno = errno, length;
    size_t used;

    if (log_rank >= 0)
        length = snprintf(line, sizeof(line), "gyre[rank %d] %s: ", log_rank, level_titles[level]);
    else
        length = snprintf(line, sizeof(line), "gyre %s: ", level_titles[level]);
    used = (size_t)length;
    length = vsnprintf(line + used, sizeof(line) - used, format, args);
    if (length > 0)
        used = gy_min_size(used + (size_t)length, sizeof(line) - 1);
    replace_control_characters(line, used);
    gyre_log_func func = atomic_load(&sink);
    line[used] = func ? '\0' : '\n';
    if (func)
        func(atomic_load(&sink_user), (gyre_log_level)level, line);
    else
        write_quietly(line, used + 1);
    errno = saved_errno;
}

void gy_log(enum gy_log_level level, const char *format, ...)
{
    va_list args;

    if (!gy_log_enabled(level))
        return;
    va_start(args, format);
    write_line(level, format, args);
    va_end(args);
}

void gy_log_asked(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    write_line(GY_LOG_INFO, format, args);
    va_end(args);
}
