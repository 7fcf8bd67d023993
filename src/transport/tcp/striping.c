/* Several connections as one link, one for each interface that GYRE_INTERFACE names: rails.
 *
 *   the link's bytes, each way   | stripe | stripe | stripe | stripe | ...
 *   go over rail                     0        1        0        1      of two
 *
 * Frames, seals and their order are the same as over one connection: both ends count the bytes and so know the next
 * rail. The stream waits for the current rail, while kernel buffers at both ends keep the others busy. So all rails
 * carry equal amounts, and the slowest sets the pace.
 *
 * The first rail is made like any link. The lower rank's first payload on it lists its other interfaces' addresses
 * (RAILS). The higher rank connects to each from its own interface of that number. The lower one identifies the rail
 * by its end of the connection.
 *
 * The end of one rail is that of the link: a silent loss of bandwidth would go unnoticed. The others stay open,
 * unread, until the transport closes. So the peer sees no other end than the real one, and is told the reason
 * before. If the network is the cause, no other rank may ever detect it, as the overlay uses the first rail. The
 * rank that detects it tells all ranks, and reports itself as failed if its own interface is down. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "net/address.h"
#include "net/interface.h"
#include "transport/tcp/internal.h"

#define STRIPE (64u << 10)
#define OWN_TEXT (GY_INTERFACE_NAME + GY_ADDRESS_TEXT + 4)
#define LAST_WORDS GY_SECOND /* for the peer's data on other rails before it closed one */

struct tcp_rails {
    struct gy_receive_handler handler; /* receives RAILS, */
    struct gy_frame_out told;          /* which the other end sends */
    uint8_t addresses[(GY_RAILS_MOST - 1) * GY_ADDRESS_WIRE];
    struct sockaddr_storage there[GY_RAILS_MOST]; /* the peer's ends */
    struct tcp_rail *broken;                      /* NULL: none */
    int reason;                                   /* why sending on that rail failed: an errno */
    int64_t muted;                                /* since when */
};

static int number_of(const struct tcp_rail *rail)
{
    return (int)(rail - rail->link->rail);
}

/* "eth1 (10.1.0.1)" */
static const char *own_name(const struct tcp_rail *rail, char text_p[OWN_TEXT])
{
    const struct tcp *tcp = rail->link->tcp;
    int i = number_of(rail);
    char name[GY_INTERFACE_NAME], address[GY_ADDRESS_TEXT];
    snprintf(text_p, OWN_TEXT, "%s (%s)", gy_interface_name(tcp->env.config->interface, i, name),
             gy_address_format_host(&tcp->own[i], address));
    return text_p;
}

void gy_tcp_next_rail(struct tcp_way *way)
{
    struct tcp_link *link = way->rail->link;
    way->rail = &link->rail[(number_of(way->rail) + 1) % link->tcp->rails];
    way->left = STRIPE;
}

const char *gy_tcp_rails_name(const struct tcp_rail *rail, char text_p[GY_TCP_RAIL_TEXT])
{
    const struct tcp_rails *rails = rail->link->rails;
    char own[OWN_TEXT], there[GY_ADDRESS_TEXT];
    text_p[0] = '\0';
    if (rails)
        snprintf(text_p, GY_TCP_RAIL_TEXT, " over %s to %s", own_name(rail, own),
                 gy_address_format_host(&rails->there[number_of(rail)], there));
    return text_p;
}

void gy_tcp_describe(const struct gy_config *config, gyre_print_func print, void *user)
{
    char name[GY_INTERFACE_NAME], address[GY_ADDRESS_TEXT], line[GY_TCP_RAIL_TEXT];
    for (int i = 0; *config->interface && i < gy_config_rails(config); i++) {
        struct gy_error error = {.quiet = true};
        struct sockaddr_storage own;
        bool there = gy_interface_address(config->interface, i, AF_UNSPEC, &own, &error) == GYRE_SUCCESS;
        snprintf(line, sizeof(line), "  tcp over %s: %s", gy_interface_name(config->interface, i, name),
                 there ? gy_address_format_host(&own, address) : "no such interface, or it is down or has no address");
        print(user, line);
    }
}

/* ---- making them ---- */

static void *introduction_place(void *user, int peer, const struct gy_frame *frame)
{
    struct tcp_link *link = user;
    const struct gy_receive_handler *above = &link->tcp->env.handler;
    if (frame->kind != GY_FRAME_RAILS)
        return above->place(above->user, peer, frame);
    return frame->bytes == (unsigned)(link->tcp->rails - 1) * GY_ADDRESS_WIRE ? link->rails->addresses : NULL;
}

