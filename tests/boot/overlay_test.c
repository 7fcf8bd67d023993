/* Deaths and goodbyes over the overlay, with ranks as processes.
 *
 *   parent forks N children, each its own process group member with a parent-death signal; they meet, make the overlay
 *   and report "ready" through a pipe; the parent kills one at time t; the others write the time at which
 *   gy_overlay_check told them, and the culprit. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/overlay.h"
#include "core/clock.h"

#define CHECK(condition, ...)                                               \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                   \
            fputc('\n', stderr);                                            \
            _exit(1);                                                       \
        }                                                                   \
    } while (0)

struct report {
    int rank, culprit;
    gyre_status status;
    int64_t when;
    int left; /* how many said goodbye */
    char text[200];
};

enum what { KILL, KILL_WITH_CHILD, LEAVE, ABORT };

static void child(int rank, int size, const char *address, enum what what, int victim, int out)
{
    gyre_config user = {.size = sizeof(user), .rank = rank, .world_size = size, .address = address};
    struct gy_config config = {.peer_timeout_ns = 10 * GY_SECOND, .meet_timeout_ns = 20 * GY_SECOND};
    struct report report = {.rank = rank, .status = GYRE_IN_PROGRESS};
    struct gy_error error = {.rank = -1};
    struct gy_overlay *overlay;
    struct gy_poller *poller;
    struct gy_world *world;
    int64_t until;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CHECK(gy_poller_create(&poller, &error) == GYRE_SUCCESS, "%s", error.text);
    CHECK(gy_world_meet(&user, &config, poller, &world, &error) == GYRE_SUCCESS, "rank %d: %s", rank, error.text);
    CHECK(gy_overlay_create(world, &overlay, &error) == GYRE_SUCCESS, "rank %d: %s", rank, error.text);
    if (what == KILL_WITH_CHILD && rank == victim && fork() == 0) { /* holds every socket open: only the pidfd tells */
        prctl(PR_SET_PDEATHSIG, 0);
        sleep(2);
        _exit(0);
    }
    CHECK(write(out, &report, sizeof(report)) == sizeof(report), "rank %d cannot report", rank);
    until = gy_now() + (what == LEAVE ? 2 : 8) * GY_SECOND;
    if (rank == victim && what >= LEAVE) {
        for (int64_t pause = gy_now() + GY_SECOND; gy_now() < pause;)
            gy_poller_poll(poller, 5 * GY_MILLISECOND);
        if (what == LEAVE)
            until = 0;
        else
            gy_overlay_report(overlay, GYRE_ABORTED, rank, "rank 1 was told to abort");
    }
    report.status = GYRE_SUCCESS;
    while (gy_now() < until && (report.status = gy_overlay_check(overlay, &error)) == GYRE_SUCCESS)
        gy_poller_poll(poller, GY_MILLISECOND);
    report.when = gy_now();
    report.culprit = error.rank;
    snprintf(report.text, sizeof(report.text), "%.190s", error.text);
    for (int i = 0; i < size; i++)
        report.left += gy_overlay_has_left(overlay, i);
    CHECK(write(out, &report, sizeof(report)) == sizeof(report), "rank %d cannot report", rank);
    gy_overlay_free(overlay);
    gy_world_free(world);
    gy_poller_free(poller);
    _exit(0);
}

static void trial(int size, enum what what, int victim, int port)
{
    pid_t pids[64];
    struct report report;
    int pipes[2], status, expected = what < LEAVE ? size - 1 : size;
    int64_t begin = 0, worst = 0;
    char address[64];

    snprintf(address, sizeof(address), "tcp://127.0.0.1:%d", port);
    CHECK(pipe(pipes) == 0, "pipe");
    for (int rank = 0; rank < size; rank++) {
        pids[rank] = fork();
        CHECK(pids[rank] >= 0, "fork");
        if (pids[rank] == 0)
            child(rank, size, address, what, victim, pipes[1]);
    }
    close(pipes[1]);
    for (int i = 0; i < size; i++)
        CHECK(read(pipes[0], &report, sizeof(report)) == sizeof(report), "a rank did not get ready");
    if (what < LEAVE) {
        usleep(20000);
        begin = gy_now();
        kill(pids[victim], SIGKILL);
    }
    for (int i = 0; i < expected; i++) {
        CHECK(read(pipes[0], &report, sizeof(report)) == sizeof(report), "only %d reports", i);
        if (what == LEAVE) {
            CHECK(report.status == GYRE_SUCCESS, "rank %d took a goodbye for: %s", report.rank, report.text);
            CHECK(report.rank == victim || report.left >= 1, "rank %d heard no goodbye", report.rank);
            continue;
        }
        CHECK(report.status == (what < LEAVE ? GYRE_PEER_DEAD : GYRE_ABORTED), "rank %d: %d %s", report.rank,
              report.status, report.text);
        CHECK(report.culprit == victim, "rank %d blames %d: %s", report.rank, report.culprit, report.text);
        if (report.when - begin > worst)
            worst = report.when - begin;
    }
    if (what < LEAVE) {
        CHECK(worst < 100 * GY_MILLISECOND, "told after %.1f ms", (double)worst / 1e6);
        printf("ok: %d ranks, rank %d killed%s: all know within %.2f ms: %s\n", size, victim,
               what == KILL ? "" : " while its forked child sleeps", (double)worst / 1e6, report.text);
    } else {
        printf("ok: %d ranks, rank %d %s\n", size, victim,
               what == LEAVE ? "left, and nobody called it dead" : "aborted, and all know");
    }
    for (int rank = 0; rank < size; rank++) {
        CHECK(waitpid(pids[rank], &status, 0) == pids[rank], "waitpid");
        CHECK(what < LEAVE && rank == victim ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0,
              "rank %d ended with %#x", rank, (unsigned)status);
    }
    close(pipes[0]);
}

int main(void)
{
    int port = 30000 + (int)getpid() % 2000;

    alarm(110);
    setvbuf(stdout, NULL, _IOLBF, 0);
    setenv("GYRE_LOG", "warn", 0);
    for (int i = 0; i < 3; i++)
        trial(8, KILL, (const int[]){3, 0, 7}[i], port + i);
    trial(2, KILL, 1, port + 3);
    trial(24, KILL, 5, port + 4);
    trial(8, KILL_WITH_CHILD, 2, port + 7);
    trial(5, LEAVE, 2, port + 5);
    trial(6, ABORT, 1, port + 6);
    puts("every death, goodbye and abort as expected");
    return 0;
}
