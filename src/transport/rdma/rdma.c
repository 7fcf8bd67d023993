/* Links over RDMA: reliable connections of InfiniBand or RoCE v2, one set of queue pairs per pair of ranks, made on
 * first use. The picture is in rdma/internal.h; here are the operations table and sleeping.
 *
 * The bootstrap exchanges each rank's kinds of device (gy_member.fabrics), so both ends know without messages whether
 * they are joined by RDMA. If one has no device the next transport, TCP, is used, and the log says so once.
 *
 * Sleeping: arm requests an event from every completion queue and then polls the queue once more. A completion
 * before the request is seen then; a later one makes the channel readable, which is in the context's poller. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/single_threaded.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "transport/rdma/internal.h"

#define STOP_NS (800 * GY_MILLISECOND)    /* some retransmissions of the device, not just a queue */
#define POLLS 16                          /* polls of memory in one progress call */
#define COLLECT_EVERY 8                   /* frames found in memory, or progress calls that found none */
#define END_GRACE_NS (2 * GY_MILLISECOND) /* a completion may follow the packet, and the socket's end, a little later */

/* ---- progress ---- */

/* True if there is nothing to do before a completion, a post or the socket's data. */
static bool is_quiet(const struct gy_rdma_link *link)
{
    return link->base.state == GY_LINK_OPEN && !link->base.first && !link->access_first && !link->ended &&
           !gy_rdma_owes(link) && !gy_rdma_digestible(link) && link->pulls_posted == link->pulls;
}

static bool advance(struct gy_rdma_link *link)
{
    bool moved = false;

    if (link->base.state == GY_LINK_OPEN)
        moved |= gy_rdma_digest(link);
    if (link->base.state == GY_LINK_OPEN) {
        gy_rdma_return_credit(link);
        if (link->base.first) {
            moved |= gy_rdma_flush(link);
            moved |= gy_rdma_reap(link);
        }
        if (link->pulls_posted < link->pulls)
            gy_rdma_pull_post(link);
        if (link->rdma->exposed) { /* a rank without exposed memory makes no accesses */
            moved |= gy_rdma_access_reap(link);
            moved |= gy_rdma_access_flush(link);
        }
    }
    return moved;
}

/* Polling memory is cheap, polling the completion queue is not. While frames arrive silently the queue is polled
 * occasionally: for loud ones, and to prevent its overflow. */
static bool poll_and_collect(struct gy_rdma_link *link)
{
    bool polls = link->polling != GY_RDMA_POLLS_NOT, found = polls && gy_rdma_glance(link, POLLS);

    if (found ? link->next_chunk % COLLECT_EVERY != 0
              : polls && link->quiet && link->loud == 0 && ++link->glances % COLLECT_EVERY != 0)
        return found;
    link->loud -= link->loud > 0;
    return gy_rdma_collect(link) || found;
}

static bool progress(struct gy_link *base)
{
    struct gy_rdma_link *link = (struct gy_rdma_link *)base;
    bool moved = false;

    if (base->state == GY_LINK_OPEN && link->made && link->staging) {
        moved = poll_and_collect(link);
        if (!moved && link->quiet && base->state == GY_LINK_OPEN) /* most polls of a waiting thread */
            return false;
        moved |= advance(link);
        gy_rdma_offer_to_poll(link);
        link->quiet = is_quiet(link);
        if (link->ended && !moved && base->state == GY_LINK_OPEN && gy_now() - link->ended > END_GRACE_NS)
            gy_link_fail(base, GYRE_PEER_UNREACHABLE, "the rdma connection to rank %d broke: closed by the peer",
                         base->peer);
    }
    bool told = gy_link_report(base, &link->rdma->env.handler);
    if (base->state != GY_LINK_OPEN)
        gy_rdma_disconnect(link);
    return told || moved;
}

