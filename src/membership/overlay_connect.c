/* How the connections of the overlay are made.
 *
 *   we connect:       connecting ──greeted──► connected   refused: its process has ended
 *   it connects:      awaited ──greeted──► connected      awaited for long: every 250 ms a bare connection to its
 *                                                         listener, only to see whether it is refused
 *   on-demand peer:   a rank that we wait for and that is no neighbour, once ranks have left: we connect
 *
 * Which side connects: of two neighbours the one from which the other is the shorter way up the ring; at equal distance
 * the lower rank.
 *
 * Timeouts. At the first bootstrap a rank may take as long to connect as to arrive. The ranks of a later epoch were all
 * inside gyre when it was agreed on, and joiners had just answered: a rank that does not connect is stopped, and the
 * stall timeout finds it. All missing ranks are then reported at once, even if another rank has failed before.
 * Otherwise the following agreement would wait long for a rank that never came to this world. A rank that finds that it
 * was itself stopped for that long has been declared failed by now, and says so.
 *
 * Invariant. A rank that learns of a failure while it still connects stays until each neighbour is in one of three
 * states: connected and told, known to be gone, or out where the others go on. It must not look dead to a neighbour
 * that connects a little later. Where no rank goes on, at a first bootstrap or after an abort, that is 2 s at most. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/clock.h"
#include "membership/overlay_internal.h"
#include "net/handshake_io.h"
#include "net/socket.h"

#define PROBE_EVERY (GY_SECOND / 4)
#define TELLING_GRACE (2 * GY_SECOND)
#define AWAY (GY_SECOND / 2) /* between two turns: this rank was stopped, or without a core */

static void on_connected(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_overlay *overlay = user;
    struct gy_neighbour *neighbour = gy_neighbour_find(overlay, rank, true);

    if (fd >= 0) {
        gy_neighbour_connected(neighbour, fd, keys);
    } else if (neighbour->on_demand && gy_error_is_shortage(overlay->world->connect_errnum)) {
        neighbour->ended = true; /* of ours: again at the next turn */
    } else if (neighbour->on_demand &&
               !neighbour->witness) { /* died, left or gave up: of the latter two it has told others */
        gy_neighbour_suspect(neighbour, overlay->world->connect_errnum);
    } else {
        gy_neighbour_end(neighbour,
                         overlay->world->connect_errnum); /* a neighbour's listener was open during bootstrap */
    }
}

/* From the listener: a neighbour connects, or a rank for which this one is an on-demand peer. Its identity is
 * authenticated. So if it still counts as connected, it has lost that connection and does not come back to it. Closing
 * the new connection would look like our death. */
static void on_accepted(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_overlay *overlay = user;
    struct gy_neighbour *neighbour = gy_neighbour_find(overlay, rank, false);
    struct gy_error error = {.rank = -1};

    if (!neighbour && (neighbour = gy_neighbour_add(overlay, rank, false)) != NULL)
        neighbour->inbound = true;
    if (neighbour) {
        gy_neighbour_renew(neighbour);
        gy_neighbour_connected(neighbour, fd, keys);
        return;
    }
    close(fd);
    gy_error_set(&error, GYRE_NO_MEMORY, overlay->world->rank, "rank %d has no memory for a connection of rank %d",
                 overlay->world->rank, rank);
    gy_overlay_give_up(overlay, &error);
}

/* A witness that is waited for now is none any more; if its end was no news, it is one now. */
static bool is_known(struct gy_overlay *overlay, int rank, bool waits)
{
    struct gy_neighbour *ours = gy_neighbour_find(overlay, rank, true);
    bool gone = ours && ours->witness && ours->ended;

    if (ours && waits)
        ours->witness = false;
    return (ours && !(gone && waits)) || gy_neighbour_find(overlay, rank, false);
}

void gy_neighbour_on_demand(struct gy_overlay *overlay, int rank, bool waits)
{
    struct gy_error ignored = {.rank = -1, .quiet = true};
    struct gy_neighbour *neighbour;

    if (!overlay->thinned || overlay->left[rank] || overlay->first_failure.status != GYRE_SUCCESS ||
        rank == overlay->world->rank || is_known(overlay, rank, waits))
        return;
    neighbour = gy_neighbour_find(overlay, rank, true);
    if (neighbour)
        gy_neighbour_renew(neighbour);
    else if (!(neighbour = gy_neighbour_add(overlay, rank, true)))
        return; /* again at the next turn */
    neighbour->on_demand = true;
    neighbour->witness = !waits;
    if (gy_world_connect(overlay->world, rank, GY_PURPOSE_OVERLAY, NULL, on_connected, overlay, &ignored) !=
        GYRE_SUCCESS)
        neighbour->ended = true; /* the other clocks remain */
}

void gy_overlay_connect_on_demand(struct gy_overlay *overlay, int rank)
{
    gy_neighbour_on_demand(overlay, rank, true);
}

