/* connecting ──accepted or refused──► the host answers
 *     └───────anything else────────► it does not: the kernel's user timeout ends an unanswered attempt */
#include "net/host_probe.h"

#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "net/address.h"
#include "net/socket.h"

#define PORT 1 /* tcpmux, a service unused for decades */

static bool is_answer(int errnum)
{
    return errnum == 0 || errnum == ECONNREFUSED;
}

static void on_event(void *owner, uint32_t events)
{
    struct gy_ping *ping = owner;
    int errnum = gy_socket_check(ping->watch.fd);

    (void)events;
    gy_ping_cancel(ping, false);
    ping->done(ping->user, is_answer(errnum));
}

enum gy_ping_outcome gy_ping_start(struct gy_ping *ping, struct gy_poller *poller, const struct sockaddr_storage *to,
                                   const struct sockaddr_storage *from, int64_t patience_ns, gy_ping_func done,
                                   void *user)
{
    struct gy_endpoint endpoint = {.address = *to};
    int fd;

    gy_address_set_port(&endpoint.address, PORT);
    fd = gy_socket_connect_from(&endpoint, from);
    if (fd < 0)
        return is_answer(errno) ? GY_PING_ANSWERED : GY_PING_FAILED; /* this host's kernel refuses it on the spot */
    gy_socket_tune(fd, patience_ns);
    *ping = (struct gy_ping){
        .poller = poller,
        .watch = {.fd = fd, .events = EPOLLOUT, .callback = on_event, .owner = ping},
        .done = done,
        .user = user,
    };
    if (gy_poller_add(poller, &ping->watch, NULL) == GYRE_SUCCESS)
        return GY_PING_UNDER_WAY;
    close(fd);
    ping->poller = NULL;
    return GY_PING_FAILED;
}

void gy_ping_cancel(struct gy_ping *ping, bool forked)
{
    if (!ping->poller)
        return;
    if (!forked)
        gy_poller_remove(ping->poller, &ping->watch);
    close(ping->watch.fd);
    ping->poller = NULL;
}
