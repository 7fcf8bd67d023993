/* Connections of the overlay, and what is detected through them while they last.
 *
 *   end of file without a leave message ──► death
 *   pidfd says gone ──► read what is left in the socket; neither a leave message nor end of file within 40 ms ──► death
 *   its listener is closed ──► its neighbours know whether it died or left, and tell when they are inside gyre; if all
 *                          of them are gone: 40 ms ──► death
 *
 * Where there is a pidfd, only the pidfd confirms a death: a connection between two live processes of one host may be
 * cut.
 *
 * Invariant. A leave message precedes the end of file, so an end of file without one is a death. So a live rank closes
 * no connection by itself, except one that its peer has replaced. */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "membership/overlay_internal.h"
#include "net/byte_codec.h"

/* How long a leave message, or its reason, may trail the end of a process or a closed listener. Packets between two
 * processes of one host may wait until the kernel has a core for them. Only a death whose sockets a forked child holds
 * is reported so late. */
#define SUSPICION (40 * GY_MILLISECOND)
#define LEAVE_GRACE (GY_SECOND / 5)

/* ---- end of a neighbour ---- */

void gy_neighbour_unwatch(struct gy_neighbour *neighbour, struct gy_watch *watch)
{
    if (watch->fd < 0)
        return;
    gy_poller_remove(neighbour->overlay->world->poller, watch);
    close(watch->fd);
    watch->fd = -1;
}

/* The kernel closes the sockets of an ending process a moment before the pidfd reports it. */
static bool still_runs(const struct gy_neighbour *neighbour)
{
    struct pollfd process = {.fd = neighbour->pidfd.fd, .events = POLLIN};

    return process.fd >= 0 && poll(&process, 1, neighbour->overlay->left[neighbour->rank] ? 0 : 1) == 0;
}

/* To be decided SUSPICION from now, whatever it was suspected of before. */
static void suspect(struct gy_neighbour *neighbour)
{
    neighbour->overlay->suspects += neighbour->suspect_since == 0;
    neighbour->suspect_since = gy_now();
}

void gy_neighbour_suspect(struct gy_neighbour *neighbour, int errnum)
{
    neighbour->connected = false;
    neighbour->suspect_errnum = errnum;
    suspect(neighbour);
}

void gy_neighbour_end(struct gy_neighbour *neighbour, int errnum)
{
    if (neighbour->inbound && !neighbour->introduced && !neighbour->suspect_since) {
        gy_neighbour_suspect(neighbour, errnum); /* it may have left before its leave message arrived here */
        return;
    }
    neighbour->ended = true;
    if (neighbour->witness && !neighbour->introduced) { /* it may have left, and told its own neighbours */
        neighbour->connected = false;
        neighbour->suspect_errnum = errnum ? errnum : ECONNRESET;
        return;
    }
    if (!still_runs(neighbour)) /* otherwise the confirmation may follow */
        gy_neighbour_unwatch(neighbour, &neighbour->pidfd);
    if (neighbour->suspect_since) {
        neighbour->suspect_since = 0;
        neighbour->overlay->suspects--;
    }
    gy_flood_death(neighbour, errnum);
    if (neighbour->overlay->failures[neighbour->rank].proved)
        gy_neighbour_unwatch(neighbour, &neighbour->pidfd);
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    (void)stream;
    gy_neighbour_end(user, errnum);
}

/* The process is gone. Its last messages may still be in the socket and are read first. Without a leave message or end
 * of file (a forked child may hold the socket), the decision is made a little later. */
static void on_pidfd(void *owner, uint32_t events)
{
    struct gy_neighbour *neighbour = owner;

    (void)events;
    gy_neighbour_unwatch(neighbour, &neighbour->pidfd);
    if (neighbour->ended) { /* what the end of its connection did not prove */
        gy_flood_death(neighbour, 0);
        return;
    }
    if (neighbour->connected)
        gy_stream_drain(&neighbour->stream);
    if (neighbour->ended || neighbour->overlay->left[neighbour->rank])
        return;
    suspect(neighbour);
}

/* True if `rank` is running, as far as known here. False also if its listener is closed, which only a rank without a
 * connection to it finds out. */
static bool is_there(struct gy_overlay *overlay, int rank)
{
    bool absent = rank == overlay->world->rank || overlay->left[rank] || overlay->failures[rank].status != GYRE_SUCCESS;

    for (int i = 0; !absent && i < overlay->count; i++)
        absent = overlay->neighbours[i]->rank == rank &&
                 (overlay->neighbours[i]->suspect_since || overlay->neighbours[i]->suspect_errnum);
    if (!absent)
        gy_neighbour_on_demand(overlay, rank, false);
    return !absent;
}