bool gy_overlay_ensure_connected(struct gy_overlay *overlay, int rank)
{
    struct gy_neighbour *theirs = gy_neighbour_find(overlay, rank, false),
                        *ours = gy_neighbour_find(overlay, rank, true);
    struct gy_error ignored = {.rank = -1, .quiet = true};

    if ((theirs && theirs->connected && !theirs->ended) || (ours && ours->connected && !ours->ended))
        return true;
    if (ours)
        ours->witness = false;
    if (rank == overlay->world->rank || (ours && !ours->ended))
        return false; /* under way */
    if (!ours && !(ours = gy_neighbour_add(overlay, rank, true)))
        return false;
    gy_neighbour_renew(ours);
    ours->on_demand = ours->connect_begun = true;
    if (gy_world_connect(overlay->world, rank, GY_PURPOSE_OVERLAY, NULL, on_connected, overlay, &ignored) !=
        GYRE_SUCCESS)
        ours->ended = true; /* again at the next turn */
    return false;
}

/* Shows the neighbour's listener that the probe comes from a member. */
static void introduce(struct gy_neighbour *neighbour)
{
    const struct gy_world *world = neighbour->overlay->world;
    struct gy_handshake handshake;

    gy_handshake_initiate(&handshake, world->key, world->job, GY_PURPOSE_OVERLAY, (uint32_t)world->rank,
                          (uint32_t)neighbour->rank, (enum gy_integrity)world->config->integrity);
    gy_handshake_io_introduce(neighbour->probe.fd, &handshake);
    gy_handshake_forget(&handshake);
}

static void on_probe(void *owner, uint32_t events)
{
    struct gy_neighbour *neighbour = owner;
    int errnum = gy_socket_check(neighbour->probe.fd);

    (void)events;
    if (!errnum)
        introduce(neighbour);
    gy_neighbour_unwatch(neighbour, &neighbour->probe);
    if (errnum)
        gy_neighbour_end(neighbour, errnum);
}

/* A neighbour's connection does not arrive: probes whether its listener is still open. In a world of two no other rank
 * can tell. */
static void probe(struct gy_neighbour *neighbour)
{
    struct gy_world *world = neighbour->overlay->world;
    struct gy_endpoint endpoint = {.address = world->members[neighbour->rank].address};
    int fd;

    if (neighbour->probe.fd >= 0)
        return;
    fd = gy_socket_connect(&endpoint);
    if (fd < 0)
        return; /* for want of a descriptor, for example: the deadline of bootstrap remains */
    gy_socket_tune(fd, world->config->peer_timeout_ns);
    neighbour->probe = (struct gy_watch){.fd = fd, .events = EPOLLOUT, .callback = on_probe, .owner = neighbour};
    if (gy_poller_add(world->poller, &neighbour->probe, NULL) != GYRE_SUCCESS) {
        close(fd);
        neighbour->probe.fd = -1;
    }
}

/* True if the remaining ranks will shrink, this rank among them. */
static bool goes_on(const struct gy_overlay *overlay)
{
    int own = overlay->world->rank;

    return overlay->world->epoch > 1 && overlay->first_failure.rank != own && !gy_overlay_aborted(overlay) &&
           gy_overlay_failure(overlay, own)->status == GYRE_SUCCESS;
}

/* True if the neighbour is neither connected nor gone. A neighbour that is out is not absent if the remaining ranks go
 * on: they have told each other what they know of it. */
static bool is_absent(const struct gy_neighbour *neighbour)
{
    const struct gy_overlay *overlay = neighbour->overlay;

    if (neighbour->connected || neighbour->ended)
        return false;
    return overlay->first_failure.status == GYRE_SUCCESS || !goes_on(overlay) ||
           gy_overlay_failure(overlay, neighbour->rank)->status == GYRE_SUCCESS;
}

/* How many of them are; *absent_p is the first. */
static int count_absent(struct gy_overlay *overlay, struct gy_neighbour **absent_p)
{
    int count = 0;

    for (int i = overlay->count - 1; i >= 0; i--) {
        if (!is_absent(overlay->neighbours[i]))
            continue;
        *absent_p = overlay->neighbours[i];
        count++;
    }
    return count;
}

static void connect_to(struct gy_neighbour *neighbour, struct gy_error *error)
{
    neighbour->connect_begun = gy_world_connect(neighbour->overlay->world, neighbour->rank, GY_PURPOSE_OVERLAY, NULL,
                                                on_connected, neighbour->overlay, error) == GYRE_SUCCESS;
}

static void connect_all(struct gy_overlay *overlay)
{
    struct gy_world *world = overlay->world;
    struct gy_error error = {.rank = -1};

    gy_world_on(world, GY_PURPOSE_OVERLAY, on_accepted, overlay, &error);
    for (int i = 0; i < overlay->count && error.status == GYRE_SUCCESS; i++) {
        if (overlay->neighbours[i]->connects)
            connect_to(overlay->neighbours[i], &error);
    }
    if (error.status != GYRE_SUCCESS)
        gy_overlay_give_up(overlay, &error);
}