/* A failure to arm a queue would let the rank sleep for ever. */
static bool arm_queue(struct gy_rdma_link *link, int rail)
{
    struct gy_rdma_queue *queue = &link->queue[rail];

    if (queue->armed)
        return true;
    int errnum = link->rdma->rail[rail].verbs->req_notify_cq(queue->cq, 0);
    queue->armed = errnum == 0;
    if (errnum)
        gy_link_fail(&link->base, GYRE_SYSTEM, "rdma, device %s, to rank %d: no event can be asked for: %s",
                     link->rdma->rail[rail].name, link->base.peer, strerror(errnum));
    return errnum == 0;
}

/* The channel of a rail is readable: completions for any link. If another thread than the sleeper takes the event,
 * the queue is armed again so that the next one wakes the sleeper. */
static void completions(void *owner, uint32_t events)
{
    struct gy_rdma_rail *rail = owner;
    struct ibv_cq *cq;
    void *user;
    (void)events;

    while (rail->verbs->get_cq_event(rail->channel, &cq, &user) == 0) {
        struct gy_rdma_queue *queue = user;
        rail->verbs->ack_cq_events(cq, 1);
        queue->armed = false;
        if (queue->link->rdma->asleep && !__libc_single_threaded)
            arm_queue(queue->link, (int)(rail - queue->link->rdma->rail));
        progress(&queue->link->base);
        if (rail->completions.fd < 0) /* the receive handler closed the transport */
            return;
    }
}

/* ---- links ---- */

static struct gy_rdma_link *find(struct gy_rdma *rdma, int peer)
{
    struct gy_rdma_link *link = rdma->links;

    while (link && link->base.peer != peer)
        link = link->next;
    return link;
}

/* The listener: a lower rank's half. */
static void accepted(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_rdma *rdma = user;
    struct gy_rdma_link *link = find(rdma, rank);
    (void)keys; /* RDMA frames are not sealed, so sealing this socket would protect nothing */
    bool taken = link ? link->watch.fd >= 0 || link->base.state != GY_LINK_OPEN : rdma->parked[rank] >= 0;

    if (fd < 0 || rdma->closed || taken || rank <= rdma->env.world->rank) {
        gy_log(GY_LOG_WARN, "an rdma connection of rank %d was refused: there is one already", rank);
        if (fd >= 0)
            close(fd);
    } else if (link) {
        gy_rdma_connect(link, fd);
        progress(&link->base);
    } else {
        rdma->parked[rank] = fd;
    }
}

/* The connection's callback: the higher rank's half. */
static void on_connected(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_rdma *rdma = user;
    struct gy_rdma_link *link = find(rdma, rank);
    (void)keys;

    if (!link || link->base.state != GY_LINK_OPEN) {
        if (fd >= 0)
            close(fd);
        return;
    }
    if (fd >= 0)
        gy_rdma_connect(link, fd);
    else
        gy_link_fail(&link->base, GYRE_PEER_UNREACHABLE, "no connection to rank %d could be made to set up rdma", rank);
    progress(&link->base);
}

static bool rdma_reaches(void *instance, int peer)
{
    const struct gy_world *world = ((struct gy_rdma *)instance)->env.world;

    return peer != world->rank && (world->members[peer].fabrics & world->members[world->rank].fabrics) != 0;
}

static gyre_status rdma_link(void *instance, int peer, struct gy_link **link_p, struct gy_error *error)
{
    struct gy_rdma *rdma = instance;
    struct gy_rdma_link *link = find(rdma, peer);

    if (link) {
        *link_p = &link->base;
        return GYRE_SUCCESS;
    }
    if (!rdma_reaches(instance, peer))
        return gy_error_set(error, GYRE_INTERNAL, -1, "transport rdma was asked for a link to rank %d", peer);
    link = gy_alloc_zero(1, sizeof(*link));
    if (!link)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "rank %d has no memory for the link to rank %d",
                            rdma->env.world->rank, peer);
    link->base.peer = peer;
    link->rdma = rdma;
    link->watch.fd = -1;
    link->next = rdma->links;
    rdma->links = link;
    gyre_status status = GYRE_SUCCESS;
    if (peer < rdma->env.world->rank)
        status = gy_world_connect(rdma->env.world, peer, GY_PURPOSE_RDMA, NULL, on_connected, rdma, error);
    if (status != GYRE_SUCCESS) {
        rdma->links = link->next;
        gy_free(link);
        return status;
    }
    int fd = rdma->parked[peer];
    rdma->parked[peer] = -1;
    if (fd >= 0)
        gy_rdma_connect(link, fd);
    *link_p = &link->base;
    return GYRE_SUCCESS;
}

