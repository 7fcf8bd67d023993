#include "run/gpu_list.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gyre/cuda.h>

#define VARIABLE "CUDA_VISIBLE_DEVICES"
#define DEVICES_MOST 1024
#define ANSWER_MS 60000 /* a driver of many GPUs without persistence mode takes seconds */

struct answer {
    int devices; /* 0: the reason is in `why` */
    char why[200];
};

/* A device is a number, or begins as a UUID: GPU-..., MIG-.... */
static bool is_device(const char *text, size_t length)
{
    static const char digits[] = "0123456789", others[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-/";
    if (length == 0)
        return false;
    bool named = strncmp(text, "GPU-", 4) == 0 || strncmp(text, "MIG-", 4) == 0;
    for (size_t i = 0; i < length; i++)
        if (!strchr(digits, text[i]) && !(named && strchr(others, text[i])))
            return false;
    return true;
}

bool gy_gpu_list_check(const char *text)
{
    if (strcmp(text, "auto") == 0 || strcmp(text, "none") == 0)
        return true;
    for (;; text++) {
        size_t length = strcspn(text, ",");
        if (!is_device(text, length))
            return false;
        text += length;
        if (!*text)
            return true;
    }
}

static _Noreturn void tell(int to)
{
    struct answer answer = {0};
    if (gyre_cuda_available(&answer.devices) != GYRE_SUCCESS)
        snprintf(answer.why, sizeof answer.why, "%s", gyre_last_error(NULL));
    _exit(write(to, &answer, sizeof answer) == (ssize_t)sizeof answer ? 0 : 1);
}

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Returns false if there is no answer in time. */
static bool await_answer(int from)
{
    struct pollfd ready = {.fd = from, .events = POLLIN};
    const long deadline = now_ms() + ANSWER_MS;
    for (;;) {
        const long left = deadline - now_ms();
        const int found = poll(&ready, 1, left > 0 ? (int)left : 0);
        if (found >= 0 || errno != EINTR)
            return found > 0;
    }
}

/* The driver starts threads and keeps descriptors, and this process forks the ranks. */
static void ask(struct answer *answer)
{
    int ends[2];
    *answer = (struct answer){.why = "no process can be started to ask the CUDA driver"};
    if (pipe(ends))
        return;
    pid_t child = fork();
    if (child == 0)
        tell(ends[1]);
    close(ends[1]);
    if (child > 0) {
        if (!await_answer(ends[0]))
            *answer = (struct answer){.why = "the CUDA driver has given no answer for 60 s"};
        else if (read(ends[0], answer, sizeof *answer) != (ssize_t)sizeof *answer)
            *answer = (struct answer){.why = "the process that asked the CUDA driver has failed"};
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    close(ends[0]);
}

static char *number_all(int devices)
{
    char *list = calloc((size_t)devices + 1, 5), *end = list;
    for (int d = 0; list && d < devices; d++)
        end += sprintf(end, d ? ",%d" : "%d", d);
    return list;
}

/* The first `devices` elements: CUDA ends a list at the first device that is not there. */
static char *copy_first(const char *list, int devices)
{
    const char *end = list + strcspn(list, ",");
    while (--devices > 0 && *end)
        end += 1 + strcspn(end + 1, ",");
    return strndup(list, (size_t)(end - list));
}

char *gy_gpu_list_make(const char *text, char *why, unsigned why_bytes)
{
    struct answer answer;
    const char *visible = getenv(VARIABLE);
    *why = '\0';
    if (!text)
        return NULL;
    if (strcmp(text, "auto") != 0)
        return strdup(strcmp(text, "none") == 0 ? "" : text);
    ask(&answer);
    if (answer.devices > 0 && answer.devices <= DEVICES_MOST)
        return visible ? copy_first(visible, answer.devices) : number_all(answer.devices);
    snprintf(why, why_bytes, "%s", answer.why);
    return NULL;
}

void gy_gpu_list_show(const char *list, int local)
{
    int count = 1;
    for (const char *at = list; *at; at++)
        count += *at == ',';
    for (int skip = local % count; skip > 0; skip--)
        list += strcspn(list, ",") + 1;
    char *one = strndup(list, strcspn(list, ","));
    if (one)
        setenv(VARIABLE, one, 1);
    free(one);
}