/* Probes neighbours that should connect to us. Connects again to neighbours to which a connection failed for want of a
 * resource, so that they are told. */
static void probe_absent(struct gy_overlay *overlay)
{
    struct gy_error ignored = {.rank = -1, .quiet = true};

    for (int i = 0; i < overlay->count; i++) {
        struct gy_neighbour *neighbour = overlay->neighbours[i];

        if (neighbour->connected || neighbour->ended)
            continue;
        if (!neighbour->connects)
            probe(neighbour);
        else if (!neighbour->connect_begun)
            connect_to(neighbour, &ignored);
    }
}

int64_t gy_overlay_timeout(const struct gy_world *world)
{
    const struct gy_config *config = world->config;

    return world->epoch == 1 || config->stall_timeout_ns > config->meet_timeout_ns ? config->meet_timeout_ns
                                                                                   : config->stall_timeout_ns;
}

/* No neighbour has connected within the timeout. */
static void name_absent(struct gy_overlay *overlay, struct gy_neighbour *absent)
{
    struct gy_world *world = overlay->world;
    char text[200];

    if (world->epoch == 1) {
        snprintf(text, sizeof(text), "rank %d was at the meeting but did not connect to rank %d afterwards",
                 absent->rank, world->rank);
        gy_flood_failure(overlay, GYRE_MEETING_FAILED, absent->rank, text, NULL);
        return;
    }
    for (int i = 0; i < overlay->count; i++) {
        struct gy_neighbour *neighbour = overlay->neighbours[i];

        if (neighbour->connected || neighbour->ended)
            continue;
        snprintf(text, sizeof(text),
                 "rank %d belongs to a new world and has not connected to rank %d of it for %.0f s "
                 "(GYRE_STALL_TIMEOUT); is it stopped?",
                 neighbour->rank, world->rank, (double)gy_overlay_timeout(world) / (double)GY_SECOND);
        gy_flood_failure(overlay, GYRE_PEER_STALLED, neighbour->rank, text, NULL);
    }
}

/* This rank was stopped for `away` ns; the others may have declared it failed. Disconnects seen now must not be
 * reported as failures of the peers. */
static gyre_status return_late(struct gy_overlay *overlay, int64_t away, struct gy_error *error)
{
    struct gy_world *world = overlay->world;

    if (world->epoch > 1 && away > gy_overlay_timeout(world))
        return gy_error_set(
            error, GYRE_EXCLUDED, world->rank,
            "rank %d has been excluded, the others go on without it: it was stopped for %.0f s while its "
            "new world was made; it can only end, or join anew",
            world->rank, (double)away / (double)GY_SECOND);
    gy_poller_poll(world->poller, 0); /* messages that came meanwhile */
    return GYRE_SUCCESS;
}

gyre_status gy_neighbours_connect(struct gy_overlay *overlay, struct gy_error *error)
{
    struct gy_world *world = overlay->world;
    int64_t now = gy_now(), deadline = now + gy_overlay_timeout(world), next_probe = now + PROBE_EVERY;
    int64_t known_running = world->known_running ? world->known_running : now;
    struct gy_neighbour *absent = NULL;
    bool telling = false;

    connect_all(overlay);
    while (count_absent(overlay, &absent) > 0) {
        now = gy_now();
        if (now - known_running > AWAY) {
            deadline += now - known_running;
            if (return_late(overlay, now - known_running, error) != GYRE_SUCCESS)
                return error->status;
        }
        known_running = now;
        if (gy_overlay_check(overlay, error) != GYRE_SUCCESS && !telling) {
            telling = true;
            deadline = deadline > now + TELLING_GRACE ? deadline : now + TELLING_GRACE;
            next_probe = now - 1; /* probes the absent neighbours at once */
        }
        if (telling && !goes_on(overlay) && deadline > now + TELLING_GRACE)
            deadline = now + TELLING_GRACE;
        if (now > deadline) {
            if (!telling || goes_on(overlay))
                name_absent(overlay, absent);
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

static bool list(struct gy_overlay *overlay, int rank)
{
    const struct gy_world *world = overlay->world;
    bool connects = shorter_way_up(world->rank, rank, world->size);

    return gy_neighbour_find(overlay, rank, connects) || gy_neighbour_add(overlay, rank, connects);
}

bool gy_neighbours_list(struct gy_overlay *overlay)
{
    int rank = overlay->world->rank, size = overlay->world->size;
    bool listed = true;

    for (int step = 1; step < size && listed; step *= 2)
        listed = list(overlay, (rank + step) % size) && list(overlay, (rank - step + size) % size);
    return listed;
}