static gyre_status connect_others(struct tcp_link *link, const uint8_t *addresses, struct gy_error *error)
{
    struct tcp *tcp = link->tcp;
    struct gy_world *world = tcp->env.world;
    gyre_status status = GYRE_SUCCESS;
    for (int i = 1; i < tcp->rails && status == GYRE_SUCCESS; i++, addresses += GY_ADDRESS_WIRE) {
        struct gy_route route = {.from = tcp->own[i]};
        if (!gy_address_decode(addresses, &route.to) || route.to.ss_family != route.from.ss_family)
            return gy_error_set(error, GYRE_PROTOCOL, link->base.peer,
                                "rank %d told an address for its interface %d that rank %d cannot use", link->base.peer,
                                i + 1, world->rank);
        gy_address_take_scope(&route.to, &route.from);
        gy_address_set_port(&route.to, gy_address_port(&world->members[link->base.peer].address));
        link->rails->there[i] = route.to;
        status = gy_world_connect(world, link->base.peer, GY_PURPOSE_TCP, &route, tcp->on_connected, &link->rail[i],
                                  error);
    }
    return status;
}

/* Frames before it (a grant) and after it are for the layer above. The link reports a failure. */
static gyre_status introduction_arrived(void *user, int peer, const struct gy_frame *frame, const void *payload)
{
    struct tcp_link *link = user;
    const struct gy_receive_handler *above = &link->tcp->env.handler;
    struct gy_error error = {.rank = peer, .quiet = true};
    if (frame->kind != GY_FRAME_RAILS)
        return above->arrived(above->user, peer, frame, payload);
    link->handler = above;
    if (!payload || introduction_place(user, peer, frame) == NULL)
        gy_error_set(&error, GYRE_PROTOCOL, peer, "rank %d told %u bytes of addresses (RAILS)", peer, frame->bytes);
    else
        connect_others(link, payload, &error);
    if (error.status != GYRE_SUCCESS)
        gy_link_fail(&link->base, error.status, "%s", error.text);
    return GYRE_SUCCESS;
}

static void introduce(struct tcp_link *link)
{
    const struct tcp *tcp = link->tcp;
    struct tcp_rails *rails = link->rails;
    for (int i = 1; i < tcp->rails; i++)
        gy_address_encode(&tcp->own[i], rails->addresses + (i - 1) * GY_ADDRESS_WIRE);
    rails->told.header.kind = GY_FRAME_RAILS;
    rails->told.header.epoch = tcp->env.world->epoch;
    rails->told.header.bytes = (uint32_t)(tcp->rails - 1) * GY_ADDRESS_WIRE;
    rails->told.payload = rails->addresses;
    gy_link_push(&link->base, &rails->told);
}

bool gy_tcp_rails_make(struct tcp_link *link)
{
    struct tcp *tcp = link->tcp;
    for (int i = 0; i < GY_RAILS_MOST; i++)
        link->rail[i] = (struct tcp_rail){.watch.fd = -1, .link = link};
    link->handler = &tcp->env.handler;
    link->out = link->in = (struct tcp_way){link->rail, tcp->rails > 1 ? STRIPE : SIZE_MAX};
    if (tcp->rails == 1)
        return true;
    link->rails = gy_alloc_zero(1, sizeof(*link->rails));
    if (!link->rails)
        return false;
    link->rails->there[0] = tcp->env.world->members[link->base.peer].address;
    link->rails->handler = (struct gy_receive_handler){
        .user = link, .place = introduction_place, .arrived = introduction_arrived};
    if (link->base.peer < tcp->env.world->rank)
        link->handler = &link->rails->handler;
    else
        introduce(link);
    return true;
}

void gy_tcp_rails_connected(struct tcp_rail *rail)
{
    struct sockaddr_storage *there = &rail->link->rails->there[number_of(rail)];
    socklen_t bytes = sizeof(*there);
    (void)getpeername(rail->watch.fd, (struct sockaddr *)there, &bytes); /* for messages only */
}

int gy_tcp_rails_come_by(const struct tcp *tcp, int fd)
{
    struct sockaddr_storage at = {0};
    socklen_t bytes = sizeof(at);
    if (tcp->rails == 1 || getsockname(fd, (struct sockaddr *)&at, &bytes) != 0)
        return 0;
    for (int i = 1; i < tcp->rails; i++)
        if (gy_address_same_host(&at, &tcp->own[i]))
            return i;
    return 0;
}

