/* For tests that are their own launcher: ranks are forks of a process without threads and without gyre state, each in
 * its own process group, ended with their parent, and given a deadline. They meet in a file of a temporary folder, so
 * that no two tests can want one port. What ranks have to tell each other goes through a page that the test shares. */
#ifndef GYRE_TESTS_SUPPORT_LAUNCHER_H
#define GYRE_TESTS_SUPPORT_LAUNCHER_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/rank.h"

#define RANKS_MOST 8

static int launch_may_die = -1; /* the rank that is expected to end by SIGKILL */

static inline void *launch_share(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

static inline void launch_set_number(const char *name, long value)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", value);
    setenv(name, text, 1);
}

static inline void launch_prepare(int rank, int ranks, const char *folder)
{
    char text[128];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    launch_set_number("RANK", rank);
    launch_set_number("WORLD_SIZE", ranks);
    snprintf(text, sizeof text, "file://%s/meet", folder);
    setenv("GYRE_ADDRESS", text, 1);
    setenv("GYRE_SECRET", "a-secret-of-the-tests-0123456789", 1);
    setenv("GYRE_LOG", "error", 0);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC); /* what is provoked is logged each time */
    int kept = fcntl(2, F_DUPFD_CLOEXEC, 200);
    if (!getenv("GYRE_TEST_VERBOSE") && null >= 0 && kept >= 0) {
        dup2(null, 2);
        stderr = fdopen(kept, "w"); /* rank_fail goes where it always went */
        setvbuf(stderr, NULL, _IONBF, 0);
    }
    if (null >= 0)
        close(null);
}

/* Which ranks are still there after the deadline is printed with what they are doing. */
static inline bool launch_reap(pid_t *pids, int ranks, double seconds, const char *what)
{
    int64_t limit = rank_now_ns() + (int64_t)(seconds * 1e9);
    bool good = true;
    for (int left = ranks, told = 0; left > 0;) {
        bool late = rank_now_ns() > limit;
        for (int i = 0; i < ranks; i++) {
            int status = 0;
            if (pids[i] <= 0 || waitpid(pids[i], &status, WNOHANG) != pids[i]) {
                if (pids[i] > 0 && late && !(told & 1 << i)) {
                    told |= 1 << i;
                    fprintf(stderr, "%s: rank %d is not through after %.0f s\n", what, i, seconds);
                    kill(-pids[i], SIGKILL);
                    good = false;
                }
                continue;
            }
            bool expected = i == launch_may_die && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !late;
            if (expected)
                status = 0;
            if (WIFSIGNALED(status))
                fprintf(stderr, "%s: rank %d was ended by signal %d\n", what, i, WTERMSIG(status));
            else if (WEXITSTATUS(status) != 0)
                fprintf(stderr, "%s: rank %d failed with status %d\n", what, i, WEXITSTATUS(status));
            good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
            kill(-pids[i], SIGKILL); /* what it may have left behind */
            pids[i] = 0;
            left--;
        }
        usleep(200);
    }
    return good;
}

/* Runs `body` on every rank; true if all of them ended with status 0 in time. */
static inline bool launch(int ranks, void (*body)(int rank), double seconds, const char *what)
{
    char folder[] = "/tmp/gyre-test-XXXXXX", file[64];
    pid_t pids[RANKS_MOST];
    CHECK(ranks <= RANKS_MOST && mkdtemp(folder));
    for (int i = 0; i < ranks; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0) {
            launch_prepare(i, ranks, folder);
            body(i);
            _exit(0);
        }
        setpgid(pids[i], pids[i]);
    }
    bool good = launch_reap(pids, ranks, seconds, what);
    snprintf(file, sizeof file, "%s/meet", folder);
    unlink(file);
    rmdir(folder);
    return good;
}

#endif
