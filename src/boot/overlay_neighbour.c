/* The connections of the overlay, and what is seen through them.
 *
 *   we dial it:      dial ──greeted──► connected         refused: its process has ended
 *   it dials us:     awaited ──greeted──► connected      awaited for long: every 250 ms a bare connection to its door,
 *                                                        only to see it refused
 *   connected:       end of file without goodbye, pidfd ──► death
 *
 * Who dials: of two neighbours the one from which the other is the shorter way up the ring; at equal distance the lower
 * rank.
 *
 * Invariants. A goodbye travels in front of the end of file, so an end without one is a death. A rank that learns a
 * verdict while it still connects stays until each of its neighbours has connected and been told, or is known to be
 * gone (2 s at most): it must not look dead to one that dials it a little later. */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "boot/overlay_private.h"
#include "boot/socket.h"
#include "boot/wire.h"
#include "core/clock.h"
#include "core/log.h"

#define SUSPICION (3 * GY_MILLISECOND) /* how long a goodbye may trail the end of its process */
#define GOODBYE_GRACE (GY_SECOND / 5)
#define PROBE_EVERY (GY_SECOND / 4)
#define TELLING_GRACE (2 * GY_SECOND)

/* ---- end of a neighbour ---- */

static void unwatch(struct gy_neighbour *neighbour, struct gy_watch *watch)
{
    if (watch->fd < 0)
        return;
    gy_poller_remove(neighbour->overlay->world->poller, watch);
    close(watch->fd);
    watch->fd = -1;
}

static void end(struct gy_neighbour *neighbour, int errnum)
{
    neighbour->ended = true;
    unwatch(neighbour, &neighbour->pidfd);
    if (neighbour->suspect_since) {
        neighbour->suspect_since = 0;
        neighbour->overlay->suspects--;
    }
    gy_flood_death(neighbour, errnum);
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    (void)stream;
    end(user, errnum);
}

/* The process is gone. What it said last may still be on its way: read, and if there is neither goodbye nor end of file
 * (a forked child may hold the socket), judge in a moment. */
static void on_pidfd(void *owner, uint32_t events)
{
    struct gy_neighbour *neighbour = owner;

    (void)events;
    unwatch(neighbour, &neighbour->pidfd);
    if (neighbour->connected && !neighbour->ended)
        gy_stream_drain(&neighbour->stream);
    if (neighbour->ended || neighbour->overlay->left[neighbour->rank])
        return;
    neighbour->suspect_since = gy_now();
    neighbour->overlay->suspects++;
}

void gy_neighbours_judge(struct gy_overlay *overlay)
{
    int64_t now = gy_now();

    for (int i = 0; overlay->suspects > 0 && i < overlay->count; i++) {
        struct gy_neighbour *neighbour = &overlay->neighbours[i];

        if (neighbour->suspect_since == 0 || now - neighbour->suspect_since < SUSPICION)
            continue;
        neighbour->suspect_since = 0;
        overlay->suspects--;
        if (neighbour->connected && !neighbour->ended)
            gy_stream_drain(&neighbour->stream);
        if (!neighbour->ended)
            gy_flood_death(neighbour, 0);
    }
}

/* Watches the process if its number means the same here; its connection lives, so the number is not somebody else's
 * yet. */
static void watch_pid(struct gy_neighbour *neighbour, uint64_t namespace_id)
{
    struct gy_overlay *overlay = neighbour->overlay;
    const struct gy_member *member = &overlay->world->members[neighbour->rank];
    const struct gy_member *own = &overlay->world->members[overlay->world->rank];
    struct gy_error error = {.rank = -1};
    int fd;

    if (neighbour->pidfd.fd >= 0 || member->host != own->host || member->pid == own->pid || namespace_id == 0 ||
        namespace_id != overlay->namespace_id)
        return;
    fd = (int)syscall(SYS_pidfd_open, member->pid, 0);
    if (fd < 0 && gy_error_is_shortage(errno)) {
        gy_error_system(&error, errno, "rank %d cannot watch the process of rank %d", overlay->world->rank,
                        neighbour->rank);
        gy_overlay_give_up(overlay, &error);
    }
    if (fd < 0)
        return; /* gone: the socket will say so; or an old kernel: the socket alone must do */
    neighbour->pidfd = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = on_pidfd, .owner = neighbour};
    if (gy_poller_add(overlay->world->poller, &neighbour->pidfd, NULL) != GYRE_SUCCESS) {
        close(fd);
        neighbour->pidfd.fd = -1;
    }
}

