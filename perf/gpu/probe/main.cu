/* Runs the parts named as arguments, or all. The exit status is 1 where a part failed. */
#include "probe.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

int descriptor_pair[2];

static const struct {
    const char *name;
    void (*body)(int me);
    int processes, seconds;
} parts[] = {
    {"device", part_device, 1, 20},     {"launch", part_launch, 1, 20}, {"copy", part_copy, 1, 20},
    {"words", part_words, 1, 20},       {"share", part_share, 2, 25},   {"ipc_words", part_ipc_words, 2, 20},
    {"handover", part_handover, 2, 40}, {"slices", part_slices, 2, 40},
};

static bool reap(const pid_t *pids, int processes)
{
    bool failed = false;
    for (int ended = 0; ended < processes; ended++) {
        int status;
        pid_t pid = wait(&status);
        if (status == 0)
            continue;
        for (int i = 0; i < processes; i++) {
            if (pids[i] != pid)
                kill(pids[i], SIGKILL);
            else if (WIFSIGNALED(status) && !failed)
                say("\"error\": \"process %d ended by signal %d%s\"", i, WTERMSIG(status),
                    WTERMSIG(status) == SIGALRM ? " (its time limit)" : "");
        }
        failed = true;
    }
    return !failed;
}

static bool run(size_t which)
{
    part = parts[which].name;
    memset(sh, 0, sizeof *sh);
    memset(words, 0, WORDS_BYTES);
    fflush(stdout);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, descriptor_pair) < 0)
        return false;
    double begin = now_us();
    pid_t pids[2] = {-1, -1};
    for (int me = 0; me < parts[which].processes; me++) {
        pids[me] = fork();
        if (pids[me] == 0) {
            alarm((unsigned)parts[which].seconds);
            parts[which].body(me);
            fflush(stdout);
            _exit(0);
        }
    }
    bool well = reap(pids, parts[which].processes);
    close(descriptor_pair[0]);
    close(descriptor_pair[1]);
    say("\"seconds\": %.1f", (now_us() - begin) / 1e6);
    return well;
}

int main(int argc, char **argv)
{
    int fd = memfd_create("words", 0);
    if (fd < 0 || ftruncate(fd, WORDS_BYTES) < 0)
        return 1;
    words = (uint32_t *)mmap(NULL, WORDS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    sh = (struct shared *)mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (words == MAP_FAILED || sh == MAP_FAILED)
        return 1;
    bool well = true, known = argc < 2;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        bool chosen = argc < 2;
        for (int k = 1; k < argc; k++)
            chosen |= strcmp(argv[k], parts[i].name) == 0;
        known |= chosen;
        if (chosen && !run(i))
            well = false;
    }
    if (!known)
        fprintf(stderr,
                "probe: no such part; there are device, launch, copy, words, share, ipc_words, handover, slices\n");
    return well && known ? 0 : 1;
}
