/* The link of a rank to itself: a queue. The next progress call hands a posted frame to the receive handler, payload
 * in place. */
#include "core/mem.h"
#include "transport/link.h"

struct self {
    struct gy_transport_env env;
    struct gy_link link;
    bool linked;
};

#define SELF_BURST 16 /* frames per progress */

/* The only link is a member of its instance. */
static struct self *self_of(struct gy_link *link)
{
    return (struct self *)((char *)link - offsetof(struct self, link));
}

static gyre_status self_open(const struct gy_transport_env *env, void **instance_p, struct gy_error *error)
{
    struct self *self = gy_alloc_zero(1, sizeof(*self));
    if (!self)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the link of rank %d to itself", env->world->rank);
    self->env = *env;
    self->link.peer = env->world->rank;
    *instance_p = self;
    return GYRE_SUCCESS;
}

static bool self_reaches(void *instance, int peer)
{
    return peer == ((struct self *)instance)->env.world->rank;
}

static gyre_status self_link(void *instance, int peer, struct gy_link **link_p, struct gy_error *error)
{
    struct self *self = instance;
    if (!self_reaches(instance, peer))
        return gy_error_set(error, GYRE_INTERNAL, -1, "transport self was asked for a link to rank %d", peer);
    self->linked = true;
    *link_p = &self->link;
    return GYRE_SUCCESS;
}

static void self_post(struct gy_link *link, struct gy_frame_out *frame)
{
    gy_link_push(link, frame);
}

static bool self_progress(struct gy_link *link)
{
    const struct gy_receive_handler *handler = &self_of(link)->env.handler;
    bool moved = gy_link_report(link, handler);
    for (int i = 0; i < SELF_BURST && link->first && link->state == GY_LINK_OPEN; i++) {
        struct gy_frame_out *frame = link->first;
        struct gy_frame header = frame->header;
        header.magic = GY_FRAME_MAGIC;
        header.version = GY_WIRE_VERSION;
        /* The receive handler may post from here: that appends and leaves the head alone. */
        if (!gy_link_arrived(link, handler, &header, header.bytes ? frame->payload : NULL))
            break;
        if (link->first == frame) /* unless the receive handler closed this link */
            gy_link_complete_first(link);
        moved = true;
    }
    return moved;
}

static bool self_arm(void *instance)
{
    struct self *self = instance;
    return !self->link.first || self->link.state == GY_LINK_DEAD;
}

static void self_disarm(void *instance)
{
    (void)instance;
}

static void self_close(void *instance)
{
    struct self *self = instance;
    self->link.first = self->link.last = NULL;
    self->link.state = GY_LINK_DEAD;
}

/* Nothing is in flight: progress delivers queued frames in the caller's own thread. */
static void self_stop(void *instance)
{
    (void)instance;
}

static void self_fini(void *instance, bool forked)
{
    (void)forked;
    gy_free(instance);
}

const struct gy_transport_ops gy_transport_self = {
    .name = "self",
    .counter = offsetof(gyre_counters, self_bytes),
    .eager = GY_FRAME_SHORT,
    .to_self = true,
    .available = gy_transport_always_available,
    .open = self_open,
    .reaches = self_reaches,
    .link = self_link,
    .post = self_post,
    .send_short = gy_transport_send_no_short,
    .progress = self_progress,
    .check = gy_transport_check_nothing,
    .describe = gy_transport_describe_nothing,
    .round_trip = gy_transport_round_trip_unknown,
    .arm = self_arm,
    .disarm = self_disarm,
    .register_memory = gy_transport_register_nothing,
    .unregister_memory = gy_transport_unregister_nothing,
    .register_device = gy_transport_register_no_device,
    .expose = gy_transport_expose_nothing,
    .conceal = gy_transport_conceal_nothing,
    .access = gy_transport_access_nothing,
    .reads_in_place = gy_transport_reads_nothing_in_place,
    .close = self_close,
    .stop = self_stop,
    .fini = self_fini,
};
