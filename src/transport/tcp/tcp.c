/* Links over TCP, one socket per pair of ranks, made on first use: the higher rank connects, the lower one accepts.
 * Here are the connections and the operations table. tcp/send.c and tcp/receive.c move the bytes; striping.c makes
 * several sockets one link if GYRE_INTERFACE names several interfaces.
 *
 * Invariants: progress never waits; EPOLLIN is always watched on the rail that is read. EPOLLOUT is watched only on
 * the one that is written, while frames are stuck and a thread sleeps, or is about to. */
#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h> /* the C library's own has an older tcp_info */
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/secret_memory.h"
#include "net/interface.h"
#include "net/socket.h"
#include "transport/tcp/internal.h"

#define UNANSWERED_CHECKS 2
#define STOP_NS (200 * GY_MILLISECOND)
#define UNSENT_BYTES (256 << 10)

static void watch_out(struct tcp_link *link)
{
    bool stuck = link->base.first && !link->send_failed;
    for (int i = 0; i < link->tcp->rails; i++) {
        struct tcp_rail *rail = &link->rail[i];
        uint32_t events = (rail == link->in.rail ? (uint32_t)EPOLLIN : 0) |
                          (rail == link->out.rail && stuck ? (uint32_t)EPOLLOUT : 0);
        if (rail->watch.fd >= 0 && rail->watch.events != events)
            gy_poller_change(link->tcp->env.poller, &rail->watch, events);
    }
}

/* Another thread fell asleep when nothing was stuck: it is woken when there is room, since this thread may leave. */
static void tell_sleeper(struct tcp_link *link)
{
    if (link->base.first && gy_poller_has_sleeper(link->tcp->env.poller))
        watch_out(link);
}

static void disconnect(struct tcp_link *link)
{
    gy_tcp_pool_leave(link);
    for (int i = 0; i < link->tcp->rails; i++) {
        struct tcp_rail *rail = &link->rail[i];
        if (rail->watch.fd < 0)
            continue;
        gy_poller_remove(link->tcp->env.poller, &rail->watch);
        close(rail->watch.fd);
        rail->watch.fd = -1;
    }
}

/* A late check is no silence: two checks must find it. */
static void tcp_check(struct gy_link *base, int64_t timeout)
{
    struct tcp_link *link = (struct tcp_link *)base;
    for (int i = 0; i < link->tcp->rails && base->state == GY_LINK_OPEN && !link->send_failed; i++) {
        struct tcp_rail *rail = &link->rail[i];
        if (rail->watch.fd >= 0 && gy_socket_is_stuck(rail->watch.fd, gy_now(), timeout, &rail->progress)) {
            if (link->rails)
                gy_tcp_rails_send_failed(rail, EMSGSIZE);
            else
                gy_tcp_fail(rail, EMSGSIZE);
        } else if (rail->watch.fd < 0 || !gy_socket_is_unanswered(rail->watch.fd, timeout))
            rail->unanswered = 0;
        else if (++rail->unanswered < UNANSWERED_CHECKS)
            continue;
        else if (link->rails)
            gy_tcp_rails_send_failed(rail, ETIMEDOUT);
        else
            gy_tcp_fail(rail, rail->progress.since ? EMSGSIZE : ETIMEDOUT);
    }
}

static bool tcp_progress(struct gy_link *base)
{
    struct tcp_link *link = (struct tcp_link *)base;
    bool moved = false;
    if (base->state == GY_LINK_OPEN) {
        moved = gy_tcp_receive(link);
        if (base->state == GY_LINK_OPEN)
            moved |= gy_tcp_flush(link);
        if (link->rails)
            gy_tcp_rails_check(link);
        if (link->rails) /* a thread may be asleep on the previous read rail */
            watch_out(link);
        else
            tell_sleeper(link);
    }
    if (base->state != GY_LINK_OPEN) {
        if (link->rails)
            gy_tcp_rails_rest(link);
        else
            disconnect(link);
    }
    return gy_link_report(base, &link->tcp->env.handler) || moved;
}

static void readable(void *owner, uint32_t events)
{
    struct tcp_rail *rail = owner;
    struct tcp_link *link = rail->link;
    if (events & (EPOLLERR | EPOLLHUP) && rail != link->in.rail)
        gy_tcp_rails_end(rail);
    tcp_progress(&link->base);
    if (rail->watch.events & EPOLLOUT)
        watch_out(link);
}