static void rdma_post(struct gy_link *base, struct gy_frame_out *frame)
{
    struct gy_rdma_link *link = (struct gy_rdma_link *)base;

    link->quiet = false;
    gy_link_push(base, frame);
    if (link->unsent && !link->deferred)
        return; /* the frame before it is stuck: progress continues */
    if (!link->unsent)
        link->unsent = frame;
    link->deferred = frame->coalesce || link->digesting;
    if (!link->deferred && gy_rdma_flush(link))
        gy_rdma_reap(link);
}

/* Lists all of several paths, as the failing one is not known yet. */
static void rdma_describe(const struct gy_link *base, char *text_p, size_t bytes)
{
    const struct gy_rdma_link *link = (const struct gy_rdma_link *)base;
    size_t used = 0;

    text_p[0] = '\0';
    for (int r = 0; r < link->rdma->rails && r < (link->paths ? link->paths : GY_RDMA_RAILS) && used < bytes; r++)
        used += (size_t)snprintf(text_p + used, bytes - used, "%s%s", r ? ", " : "device ", link->rdma->rail[r].name);
}

/* ---- the table ---- */

/* True if there are rails, but too little locked memory for links to all other ranks. */
static bool no_memory(const struct gy_rdma *rdma)
{
    const struct gy_config *config = rdma->env.config;

    return config->fabric_links < rdma->env.world->size - 1;
}

/* Logs one line if some ranks have no RDMA, as it explains TCP's figures. */
static void tell_without(const struct gy_rdma *rdma, const char *why)
{
    const struct gy_world *world = rdma->env.world;
    uint32_t mine = world->members[world->rank].fabrics;
    int with = 0, without = 0, first = -1;

    for (int p = 0; p < world->size; p++) {
        bool joined = mine ? (world->members[p].fabrics & mine) != 0 : world->members[p].fabrics != 0;
        with += joined;
        without += !joined;
        if (!joined && first < 0)
            first = p;
    }
    if (with == 0) /* a limit is easily raised if it is known; on one host it does not matter */
        gy_log(no_memory(rdma) && world->nlocals < world->size ? GY_LOG_WARN : GY_LOG_INFO,
               "transport rdma is not used: %s", why);
    else if (!mine)
        gy_log(GY_LOG_WARN, "rank %d has no RDMA, other than %d ranks, and uses the next transport: %s", world->rank,
               with, why);
    else if (without > 0)
        gy_log(GY_LOG_WARN,
               "%d of %d ranks cannot be reached by RDMA, rank %d the first: the next transport is used with them",
               without, world->size, first);
}

/* Says why this rank has published that it has no rails. */
static void explain(const struct gy_rdma *rdma, char *why, size_t why_bytes)
{
    struct gy_rdma_fabrics fabrics = {0};
    int others = rdma->env.world->size - 1;

    (void)gy_rdma_survey(rdma->env.config, &fabrics, why, why_bytes, &(struct gy_error){.quiet = true});
    if (fabrics.bits && fabrics.links < others)
        snprintf(why, why_bytes,
                 "the limit of locked memory is %zu KiB, and links to %d ranks may need %zu KiB; raise it (ulimit -l, "
                 "LimitMEMLOCK= of systemd)",
                 gy_rdma_lockable() / 1024, others, (fabrics.link_bytes * (size_t)others + 1023) / 1024);
}

static gyre_status open_rails(struct gy_rdma *rdma, char *why, size_t why_bytes, struct gy_error *error)
{
    const struct gy_world *world = rdma->env.world;
    uint32_t mine = world->members[world->rank].fabrics;

    if (mine == 0) {
        explain(rdma, why, why_bytes);
        return GYRE_SUCCESS;
    }
    gyre_status status = gy_rdma_rails_open(rdma->env.config, mine, rdma->rail, &rdma->rails, why, why_bytes, error);
    if (status == GYRE_SUCCESS && rdma->rails == 0)
        status = gy_error_set(error, GYRE_SYSTEM, -1, "the RDMA devices of rank %d went away while the ranks met: %s",
                              world->rank, why);
    return status;
}