/* True if a rank that is a neighbour of `rank` by number is still running. It saw how `rank` ended; it may be computing
 * now and tell later. */
static bool somebody_knows(struct gy_overlay *overlay, int rank)
{
    int size = overlay->world->size;
    bool any = false;

    for (int step = 1; step < size; step *= 2) {
        any |= is_there(overlay, (rank + step) % size);
        any |= is_there(overlay, (rank - step + size) % size);
    }
    return any;
}

/* True if it is known how the rank ended, or the time for that is over. After as long as the loss of a host may take,
 * no rank knows. Where the world has failed, death and leaving need not be told apart: the rank is gone. */
static bool is_due(const struct gy_neighbour *neighbour, int64_t now)
{
    struct gy_overlay *overlay = neighbour->overlay;
    int64_t since = now - neighbour->suspect_since;
    bool known = overlay->left[neighbour->rank] || overlay->failures[neighbour->rank].status != GYRE_SUCCESS;

    if (since < SUSPICION)
        return false;
    if (neighbour->connected || known || overlay->first_failure.status != GYRE_SUCCESS ||
        !somebody_knows(overlay, neighbour->rank))
        return true;
    return since >= overlay->world->config->peer_timeout_ns;
}

void gy_neighbours_check(struct gy_overlay *overlay)
{
    int64_t now;

    if (overlay->suspects == 0) /* every call comes by here: the clock is not read for nothing */
        return;
    now = gy_now();
    for (int i = 0; overlay->suspects > 0 && i < overlay->count; i++) {
        struct gy_neighbour *neighbour = overlay->neighbours[i];

        if (neighbour->suspect_since == 0 || !is_due(neighbour, now))
            continue;
        neighbour->suspect_since = 0;
        overlay->suspects--;
        if (neighbour->connected && !neighbour->ended)
            gy_stream_drain(&neighbour->stream);
        if (neighbour->ended)
            continue;
        neighbour->ended = !neighbour->connected; /* a failed connect: there may be another */
        gy_flood_death(neighbour, neighbour->suspect_errnum);
    }
}

/* Watches the process if its pid is valid in this pid namespace. Its connection is alive, so the pid is not reused
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
        return; /* gone: the socket will report it; or an old kernel: the socket alone must do */
    neighbour->pidfd = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = on_pidfd, .owner = neighbour};
    if (gy_poller_add(overlay->world->poller, &neighbour->pidfd, NULL) != GYRE_SUCCESS) {
        close(fd);
        neighbour->pidfd.fd = -1;
    }
}

/* ---- its messages ---- */

static void hear_identity(struct gy_neighbour *neighbour, uint64_t namespace_id)
{
    neighbour->introduced = true;
    watch_pid(neighbour, namespace_id);
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct gy_neighbour *neighbour = user;
    struct gy_overlay *overlay = neighbour->overlay;
    struct gy_wire wire = gy_wire_over(body, bytes);

    (void)stream;
    if (kind == GY_OVERLAY_FAILURE)
        gy_flood_receive_failure(neighbour, body, bytes);
    else if (kind == GY_OVERLAY_LEAVE && bytes == GY_OVERLAY_LEAVE_BODY)
        gy_flood_receive_leave(neighbour, body, bytes);
    else if (kind == GY_OVERLAY_RECORD)
        gy_failure_receive(neighbour, body, bytes);
    else if (kind == GY_OVERLAY_AGREEMENT && overlay->on_message)
        overlay->on_message(overlay->message_user, neighbour->rank, body, bytes);
    else if (kind == GY_OVERLAY_ABORT)
        gy_flood_receive_abort(neighbour, body, bytes);
    else if (kind == GY_OVERLAY_BROADCAST)
        gy_broadcast_receive(neighbour, body, bytes);
    else if (kind == GY_OVERLAY_IDENTITY && bytes == 8)
        hear_identity(neighbour, gy_wire_get(&wire, 8));
    else
        gy_log(GY_LOG_WARN, "rank %d sent an overlay message of kind %u that is not understood", neighbour->rank, kind);
}

/* ---- the list ---- */

struct gy_neighbour *gy_neighbour_find(struct gy_overlay *overlay, int rank, bool connects)
{
    for (int i = 0; i < overlay->count; i++) {
        if (overlay->neighbours[i]->rank == rank && overlay->neighbours[i]->connects == connects)
            return overlay->neighbours[i];
    }
    return NULL;
}