/* ---- what it says ---- */

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct gy_neighbour *neighbour = user;
    struct gy_wire wire = gy_wire_over(body, bytes);

    (void)stream;
    if (kind == GY_OVERLAY_VERDICT)
        gy_flood_hear_verdict(neighbour, body, bytes);
    else if (kind == GY_OVERLAY_GOODBYE && bytes == 4)
        gy_flood_hear_goodbye(neighbour, body, bytes);
    else if (kind == GY_OVERLAY_IDENTITY && bytes == 8)
        watch_pid(neighbour, gy_wire_get(&wire, 8));
    else
        gy_log(GY_LOG_WARN, "rank %d sent an overlay message of kind %u that is not understood", neighbour->rank, kind);
}

/* ---- connecting ---- */

static struct gy_neighbour *find(struct gy_overlay *overlay, int rank)
{
    for (int i = 0; i < overlay->count; i++) {
        if (overlay->neighbours[i].rank == rank)
            return &overlay->neighbours[i];
    }
    return NULL;
}

static void on_connected(void *user, int rank, int fd)
{
    struct gy_overlay *overlay = user;
    struct gy_neighbour *neighbour = find(overlay, rank);
    struct gy_boot_counters *counters = &overlay->world->counters;
    struct gy_error error = {.rank = -1};
    uint8_t body[8];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));

    if (fd < 0) {
        if (neighbour)
            end(neighbour, ECONNREFUSED); /* its door was open at the meeting */
        return;
    }
    if (!neighbour || neighbour->connected) {
        close(fd);
        return;
    }
    unwatch(neighbour, &neighbour->probe);
    if (gy_stream_open(&neighbour->stream, overlay->world->poller, fd, GY_OVERLAY_BODY, on_message, on_closed,
                       neighbour, &error) != GYRE_SUCCESS) {
        neighbour->ended = true; /* it sees its socket close, and cannot be told more */
        gy_overlay_give_up(overlay, &error);
        return;
    }
    neighbour->connected = true;
    neighbour->stream.sent_count = &counters->messages_sent;
    neighbour->stream.received_count = &counters->messages_received;
    gy_wire_put(&wire, overlay->namespace_id, 8);
    gy_stream_send(&neighbour->stream, GY_OVERLAY_IDENTITY, body, sizeof(body));
    gy_flood_catch_up(neighbour);
}

static void on_probe(void *owner, uint32_t events)
{
    struct gy_neighbour *neighbour = owner;
    int errnum = gy_socket_check(neighbour->probe.fd);

    (void)events;
    unwatch(neighbour, &neighbour->probe);
    if (errnum)
        end(neighbour, errnum);
}

/* Its dial does not come: is its door still there? What we learn here nobody else may tell us: in a world of two there
 * is nobody else. */
static void probe(struct gy_neighbour *neighbour)
{
    struct gy_world *world = neighbour->overlay->world;
    struct gy_place place = {.address = world->members[neighbour->rank].address};
    int fd;

    if (neighbour->probe.fd >= 0)
        return;
    fd = gy_socket_connect(&place);
    if (fd < 0)
        return; /* for want of a descriptor, say: the deadline of the meeting remains */
    gy_socket_tune(fd, world->config->peer_timeout_ns);
    neighbour->probe = (struct gy_watch){.fd = fd, .events = EPOLLOUT, .callback = on_probe, .owner = neighbour};
    if (gy_poller_add(world->poller, &neighbour->probe, NULL) != GYRE_SUCCESS) {
        close(fd);
        neighbour->probe.fd = -1;
    }
}

/* How many of them are neither connected nor gone; *absent_p is the first. */
static int count_absent(struct gy_overlay *overlay, struct gy_neighbour **absent_p)
{
    int count = 0;

    for (int i = overlay->count - 1; i >= 0; i--) {
        struct gy_neighbour *neighbour = &overlay->neighbours[i];

        if (neighbour->connected || neighbour->ended)
            continue;
        *absent_p = neighbour;
        count++;
    }
    return count;
}

static void dial_all(struct gy_overlay *overlay)
{
    struct gy_world *world = overlay->world;
    struct gy_error error = {.rank = -1};

    gy_world_on_overlay(world, on_connected, overlay);
    for (int i = 0; i < overlay->count && error.status == GYRE_SUCCESS; i++) {
        if (overlay->neighbours[i].dials)
            gy_world_dial_overlay(world, overlay->neighbours[i].rank, on_connected, overlay, &error);
    }
    if (error.status != GYRE_SUCCESS)
        gy_overlay_give_up(overlay, &error);
}