static gyre_status rdma_open(const struct gy_transport_env *env, void **instance_p, struct gy_error *error)
{
    size_t size = (size_t)env->world->size;
    struct gy_rdma *rdma = gy_alloc_zero(1, sizeof(*rdma));
    int *parked = gy_alloc_zero(size, sizeof(int));
    char why[GY_RDMA_WHY] = "";
    gyre_status status = GYRE_SUCCESS;

    if (!rdma || !parked) {
        status = gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the rdma transport");
        goto fail;
    }
    for (size_t i = 0; i < size; i++)
        parked[i] = -1;
    rdma->env = *env;
    rdma->progress = progress;
    rdma->parked = parked;
    status = open_rails(rdma, why, sizeof(why), error);
    if (status != GYRE_SUCCESS)
        goto fail;
    rdma->memory = (struct gy_rdma_memory){.rails = rdma->rail, .rail_count = rdma->rails};
    status = gy_rdma_watch(rdma, completions, error);
    if (status != GYRE_SUCCESS)
        goto close_rails;
    status = gy_world_on(env->world, GY_PURPOSE_RDMA, accepted, rdma, error);
    if (status != GYRE_SUCCESS)
        goto close_rails;
    tell_without(rdma, why);
    *instance_p = rdma;
    return GYRE_SUCCESS;

close_rails:
    gy_rdma_unwatch(rdma, false);
    gy_rdma_rails_close(rdma->rail, rdma->rails, false);
fail:
    gy_free(rdma);
    gy_free(parked);
    return status;
}

static bool rdma_arm(void *instance)
{
    struct gy_rdma *rdma = instance;

    rdma->asleep = true;
    for (struct gy_rdma_link *link = rdma->links; link; link = link->next) {
        if (link->base.state == GY_LINK_DEAD || !link->made)
            continue;
        if (link->base.state == GY_LINK_FAILED || link->ended)
            return false;
        for (int r = 0; r < rdma->rails && link->queue[r].cq; r++)
            if (!arm_queue(link, r))
                return false;
        if (link->staging && (link->deferred || gy_rdma_collect(link) || !gy_rdma_may_sleep(link) ||
                              gy_rdma_digestible(link) || link->pulls_posted < link->pulls))
            return false;
    }
    return true;
}

static void rdma_disarm(void *instance)
{
    ((struct gy_rdma *)instance)->asleep = false; /* an event that was not needed is taken by the next poll */
}

static void rdma_close(void *instance)
{
    struct gy_rdma *rdma = instance;

    if (rdma->closed)
        return;
    rdma->closed = true;
    gy_world_off(rdma->env.world, GY_PURPOSE_RDMA, rdma);
    gy_world_cancel_connectors(rdma->env.world, rdma);
    for (struct gy_rdma_link *link = rdma->links; link; link = link->next) {
        gy_rdma_disconnect(link);
        link->base.first = link->base.last = link->unsent = NULL;
        link->base.state = GY_LINK_DEAD;
    }
    gy_rdma_unwatch(rdma, false);
    for (int i = 0; i < rdma->env.world->size; i++) {
        if (rdma->parked[i] >= 0)
            close(rdma->parked[i]);
        rdma->parked[i] = -1;
    }
}