/* True if both ends have one address: then only this machine's kernel is between them. */
static bool is_on_one_machine(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t bytes = sizeof(here), same = sizeof(there);
    if (getsockname(fd, (struct sockaddr *)&here, &bytes) != 0 ||
        getpeername(fd, (struct sockaddr *)&there, &same) != 0 || here.ss_family != there.ss_family)
        return false;
    if (here.ss_family == AF_INET)
        return ((struct sockaddr_in *)&here)->sin_addr.s_addr == ((struct sockaddr_in *)&there)->sin_addr.s_addr;
    return here.ss_family == AF_INET6 &&
           memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr, &((struct sockaddr_in6 *)&there)->sin6_addr,
                  sizeof(struct in6_addr)) == 0;
}

/* The kernel's queue of a connection grows to megabytes. A grant behind all of it would be late by a tenth of a
 * second on a slow wire, while the other direction is idle. So the unsent bytes there are limited; bytes in flight
 * do not count. */
static void keep_short(int fd)
{
    int bytes = UNSENT_BYTES;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes, sizeof(bytes)); /* slower without, not wrong */
}

/* A message leaves at once. Without a wire there is no congestion: pacing, as by bbr, takes up to twice as long for
 * nothing. So the simplest control is used, which every kernel permits. Over a wire it is the user's choice or the
 * system's; tcp_open has checked that the kernel has it. */
static void set_options(int fd, bool same_machine, const char *congestion)
{
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* slower without, not wrong */
    if (same_machine)
        congestion = "reno";
    else
        keep_short(fd);
    if (*congestion)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion, (socklen_t)strlen(congestion));
}

static gyre_status check_congestion(const char *name, struct gy_error *error)
{
    gyre_status status = GYRE_SUCCESS;
    int fd = *name ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    if (fd >= 0 && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) != 0)
        status = gy_error_set(
            error, GYRE_BAD_CONFIGURATION, -1,
            "GYRE_TCP_CONGESTION=%s: %s; net.ipv4.tcp_allowed_congestion_control has those that may be named", name,
            errno == ENOENT ? "the kernel does not have it" : strerror(errno));
    if (fd >= 0)
        close(fd);
    return status;
}

/* All data is sealed with these keys from the first byte on. Returns false if out of memory. */
static bool seal(struct tcp_link *link, const struct gy_seal_keys *keys)
{
    if (keys->suite == GY_SUITE_OFF)
        return true;
    if (!gy_seal_begin(&link->opens, keys->suite, keys->in))
        return false;
    link->envelopes = gy_envelopes_make(keys->suite, keys->out);
    return link->envelopes != NULL;
}

/* A link's seals are those of its first rail. */
void gy_tcp_connected(struct tcp_rail *rail, int fd, const struct gy_seal_keys *keys)
{
    struct tcp_link *link = rail->link;
    struct gy_error error;
    gy_error_clear(&error);
    link->same_machine = is_on_one_machine(fd);
    set_options(fd, link->same_machine, link->tcp->env.config->tcp_congestion);
    gy_socket_await_readers(fd);
    rail->unanswered = 0;
    rail->watch = (struct gy_watch){
        .fd = fd, .events = EPOLLIN, .callback = readable, .owner = rail, .listen = gy_tcp_end_quiet};
    if (rail == link->rail && !seal(link, keys))
        gy_error_set(&error, GYRE_NO_MEMORY, -1, "rank %d has no memory to seal its link to rank %d",
                     link->tcp->env.world->rank, link->base.peer);
    if (error.status != GYRE_SUCCESS || gy_poller_add(link->tcp->env.poller, &rail->watch, &error) != GYRE_SUCCESS) {
        close(fd);
        rail->watch.fd = -1;
        gy_link_fail(&link->base, error.status, "%s", error.text);
    } else {
        if (link->rails)
            gy_tcp_rails_connected(rail);
        gy_tcp_flush(link);
        watch_out(link); /* the caller may be asleep in the poller already */
    }
}

static struct tcp_link *find(struct tcp *tcp, int peer)
{
    struct tcp_link *link = tcp->links;
    while (link && link->base.peer != peer)
        link = link->next;
    return link;
}

