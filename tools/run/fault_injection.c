/* The times between faults are exponential, their kinds and ranks uniform. All are drawn from splitmix64 in the same
 * order, whatever happens to the ranks: a fault without a target is drawn all the same. So two runs with the same seed
 * meet the same faults at the same times after their start.
 *
 * A cut attaches a filter to one end of a connection, through a copy of the rank's own descriptor. The filter drops
 * every segment, acknowledgements too, before TCP sees it. Neither end is notified: both retransmit until they give
 * up, as after a pulled cable. (A shutdown of the connection would look like the end of the process, which still
 * lives.) */
#include "run/fault_injection.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STOP_LEAST_MS 50
#define STOP_MOST_MS 1000
#define RATE_MOST 1000.0
#define CONNECTIONS_MOST 4096

/* Steele, Lea and Flood, 2014. */
static uint64_t draw(struct gy_chaos *chaos)
{
    uint64_t z = (chaos->state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

bool gy_chaos_parse(const char *text, struct gy_chaos *chaos_p)
{
    char *end;
    errno = 0;
    uint64_t seed = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != ',' || errno)
        return false;
    const char *number = end + 1;
    double rate = strtod(number, &end);
    if (end == number || *end || !(rate > 0 && rate <= RATE_MOST))
        return false;
    *chaos_p = (struct gy_chaos){.rate = rate, .state = seed};
    return true;
}

void gy_chaos_next(struct gy_chaos *chaos, int ranks)
{
    double unit = (double)((draw(chaos) >> 11) + 1) * 0x1p-53; /* in (0, 1] */
    chaos->number++;
    chaos->at_ms += (int64_t)ceil(-log(unit) / chaos->rate * 1000);
    chaos->kind = (enum gy_chaos_kind)(draw(chaos) % 3);
    chaos->rank = (int)(draw(chaos) % (uint64_t)ranks);
    chaos->stop_ms = STOP_LEAST_MS + (int64_t)(draw(chaos) % (STOP_MOST_MS - STOP_LEAST_MS));
    chaos->dice = draw(chaos);
}

/* Returns a copy of the process's descriptor if it is one end of a TCP connection, else −1. */
static int take(int process, int number)
{
    struct sockaddr_storage peer = {0};
    socklen_t length = sizeof peer, bytes = sizeof(int);
    int type = 0;
    int fd = (int)syscall(SYS_pidfd_getfd, process, number, 0);
    if (fd < 0)
        return -1;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 && type == SOCK_STREAM &&
        getpeername(fd, (struct sockaddr *)&peer, &length) == 0 &&
        (peer.ss_family == AF_INET || peer.ss_family == AF_INET6))
        return fd;
    close(fd);
    return -1;
}

/* Returns the numbers of the descriptors that are sockets, in order, without the standard ones. */
static size_t list_sockets(pid_t pid, int *numbers)
{
    char path[64], target[64];
    size_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    struct dirent *entry;
    while (folder && count < CONNECTIONS_MOST && (entry = readdir(folder))) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        int number = atoi(entry->d_name);
        if (length > 7 && memcmp(target, "socket:", 7) == 0 && number > 2)
            numbers[count++] = number;
    }
    if (folder)
        closedir(folder);
    return count;
}

static bool silence(int fd)
{
    struct sock_filter drop[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
    struct sock_fprog filter = {.len = 1, .filter = drop};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0;
}

bool gy_chaos_cut(pid_t pid, uint64_t dice, char *text, size_t bytes)
{
    static int numbers[CONNECTIONS_MOST], taken[CONNECTIONS_MOST];
    size_t sockets = list_sockets(pid, numbers), count = 0;
    int process = (int)syscall(SYS_pidfd_open, pid, 0), problem = 0;
    for (size_t i = 0; i < sockets && process >= 0; i++) {
        taken[count] = take(process, numbers[i]);
        if (taken[count] >= 0)
            count++;
        else if (errno == EPERM || errno == ENOSYS)
            problem = errno;
    }
    if (process >= 0)
        close(process);
    if (count > 0) {
        size_t choice = (size_t)(dice % count);
        problem = silence(taken[choice]) ? 0 : errno;
        snprintf(text, bytes, "TCP connection %zu of its %zu%s%s", choice + 1, count, problem ? ": " : "",
                 problem ? strerror(problem) : "");
    } else {
        snprintf(text, bytes, "no TCP connection of it: %s", problem ? strerror(problem) : "it has none");
    }
    for (size_t i = 0; i < count; i++)
        close(taken[i]);
    return count > 0 && !problem;
}
