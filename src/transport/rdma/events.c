/* Device events: completions, asynchronous events, removal.
 *
 *   channel of a rail ──▶ the callback of rdma.c        async descriptor of a rail ──▶ device_events
 *   the kernel's own events (uevents) ──▶ removed
 *
 * A device that is removed waits for its users and sends them no other event. Its name among the verbs devices is
 * gone by then, so no new user finds it. */
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/netlink.h>

#include "core/log.h"
#include "transport/rdma/internal.h"

#define UEVENT_BYTES 2048

static void fail_rail(struct gy_rdma *rdma, int rail, const struct ibv_qp *only, gyre_status status, const char *event)
{
    for (struct gy_rdma_link *link = rdma->links; link; link = link->next)
        for (int q = 0; q < link->paths; q++)
            if (link->path[q].rail == rail && (!only || link->path[q].qp == only))
                gy_rdma_fail(link, &link->path[q], status, "the device reports", event);
}

/* Wakes a sleeping thread. */
static void report(struct gy_rdma *rdma)
{
    for (struct gy_rdma_link *link = rdma->links; link; link = link->next)
        if (link->base.state == GY_LINK_FAILED)
            link->rdma->progress(&link->base);
}

/* A port that is down may come up again unnoticed. So the event is only stored for the error message; the request
 * that the port blocks fails. A queue pair or a device in error does not recover. */
static void device_events(void *owner, uint32_t events)
{
    struct gy_rdma_rail *rail = owner;
    struct gy_rdma *rdma = rail->owner;
    struct ibv_async_event event;
    (void)events;

    while (rail->completions.fd >= 0 && rail->verbs->get_async_event(rail->context, &event) == 0) {
        const char *text = rail->verbs->event_type_str(event.event_type);
        const struct ibv_qp *qp = event.element.qp;
        enum ibv_event_type type = event.event_type;
        bool ours = event.element.port_num == rail->port;

        rail->verbs->ack_async_event(&event);
        switch (type) {
        case IBV_EVENT_QP_FATAL:
        case IBV_EVENT_QP_REQ_ERR:
        case IBV_EVENT_QP_ACCESS_ERR: fail_rail(rdma, (int)(rail - rdma->rail), qp, GYRE_PEER_UNREACHABLE, text); break;
        case IBV_EVENT_CQ_ERR:
        case IBV_EVENT_DEVICE_FATAL:
            snprintf(rail->trouble, sizeof(rail->trouble), "%s", text);
            fail_rail(rdma, (int)(rail - rdma->rail), NULL, GYRE_SYSTEM, text);
            break;
        case IBV_EVENT_PORT_ERR:
            if (ours) {
                snprintf(rail->trouble, sizeof(rail->trouble), "%s", text);
                gy_log(GY_LOG_WARN, "RDMA device %s: %s", rail->name, text);
            }
            break;
        case IBV_EVENT_PORT_ACTIVE:
            if (ours)
                rail->trouble[0] = '\0';
            break;
        default: gy_log(GY_LOG_DEBUG, "RDMA device %s: %s", rail->name, text);
        }
    }
    report(rdma);
}

/* "uverbs0", the kernel's name for it; empty: unknown. */
static const char *kernel_name(const struct gy_rdma_rail *rail)
{
    const char *slash = strrchr(rail->context->device->dev_path, '/');

    return slash ? slash + 1 : "";
}

/* "remove@/devices/…/infiniband_verbs/uverbs0", followed by irrelevant lines. */
static bool tells_removal(const char *event, const struct gy_rdma_rail *rail)
{
    const char *last = strrchr(event, '/');

    return strncmp(event, "remove@", 7) == 0 && strstr(event, "/infiniband_verbs/") && last && kernel_name(rail)[0] &&
           strcmp(last + 1, kernel_name(rail)) == 0;
}

static void uevents(void *owner, uint32_t events)
{
    struct gy_rdma *rdma = owner;
    char event[UEVENT_BYTES];
    ssize_t bytes;
    (void)events;

    while (rdma->uevents.fd >= 0 && (bytes = recv(rdma->uevents.fd, event, sizeof(event) - 1, MSG_DONTWAIT)) > 0) {
        event[bytes] = '\0';
        for (int r = 0; r < rdma->rails; r++)
            if (tells_removal(event, &rdma->rail[r]))
                fail_rail(rdma, r, NULL, GYRE_SYSTEM, "it is being removed");
    }
    report(rdma);
}

/* Without uevents (a name space that receives none) a removal goes unnoticed while the device works. */
static void watch_removal(struct gy_rdma *rdma)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = 1};
    struct gy_error error = {.quiet = true};
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);

    rdma->uevents = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = uevents, .owner = rdma};
    if (fd < 0)
        return;
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        gy_poller_add(rdma->env.poller, &rdma->uevents, &error) != GYRE_SUCCESS) {
        close(fd);
        rdma->uevents.fd = -1;
    }
}

gyre_status gy_rdma_watch(struct gy_rdma *rdma, gy_poller_func completions, struct gy_error *error)
{
    gyre_status status = GYRE_SUCCESS;

    rdma->uevents.fd = -1;
    for (int r = 0; r < rdma->rails && status == GYRE_SUCCESS; r++) {
        struct gy_rdma_rail *rail = &rdma->rail[r];
        rail->owner = rdma;
        rail->completions = (struct gy_watch){
            .fd = rail->channel->fd, .events = EPOLLIN, .callback = completions, .owner = rail};
        rail->events = (struct gy_watch){
            .fd = rail->context->async_fd, .events = EPOLLIN, .callback = device_events, .owner = rail};
        status = gy_poller_add(rdma->env.poller, &rail->completions, error);
        if (status == GYRE_SUCCESS)
            status = gy_poller_add(rdma->env.poller, &rail->events, error);
    }
    if (rdma->rails > 0 && status == GYRE_SUCCESS)
        watch_removal(rdma);
    return status;
}

void gy_rdma_unwatch(struct gy_rdma *rdma, bool forked)
{
    if (!forked) {
        for (int r = 0; r < rdma->rails; r++) {
            gy_poller_remove(rdma->env.poller, &rdma->rail[r].completions);
            gy_poller_remove(rdma->env.poller, &rdma->rail[r].events);
            rdma->rail[r].completions.fd = rdma->rail[r].events.fd = -1;
        }
        gy_poller_remove(rdma->env.poller, &rdma->uevents);
    }
    if (rdma->rails > 0 && rdma->uevents.fd >= 0)
        close(rdma->uevents.fd);
    rdma->uevents.fd = -1;
}