/* ---- their ends ---- */

/* True if the peer did not cause it: the peer's kernel sends an end or a reset. */
static bool is_network(int reason)
{
    return reason == ETIMEDOUT || reason == EHOSTUNREACH || reason == ENETUNREACH || reason == ENETDOWN;
}

/* Others also detect a lost host, but report the same failure. */
static void tell_all(const struct tcp_rail *rail, int reason)
{
    const struct tcp *tcp = rail->link->tcp;
    const struct gy_world *world = tcp->env.world;
    const char *interfaces = tcp->env.config->interface;
    int i = number_of(rail), peer = rail->link->base.peer;
    char which[GY_TCP_RAIL_TEXT], text[GY_TCP_RAIL_TEXT + 200];
    bool own = !gy_interface_serves(interfaces, i, &tcp->own[i]);
    if (own)
        snprintf(text, sizeof(text), "rank %d has lost %s: it is down, or has no link, or another address", world->rank,
                 own_name(rail, which));
    else
        snprintf(text, sizeof(text), "rank %d cannot be reached%s: %s (seen by rank %d)", peer,
                 gy_tcp_rails_name(rail, which), gy_tcp_reason(reason), world->rank);
    if (!world->overlay)
        return;
    if (!own) {
        gy_overlay_report_silence(world->overlay, peer, text);
        return;
    }
    gy_log(GY_LOG_ERROR, "%s", text);
    gy_overlay_report(world->overlay, GYRE_PEER_UNREACHABLE, world->rank, text);
}

const char *gy_tcp_reason(int reason)
{
    if (reason == EMSGSIZE)
        return "nothing that was sent is acknowledged; if the host answers otherwise, does the path drop long packets? "
               "Compare the MTU of both interfaces (ip link), or set net.ipv4.tcp_mtu_probing=1";
    return reason ? strerror(reason) : "closed by the peer";
}

void gy_tcp_fail(struct tcp_rail *rail, int reason)
{
    char which[GY_TCP_RAIL_TEXT];
    gy_link_fail(&rail->link->base, GYRE_PEER_UNREACHABLE, "the tcp connection to rank %d%s broke: %s",
                 rail->link->base.peer, gy_tcp_rails_name(rail, which), gy_tcp_reason(reason));
    if (rail->link->rails)
        gy_tcp_rails_fail(rail, reason);
}

void gy_tcp_rails_fail(struct tcp_rail *rail, int reason)
{
    rail->link->rails->broken = rail;
    if (is_network(reason))
        tell_all(rail, reason);
}

/* While the peer leaves, the end of one rail may be seen before the last bytes of another. These are read first, and
 * the link ends where the stream does. A peer that stays has sent the reason, or will find the rail broken as well. */
void gy_tcp_rails_send_failed(struct tcp_rail *rail, int reason)
{
    struct tcp_rails *rails = rail->link->rails;
    rail->link->send_failed = true;
    gy_poller_remove(rail->link->tcp->env.poller, &rail->watch);
    if (is_network(reason))
        gy_tcp_fail(rail, reason);
    if (rails->broken)
        return;
    rails->broken = rail;
    rails->reason = reason;
    rails->muted = gy_now();
}

void gy_tcp_rails_end(struct tcp_rail *rail)
{
    int reason = 0;
    socklen_t bytes = sizeof(reason);
    if (getsockopt(rail->watch.fd, SOL_SOCKET, SO_ERROR, &reason, &bytes) != 0)
        reason = errno;
    gy_tcp_rails_send_failed(rail, reason);
}

void gy_tcp_rails_check(struct tcp_link *link)
{
    const struct tcp_rails *rails = link->rails;
    if (link->send_failed && link->base.state == GY_LINK_OPEN && gy_now() - rails->muted > LAST_WORDS)
        gy_tcp_fail(rails->broken, rails->reason);
}

void gy_tcp_rails_rest(struct tcp_link *link)
{
    for (int i = 0; i < link->tcp->rails; i++) {
        struct tcp_rail *rail = &link->rail[i];
        if (rail->watch.fd < 0)
            continue;
        gy_poller_remove(link->tcp->env.poller, &rail->watch);
        if (rail != link->rails->broken)
            continue;
        close(rail->watch.fd);
        rail->watch.fd = -1;
    }
}
