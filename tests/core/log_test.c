/* One line, one write; the rank of the thread; the level; no SIGPIPE, no change of errno. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/log.h"

static int read_end, old_stderr;

static void redirect(void)
{
    int ends[2];

    unsetenv("GYRE_LOG");
    cr_assert_eq(pipe2(ends, O_CLOEXEC | O_DIRECT), 0); /* packets: one read gives one write */
    cr_assert_eq(fcntl(ends[0], F_SETFL, O_NONBLOCK | O_DIRECT), 0);
    old_stderr = dup(STDERR_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[1]);
    read_end = ends[0];
}

static void restore(void)
{
    dup2(old_stderr, STDERR_FILENO);
    close(old_stderr);
}

/* The next write as text; "" when there was none. */
static void next_line(char *line, size_t bytes)
{
    ssize_t got = read(read_end, line, bytes - 1);

    line[got > 0 ? got : 0] = '\0';
}

TestSuite(log, .init = redirect, .fini = restore);

Test(log, levels_and_titles)
{
    char first[256], second[256], third[256];

    gy_log(GY_LOG_ERROR, "number %d", 7);
    gy_log(GY_LOG_WARN, "careful");
    gy_log(GY_LOG_INFO, "not shown");
    next_line(first, sizeof(first));
    next_line(second, sizeof(second));
    next_line(third, sizeof(third));
    cr_assert_str_eq(first, "gyre ERROR: number 7\n");
    cr_assert_str_eq(second, "gyre WARN: careful\n");
    cr_assert_str_empty(third);
}

Test(log, the_environment_sets_the_level)
{
    setenv("GYRE_LOG", "info", 1);
    cr_assert(gy_log_enabled(GY_LOG_INFO));
    cr_assert_not(gy_log_enabled(GY_LOG_DEBUG));
}

Test(log, a_bad_level_is_the_default)
{
    setenv("GYRE_LOG", "loud", 1);
    cr_assert(gy_log_enabled(GY_LOG_WARN));
    cr_assert_not(gy_log_enabled(GY_LOG_INFO));
}

static void *log_as_rank_two(void *unused)
{
    (void)unused;
    gy_log_set_rank(2);
    gy_log(GY_LOG_WARN, "thread");
    return NULL;
}

Test(log, the_rank_belongs_to_the_thread)
{
    char thread_line[256], own_line[256];
    pthread_t thread;

    gy_log_set_rank(1);
    cr_assert_eq(pthread_create(&thread, NULL, log_as_rank_two, NULL), 0);
    pthread_join(thread, NULL);
    gy_log(GY_LOG_WARN, "own");
    next_line(thread_line, sizeof(thread_line));
    next_line(own_line, sizeof(own_line));
    cr_assert_str_eq(thread_line, "gyre[rank 2] WARN: thread\n");
    cr_assert_str_eq(own_line, "gyre[rank 1] WARN: own\n");
}

Test(log, a_line_stays_a_line)
{
    char line[4096], longer[8000];

    gy_log(GY_LOG_WARN, "a\nb\x1b[31mc");
    next_line(line, sizeof(line));
    cr_assert_str_eq(line, "gyre WARN: a?b?[31mc\n");
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    gy_log(GY_LOG_WARN, "%s", longer);
    next_line(line, sizeof(line));
    cr_assert_eq(strlen(line), 2048);
    cr_assert_eq(line[2047], '\n');
    cr_assert_null(memchr(line, '\n', 2047));
}

Test(log, a_reader_that_has_gone_does_no_harm)
{
    sigset_t pending;

    close(read_end);
    errno = ERANGE;
    gy_log(GY_LOG_ERROR, "nobody reads this");
    cr_assert_eq(errno, ERANGE);
    sigpending(&pending);
    cr_assert_not(sigismember(&pending, SIGPIPE));
}