/* The descriptor's new owner closes it; the keys are erased. */
static void forget(struct tcp_parked *parked)
{
    gy_secret_free(parked->keys);
    *parked = (struct tcp_parked){.fd = -1};
}

/* Returns false if out of memory. */
static bool park(struct tcp_parked *parked, int fd, const struct gy_seal_keys *keys)
{
    if (keys->suite != GY_SUITE_OFF) {
        parked->keys = gy_secret_alloc(sizeof(*keys), GY_SECRET_WIPED);
        if (!parked->keys)
            return false;
        *parked->keys = *keys;
    }
    parked->fd = fd;
    return true;
}

/* The listener: a lower rank's half. Nothing is read before the layer above requests the link. */
static void accepted(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct tcp *tcp = user;
    struct tcp_link *link = find(tcp, rank);
    int number = gy_tcp_rails_come_by(tcp, fd);
    const char *why = rank <= tcp->env.world->rank               ? "the lower rank is the one that waits"
                      : link && link->base.state != GY_LINK_OPEN ? "its link has failed already"
                      : !link && number > 0                      ? "it came before the first of its link"
                      : link && link->rail[number].watch.fd >= 0 ? "there is one already"
                      : !link && tcp->parked[rank].fd >= 0       ? "there is one already"
                                                                 : NULL;
    if (why) {
        gy_log(GY_LOG_WARN, "a data connection of rank %d was refused: %s", rank, why);
        close(fd);
    } else if (link) {
        gy_tcp_connected(&link->rail[number], fd, keys);
    } else if (!park(&tcp->parked[rank], fd, keys)) {
        gy_log(GY_LOG_WARN, "rank %d has no memory for the keys of its link to rank %d", tcp->env.world->rank, rank);
        close(fd);
    }
}

/* The connection's callback: the higher rank's half. Close cancels pending ones, so the rail is valid. */
static void on_connected(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct tcp_rail *rail = user;
    struct tcp_link *link = rail->link;
    char which[GY_TCP_RAIL_TEXT];
    if (link->base.state != GY_LINK_OPEN) {
        if (fd >= 0)
            close(fd);
    } else if (fd >= 0) {
        gy_tcp_connected(rail, fd, keys);
    } else {
        int reason = link->tcp->env.world->connect_errnum;
        gy_link_fail(&link->base, gy_error_is_shortage(reason) ? GYRE_SYSTEM : GYRE_PEER_UNREACHABLE,
                     "no tcp connection to rank %d%s could be made: %s", rank, gy_tcp_rails_name(rail, which),
                     strerror(reason));
        if (link->rails)
            gy_tcp_rails_fail(rail, reason);
        gy_link_report(&link->base, &link->tcp->env.handler);
    }
}

/* ---- the table ---- */

static gyre_status tcp_open(const struct gy_transport_env *env, void **instance_p, struct gy_error *error)
{
    size_t size = (size_t)env->world->size;
    gyre_status status = check_congestion(env->config->tcp_congestion, error);
    if (status != GYRE_SUCCESS)
        return status;
    struct tcp *tcp = gy_alloc_zero(1, sizeof(*tcp));
    struct tcp_parked *parked = gy_alloc_zero(size, sizeof(*parked));
    if (!tcp || !parked) {
        gy_free(tcp);
        gy_free(parked);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the tcp transport");
    }
    for (size_t i = 0; i < size; i++)
        parked[i].fd = -1;
    tcp->env = *env;
    tcp->on_connected = on_connected;
    tcp->parked = parked;
    tcp->rails = gy_config_rails(env->config);
    status = gy_interface_addresses(env->config, &env->world->members[env->world->rank].address, tcp->own, error);
    if (status == GYRE_SUCCESS)
        status = gy_world_on(env->world, GY_PURPOSE_TCP, accepted, tcp, error);
    if (status != GYRE_SUCCESS) {
        gy_free(tcp);
        gy_free(parked);
        return status;
    }
    *instance_p = tcp;
    return GYRE_SUCCESS;
}

static bool tcp_reaches(void *instance, int peer)
{
    return peer != ((struct tcp *)instance)->env.world->rank;
}

static gyre_status no_memory(const struct tcp *tcp, int peer, struct gy_error *error)
{
    return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory for the link to rank %d",
                        tcp->env.world->rank, peer);
}

