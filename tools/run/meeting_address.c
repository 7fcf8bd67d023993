/* Names are not used where ssh's own address is known: an alias of ssh's configuration means nothing to the other
 * hosts, and Debian gives a host's own name the address 127.0.1.1. */
#include "run/meeting_address.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_loopback(const char *address)
{
    return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

static bool is_elsewhere(const struct gy_remote_host *host)
{
    return !gy_remote_shell_is_local(host->name) && !is_loopback(host->address);
}

/* Returns the host without the user. */
static const char *plain_name(const struct gy_remote_host *host)
{
    const char *at = strrchr(host->name, '@');
    return at ? at + 1 : host->name;
}

/* Writes the own address of a socket that is connected to `towards`. No packet is sent. */
static bool own_address(const char *towards, char *address, size_t bytes)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    struct sockaddr_storage own = {0};
    socklen_t length = sizeof own;
    if (getaddrinfo(towards, "9", &hints, &found))
        return false;
    int fd = socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool known = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0 &&
                 getsockname(fd, (struct sockaddr *)&own, &length) == 0 &&
                 getnameinfo((struct sockaddr *)&own, length, address, (socklen_t)bytes, NULL, 0, NI_NUMERICHOST) == 0;
    if (fd >= 0)
        close(fd);
    freeaddrinfo(found);
    return known;
}

void gy_meeting_address(const struct gy_remote_host *hosts, int count, char *address, size_t bytes)
{
    const struct gy_remote_host *other = NULL;
    for (int i = count - 1; i > 0; i--)
        if (is_elsewhere(&hosts[i]))
            other = &hosts[i];
    if (is_elsewhere(&hosts[0]) && *hosts[0].address)
        snprintf(address, bytes, "%s", hosts[0].address);
    else if (is_elsewhere(&hosts[0]))
        snprintf(address, bytes, "%s", plain_name(&hosts[0]));
    else if (!other)
        snprintf(address, bytes, "127.0.0.1");
    else if (!own_address(*other->address ? other->address : plain_name(other), address, bytes))
        gethostname(address, bytes);
}