static void probe_absent(struct gy_overlay *overlay)
{
    for (int i = 0; i < overlay->count; i++) {
        struct gy_neighbour *neighbour = &overlay->neighbours[i];

        if (!neighbour->dials && !neighbour->connected && !neighbour->ended)
            probe(neighbour);
    }
}

gyre_status gy_neighbours_connect(struct gy_overlay *overlay, struct gy_error *error)
{
    struct gy_world *world = overlay->world;
    int64_t now = gy_now(), deadline = now + world->config->meet_timeout_ns, next_probe = now + PROBE_EVERY;
    struct gy_neighbour *absent;
    bool telling = false;

    dial_all(overlay);
    while (count_absent(overlay, &absent) > 0) {
        now = gy_now();
        if (gy_overlay_check(overlay, error) != GYRE_SUCCESS && !telling) {
            telling = true;
            deadline = now + TELLING_GRACE;
            next_probe = now - 1; /* of those who have not come, who is gone? */
        }
        if (now > deadline && telling)
            break;
        if (now > deadline)
            gy_error_set(error, GYRE_MEETING_FAILED, absent->rank,
                         "rank %d was at the meeting but did not connect to rank %d afterwards", absent->rank,
                         world->rank);
        if (now > deadline) {
            gy_flood_verdict(overlay, error->status, error->rank, error->text, NULL);
            break;
        }
        if (now > next_probe) {
            probe_absent(overlay);
            next_probe = now + PROBE_EVERY;
        }
        gy_poller_poll(world->poller, overlay->suspects ? GY_MILLISECOND : GY_SECOND / 10);
    }
    return gy_overlay_check(overlay, error);
}

static bool shorter_way_up(int from, int to, int size)
{
    int up = (to - from + size) % size, down = size - up;

    return up < down || (up == down && from < to);
}

static void add(struct gy_overlay *overlay, int rank)
{
    const struct gy_world *world = overlay->world;

    if (rank == world->rank || find(overlay, rank))
        return;
    overlay->neighbours[overlay->count++] = (struct gy_neighbour){
        .overlay = overlay,
        .rank = rank,
        .dials = shorter_way_up(world->rank, rank, world->size),
        .pidfd.fd = -1,
        .probe.fd = -1,
        .stream.fd = -1,
    };
}

void gy_neighbours_list(struct gy_overlay *overlay)
{
    int rank = overlay->world->rank, size = overlay->world->size;

    for (int step = 1; step < size; step *= 2) {
        add(overlay, (rank + step) % size);
        add(overlay, (rank - step + size) % size);
    }
}

/* ---- the end ---- */

void gy_neighbours_flush(struct gy_overlay *overlay)
{
    int64_t deadline = gy_now() + GOODBYE_GRACE;
    bool flushed = false;

    while (!flushed && gy_now() < deadline) {
        flushed = true;
        for (int i = 0; i < overlay->count; i++)
            flushed = flushed && gy_stream_flushed(&overlay->neighbours[i].stream);
        if (!flushed)
            gy_poller_poll(overlay->world->poller, GY_MILLISECOND);
    }
    /* Unread bytes at close would make the kernel reset the connection, and a reset may overtake the goodbye. */
    for (int i = 0; i < overlay->count; i++)
        gy_stream_drain(&overlay->neighbours[i].stream);
}

void gy_neighbours_close(struct gy_overlay *overlay)
{
    gy_world_on_overlay(overlay->world, NULL, NULL);
    for (int i = 0; i < overlay->count; i++) {
        unwatch(&overlay->neighbours[i], &overlay->neighbours[i].pidfd);
        unwatch(&overlay->neighbours[i], &overlay->neighbours[i].probe);
        gy_stream_close(&overlay->neighbours[i].stream);
    }
}

void gy_neighbours_abandon(struct gy_overlay *overlay)
{
    for (int i = 0; i < overlay->count; i++) {
        gy_stream_abandon(&overlay->neighbours[i].stream);
        if (overlay->neighbours[i].pidfd.fd >= 0)
            close(overlay->neighbours[i].pidfd.fd);
        if (overlay->neighbours[i].probe.fd >= 0)
            close(overlay->neighbours[i].probe.fd);
    }
}