struct gy_neighbour *gy_neighbour_add(struct gy_overlay *overlay, int rank, bool connects)
{
    struct gy_neighbour *neighbour = gy_alloc(sizeof(*neighbour)), **grown;

    if (neighbour && overlay->count == overlay->room) {
        grown = gy_realloc(overlay->neighbours, (size_t)(overlay->room + 16) * sizeof(struct gy_neighbour *));
        if (!grown) {
            gy_free(neighbour);
            return NULL;
        }
        overlay->neighbours = grown;
        overlay->room += 16;
    }
    if (!neighbour)
        return NULL;
    *neighbour = (struct gy_neighbour){
        .overlay = overlay, .rank = rank, .connects = connects, .pidfd.fd = -1, .probe.fd = -1, .stream.fd = -1};
    overlay->neighbours[overlay->count++] = neighbour;
    return neighbour;
}

void gy_neighbour_renew(struct gy_neighbour *neighbour)
{
    gy_stream_close(&neighbour->stream);
    neighbour->connected = neighbour->ended = neighbour->introduced = false;
    neighbour->suspect_errnum = 0;
    if (neighbour->suspect_since)
        neighbour->overlay->suspects--;
    neighbour->suspect_since = 0;
}

void gy_neighbour_connected(struct gy_neighbour *neighbour, int fd, const struct gy_seal_keys *keys)
{
    struct gy_overlay *overlay = neighbour->overlay;
    struct gy_boot_counters *counters = &overlay->world->counters;
    struct gy_error error = {.rank = -1};
    uint8_t body[8], failure[GY_OVERLAY_BODY];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));

    if (neighbour->connected) {
        close(fd);
        return;
    }
    gy_neighbour_unwatch(neighbour, &neighbour->probe);
    if (gy_stream_open(&neighbour->stream, overlay->world->poller, fd, keys, GY_OVERLAY_BODY, on_message, on_closed,
                       neighbour, &error) != GYRE_SUCCESS) {
        neighbour->ended = true;
        gy_overlay_give_up(overlay, &error);
        gy_stream_refuse(fd, keys, GY_OVERLAY_FAILURE, failure, gy_flood_encode(&overlay->first_failure, failure));
        return;
    }
    neighbour->connected = true;
    neighbour->stream.keeps = true;
    gy_stream_widen(&neighbour->stream, overlay->message_most);
    neighbour->stream.sent_count = &counters->messages_sent;
    neighbour->stream.received_count = &counters->messages_received;
    gy_wire_put(&wire, overlay->namespace_id, 8);
    gy_stream_send(&neighbour->stream, GY_OVERLAY_IDENTITY, body, sizeof(body));
    gy_flood_catch_up(neighbour);
}

/* ---- the end ---- */

void gy_neighbours_flush(struct gy_overlay *overlay)
{
    int64_t deadline = gy_now() + LEAVE_GRACE;
    bool flushed = false;

    while (!flushed && gy_now() < deadline) {
        flushed = true;
        for (int i = 0; i < overlay->count; i++)
            flushed = flushed && gy_stream_flushed(&overlay->neighbours[i]->stream);
        if (!flushed)
            gy_poller_poll(overlay->world->poller, GY_MILLISECOND);
    }
    /* Unread bytes at close would make the kernel reset the connection, and a reset may overtake the leave message. */
    for (int i = 0; i < overlay->count; i++)
        gy_stream_drain(&overlay->neighbours[i]->stream);
}

void gy_neighbours_close(struct gy_overlay *overlay)
{
    gy_world_off(overlay->world, GY_PURPOSE_OVERLAY, overlay);
    for (int i = 0; i < overlay->count; i++) {
        gy_neighbour_unwatch(overlay->neighbours[i], &overlay->neighbours[i]->pidfd);
        gy_neighbour_unwatch(overlay->neighbours[i], &overlay->neighbours[i]->probe);
        gy_stream_close(&overlay->neighbours[i]->stream);
    }
}

void gy_neighbours_free(struct gy_overlay *overlay)
{
    for (int i = 0; i < overlay->count; i++)
        gy_free(overlay->neighbours[i]);
    gy_free(overlay->neighbours);
}

void gy_neighbours_abandon(struct gy_overlay *overlay)
{
    for (int i = 0; i < overlay->count; i++) {
        gy_stream_abandon(&overlay->neighbours[i]->stream);
        if (overlay->neighbours[i]->pidfd.fd >= 0)
            close(overlay->neighbours[i]->pidfd.fd);
        if (overlay->neighbours[i]->probe.fd >= 0)
            close(overlay->neighbours[i]->probe.fd);
    }
}