static gyre_status tcp_link(void *instance, int peer, struct gy_link **link_p, struct gy_error *error)
{
    static const struct gy_seal_keys plain = {.suite = GY_SUITE_OFF};
    struct tcp *tcp = instance;
    struct tcp_link *link = find(tcp, peer);
    if (link) {
        *link_p = &link->base;
        return GYRE_SUCCESS;
    }
    if (!tcp_reaches(instance, peer))
        return gy_error_set(error, GYRE_INTERNAL, -1,
                            "transport tcp was asked for a link to rank %d, which is this one", peer);
    link = gy_alloc(sizeof(*link));
    if (!link)
        return no_memory(tcp, peer, error);
    memset(link, 0, offsetof(struct tcp_link, ahead));
    link->base.peer = peer;
    link->tcp = tcp;
    if (!gy_tcp_rails_make(link)) {
        gy_free(link);
        return no_memory(tcp, peer, error);
    }
    gyre_status status = GYRE_SUCCESS;
    if (peer < tcp->env.world->rank)
        status = gy_world_connect(tcp->env.world, peer, GY_PURPOSE_TCP, NULL, on_connected, &link->rail[0], error);
    if (status != GYRE_SUCCESS) {
        gy_free(link->rails);
        gy_free(link);
        return status;
    }
    link->next = tcp->links;
    tcp->links = link;
    struct tcp_parked *parked = &tcp->parked[peer];
    if (parked->fd >= 0)
        gy_tcp_connected(&link->rail[0], parked->fd, parked->keys ? parked->keys : &plain);
    forget(parked);
    *link_p = &link->base;
    return GYRE_SUCCESS;
}

/* A grant overtakes payloads: the peer needs it to send concurrently. */
static void tcp_post(struct gy_link *base, struct gy_frame_out *frame)
{
    struct tcp_link *link = (struct tcp_link *)base;
    if (frame->header.kind != GY_FRAME_CREDIT)
        gy_tcp_listen(link);
    gy_tcp_zero_copy_mark(link, &frame->header);
    if (frame->header.kind == GY_FRAME_GRANT)
        gy_link_push_ahead(base, frame, link->envelopes ? link->envelopes->count : base->first && base->first->sent);
    else
        gy_link_push(base, frame);
    bool deferred = link->deferred;
    link->deferred = frame->coalesce && (deferred || base->first == frame);
    /* behind frames that were tried, the socket was full a moment ago: progress continues */
    if (base->state == GY_LINK_OPEN && !frame->coalesce && (base->first == frame || deferred))
        gy_tcp_flush(link);
    if (base->state == GY_LINK_OPEN)
        tell_sleeper(link);
}

/* Returns the kernel's recent minimum: queueing on the path does not count. Bytes over several connections in turns
 * are not bounded by one path's time. */
static int64_t tcp_round_trip(const struct gy_link *base)
{
    const struct tcp_link *link = (const struct tcp_link *)base;
    struct tcp_info info;
    socklen_t bytes = sizeof(info);
    int fd = link->rails ? -1 : link->rail[0].watch.fd;
    if (fd < 0 || getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0 ||
        bytes < offsetof(struct tcp_info, tcpi_min_rtt) + sizeof(info.tcpi_min_rtt) || info.tcpi_min_rtt == UINT32_MAX)
        return 0;
    return (int64_t)gy_max_size(info.tcpi_min_rtt, 1) * 1000;
}

static bool tcp_arm(void *instance)
{
    struct tcp *tcp = instance;
    for (struct tcp_link *link = tcp->links; link; link = link->next) {
        if (link->base.state == GY_LINK_FAILED || (link->base.state == GY_LINK_OPEN && gy_tcp_digestible(link)))
            return false;
        watch_out(link);
        gy_tcp_expect(link);
    }
    return true; /* epoll is level-triggered: data in the kernel makes it return */
}

static void tcp_disarm(void *instance)
{
    (void)instance;
}

static void tcp_close(void *instance)
{
    struct tcp *tcp = instance;
    if (tcp->closed)
        return;
    tcp->closed = true;
    gy_world_off(tcp->env.world, GY_PURPOSE_TCP, tcp);
    for (struct tcp_link *link = tcp->links; link; link = link->next) {
        for (int i = 0; i < tcp->rails; i++)
            gy_world_cancel_connectors(tcp->env.world, &link->rail[i]);
        disconnect(link);
        link->base.first = link->base.last = NULL;
        link->base.state = GY_LINK_DEAD;
    }
    for (int i = 0; i < tcp->env.world->size; i++) {
        if (tcp->parked[i].fd >= 0)
            close(tcp->parked[i].fd);
        forget(&tcp->parked[i]);
    }
}