/* True if the peer has stopped, too: it reads nothing any more. */
static bool peer_is_gone(const struct gy_rdma_link *link)
{
    char byte;

    return link->watch.fd < 0 || recv(link->watch.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Unlike a socket's buffer, unsent data is lost with the queue pair. So the link is kept until the peer's device has
 * all of it, while the peer exists. Returns true if nothing is left to wait for. */
static bool stop_link(struct gy_rdma_link *link)
{
    if (link->base.state != GY_LINK_OPEN || !link->ready || link->ended || peer_is_gone(link))
        return true;
    gy_rdma_collect(link);
    if (link->polling != GY_RDMA_POLLS_NOT) /* credit arrives along with those frames */
        gy_rdma_poll(link);
    gy_rdma_flush(link);
    gy_rdma_reap(link);
    if (!link->base.first)
        gy_rdma_flush_marks(link);
    return !link->base.first && gy_rdma_idle(link);
}

/* All links concurrently: a stuck peer takes no time from the others. */
static void rdma_stop(void *instance)
{
    struct gy_rdma *rdma = instance;
    int64_t deadline = gy_now() + STOP_NS;

    for (bool late = false, waiting = true; waiting && !late;) {
        late = gy_now() >= deadline;
        waiting = false;
        for (struct gy_rdma_link *link = rdma->links; link; link = link->next) {
            if (link->stopped)
                continue;
            link->stopped = stop_link(link) || late;
            waiting |= !link->stopped;
            if (link->stopped && link->watch.fd >= 0)
                (void)shutdown(link->watch.fd, SHUT_WR);
        }
        if (waiting)
            nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
}

static void rdma_fini(void *instance, bool forked)
{
    struct gy_rdma *rdma = instance;

    bool lost = forked && rdma->rails > 0 && gy_verbs_keep_pages(rdma->rail[0].verbs); /* a child must not touch them */

    if (!forked)
        rdma_close(instance);
    while (rdma->links) {
        struct gy_rdma_link *link = rdma->links;
        rdma->links = link->next;
        if (forked && link->watch.fd >= 0) /* the epoll set, the queue pairs and the memory's pages are the parent's */
            close(link->watch.fd);
        if (forked && !lost) {
            gy_free(link->staging);
            gy_free(link->words);
        }
        if (!lost)
            gy_free(link->ring);
        gy_free(link);
    }
    for (int i = 0; forked && i < rdma->env.world->size; i++)
        if (rdma->parked[i] >= 0)
            close(rdma->parked[i]);
    if (forked)
        gy_rdma_unwatch(rdma, true);
    gy_rdma_conceal_all(rdma, forked, lost);
    gy_rdma_memory_free(&rdma->memory, forked);
    gy_rdma_rails_close(rdma->rail, rdma->rails, forked);
    gy_free(rdma->parked);
    gy_free(rdma);
}

static void rdma_register(void *instance, const void *memory, size_t bytes)
{
    if (((struct gy_rdma *)instance)->rails > 0)
        (void)gy_rdma_memory_add(&((struct gy_rdma *)instance)->memory, memory, bytes);
}

static bool rdma_register_device(void *instance, const void *memory, size_t bytes, int dmabuf, uint64_t offset)
{
    return gy_rdma_memory_add_device(&((struct gy_rdma *)instance)->memory, memory, bytes, dmabuf, offset);
}

static void rdma_unregister(void *instance, const void *memory)
{
    gy_rdma_memory_remove(&((struct gy_rdma *)instance)->memory, memory);
}

const struct gy_transport_ops gy_transport_rdma = {
    .name = "rdma",
    .counter = offsetof(gyre_counters, other_bytes),
    .eager = GY_FRAME_SHORT,
    .has_descriptor = true,
    .available = gy_transport_always_available, /* the devices were published in the bootstrap */
    .open = rdma_open,
    .reaches = rdma_reaches,
    .link = rdma_link,
    .post = rdma_post,
    .send_short = gy_rdma_send_short,
    .progress = progress,
    .check = gy_transport_check_nothing,
    .describe = rdma_describe,
    .round_trip = gy_transport_round_trip_unknown,
    .arm = rdma_arm,
    .disarm = rdma_disarm,
    .register_memory = rdma_register,
    .unregister_memory = rdma_unregister,
    .register_device = rdma_register_device,
    .expose = gy_rdma_expose,
    .conceal = gy_rdma_conceal,
    .access = gy_rdma_access,
    .reads_in_place = gy_rdma_reads_in_place,
    .close = rdma_close,
    .stop = rdma_stop,
    .fini = rdma_fini,
};
