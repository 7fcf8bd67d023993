/* Moves this process and its later children into namespaces of their own, so that no other process on the machine can
 * connect to their listeners, take their ports or be disturbed by them. */
#ifndef GY_TESTS_OWN_NETWORK_H
#define GY_TESTS_OWN_NETWORK_H

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static bool own_network_raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool up = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    if (fd >= 0)
        close(fd);
    return up;
}

static bool own_network_map_user(unsigned user)
{
    char map[32];
    int bytes = snprintf(map, sizeof map, "0 %u 1", user), fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
    bool written = fd >= 0 && write(fd, map, (size_t)bytes) == bytes;
    if (fd >= 0)
        close(fd);
    return written;
}

static bool own_network_move(int others)
{
    const unsigned user = (unsigned)geteuid();
    if (unshare(CLONE_NEWNET | others) == 0)
        return own_network_raise_loopback();
    return unshare(CLONE_NEWUSER | CLONE_NEWNET | others) == 0 && own_network_map_user(user) &&
           own_network_raise_loopback();
}

/* `others`: more CLONE_NEW… flags. A process that is not root enters a user namespace too. Call it before the first
 * thread starts. Returns false where the system allows no such namespaces. A child tries first, so that this process
 * then stays where it is. */
static bool own_network_enter(int others)
{
    int status = 1;
    const pid_t child = fork();
    if (child == 0)
        _exit(own_network_move(others) ? 0 : 1);
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        return false;
    return own_network_move(others);
}

#endif