/* True if the kernel has sent all that it accepted. It delays small packets while many are unacknowledged. */
static bool has_left(const struct tcp_link *link)
{
    for (int i = 0; i < link->tcp->rails; i++) {
        int unsent = 0, fd = link->rail[i].watch.fd;
        if (fd >= 0 && ioctl(fd, SIOCOUTQNSD, &unsent) == 0 && unsent > 0)
            return false;
    }
    return true;
}

/* Passes all queued frames to the kernel, as far as it accepts them before the deadline. The first rail may be
 * connected while the current one is still connecting. */
static void hand_over(struct tcp_link *link, int64_t deadline)
{
    while (link->base.state == GY_LINK_OPEN && link->rail[0].watch.fd >= 0 && link->base.first && !link->send_failed &&
           gy_now() < deadline) {
        struct pollfd room = {.fd = link->out.rail->watch.fd, .events = POLLOUT};
        if (room.fd < 0)
            gy_poller_poll(link->tcp->env.poller, 5 * GY_MILLISECOND);
        else if (!gy_tcp_flush(link))
            (void)poll(&room, 1, 5);
    }
}

/* Sends the queue and shuts down the sending side. Closing with unread bytes would reset the connection and could
 * lose data in flight. */
static void tcp_stop(void *instance)
{
    struct tcp *tcp = instance;
    int64_t deadline = gy_now() + STOP_NS;
    for (struct tcp_link *link = tcp->links; link; link = link->next) {
        hand_over(link, deadline);
        for (int i = 0; i < tcp->rails; i++)
            if (link->rail[i].watch.fd >= 0)
                (void)shutdown(link->rail[i].watch.fd, SHUT_WR);
    }
    for (struct tcp_link *link = tcp->links; link; link = link->next)
        while (link->base.state == GY_LINK_OPEN && !link->send_failed && !has_left(link) && gy_now() < deadline)
            (void)poll(NULL, 0, 1);
}

static void tcp_fini(void *instance, bool forked)
{
    struct tcp *tcp = instance;
    if (!forked)
        tcp_close(instance);
    while (tcp->links) {
        struct tcp_link *link = tcp->links;
        tcp->links = link->next;
        for (int i = 0; forked && i < tcp->rails; i++) /* the epoll set is the parent's: not changed */
            if (link->rail[i].watch.fd >= 0)
                close(link->rail[i].watch.fd);
        gy_envelopes_free(link->envelopes);
        gy_free(link->rails);
        gy_seal_end(&link->opens);
        gy_free(link);
    }
    for (int i = 0; forked && i < tcp->env.world->size; i++) {
        if (tcp->parked[i].fd >= 0)
            close(tcp->parked[i].fd);
        forget(&tcp->parked[i]);
    }
    gy_tcp_pool_free(&tcp->pool);
    gy_free(tcp->parked);
    gy_free(tcp);
}

const struct gy_transport_ops gy_transport_tcp = {
    .name = "tcp",
    .counter = offsetof(gyre_counters, tcp_bytes),
    .eager = GY_TCP_EAGER,
    .has_descriptor = true,
    .socket = true,
    .posts_quickly = true,
    .seals = true,
    .available = gy_transport_always_available,
    .open = tcp_open,
    .reaches = tcp_reaches,
    .link = tcp_link,
    .post = tcp_post,
    .send_short = gy_tcp_send_short,
    .progress = tcp_progress,
    .check = tcp_check,
    .describe = gy_transport_describe_nothing,
    .round_trip = tcp_round_trip,
    .arm = tcp_arm,
    .disarm = tcp_disarm,
    .register_memory = gy_transport_register_nothing,
    .unregister_memory = gy_transport_unregister_nothing,
    .register_device = gy_transport_register_no_device,
    .expose = gy_transport_expose_nothing,
    .conceal = gy_transport_conceal_nothing,
    .access = gy_transport_access_nothing,
    .reads_in_place = gy_transport_reads_nothing_in_place,
    .close = tcp_close,
    .stop = tcp_stop,
    .fini = tcp_fini,
};
