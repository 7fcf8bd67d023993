/* Deaths, aborts and goodbyes over rank ± 2^k.
 *
 *   socket ends without goodbye ─┐
 *   pidfd says gone ─────────────┼─► verdict (the first wins) ─► neighbours, and this host's word ─► theirs ...
 *   report(), VERDICT, the word ─┘
 *
 * Invariants. A verdict is adopted once, and queued to every neighbour in the same breath, before anything is closed:
 * whoever then sees sockets close knows the culprit already. A goodbye travels in front of the end of file, so an end
 * without one is a death. Forwarding happens in the poller's callbacks; gy_overlay_check makes no system call unless
 * something is to be flooded or a neighbour is under suspicion.
 *
 * Who dials: of two neighbours the one from which the other is the shorter way up the ring; at equal distance the lower
 * rank. */
#include "boot/overlay.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "boot/stream.h"
#include "boot/wire.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"

#define TEXT_MOST 512
#define BODY_MOST (8 + TEXT_MOST)
#define NEIGHBOURS_MOST 64
#define SUSPICION (3 * GY_MILLISECOND) /* how long a goodbye may trail the end of its process */
#define GOODBYE_GRACE (GY_SECOND / 5)
#define SENTENCE_GRACE (10 * GY_MILLISECOND)

enum kind { KIND_IDENTITY = 1, KIND_VERDICT, KIND_GOODBYE };
enum pending { PENDING_NONE, PENDING_WRITING, PENDING_READY };

struct neighbour {
    struct gy_overlay *overlay;
    int rank;
    bool dials; /* we dial it */
    bool connected, ended;
    struct gy_stream stream;
    struct gy_watch pidfd; /* fd −1: none */
    int64_t suspect_since; /* 0: not */
};

struct gy_overlay {
    struct gy_world *world;
    struct neighbour *neighbours;
    int count;
    uint64_t namespace_id; /* of our pids */
    uint8_t *left;         /* [size] who said goodbye */
    _Atomic uint64_t *word;
    int64_t word_seen; /* 0: not; the word comes first, and its sentence by a neighbour a little later */
    int suspects;
    struct gy_error verdict; /* driving thread only */
    /* Reported by any thread; who moves pending from NONE to WRITING fills the fields, the driving thread reads them at
     * READY. */
    _Atomic int pending;
    gyre_status pending_status;
    int pending_rank;
    char pending_text[TEXT_MOST + 1];
};

static void publish(struct gy_overlay *overlay, gyre_status status, int rank)
{
    uint64_t none = 0;

    if (overlay->word)
        atomic_compare_exchange_strong(overlay->word, &none, (uint64_t)(rank + 1) << 8 | (uint64_t)status);
}

/* The first verdict: kept, published, queued to every neighbour but the one who told us. */
static void adopt(struct gy_overlay *overlay, gyre_status status, int rank, const char *text,
                  const struct neighbour *from)
{
    uint8_t body[BODY_MOST];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));
    size_t length = strnlen(text, TEXT_MOST);

    if (overlay->verdict.status != GYRE_SUCCESS)
        return;
    overlay->verdict.status = status;
    overlay->verdict.rank = rank;
    snprintf(overlay->verdict.text, sizeof(overlay->verdict.text), "%.*s", (int)length, text);
    gy_log(from ? GY_LOG_INFO : GY_LOG_ERROR, "%s", overlay->verdict.text);
    publish(overlay, status, rank);
    gy_wire_put(&wire, (uint64_t)status, 4);
    gy_wire_put(&wire, (uint32_t)rank, 4);
    gy_wire_put_bytes(&wire, text, length);
    for (int i = 0; i < overlay->count; i++) {
        if (&overlay->neighbours[i] != from)
            gy_stream_send(&overlay->neighbours[i].stream, KIND_VERDICT, body, 8 + length);
    }
}

static void goodbye(struct gy_overlay *overlay, int rank, const struct neighbour *from)
{
    uint8_t body[4];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));

    if (overlay->left[rank])
        return;
    overlay->left[rank] = 1;
    gy_wire_put(&wire, (uint32_t)rank, 4);
    for (int i = 0; i < overlay->count; i++) {
        if (&overlay->neighbours[i] != from)
            gy_stream_send(&overlay->neighbours[i].stream, KIND_GOODBYE, body, sizeof(body));
    }
}

static void unwatch_pid(struct neighbour *neighbour)
{
    if (neighbour->pidfd.fd < 0)
        return;
    gy_poller_remove(neighbour->overlay->world->poller, &neighbour->pidfd);
    close(neighbour->pidfd.fd);
    neighbour->pidfd.fd = -1;
}

static void declare_dead(struct neighbour *neighbour, int errnum)
{
    struct gy_overlay *overlay = neighbour->overlay;
    const struct gy_member *member = &overlay->world->members[neighbour->rank];
    bool local = member->host == overlay->world->members[overlay->world->rank].host;
    char text[TEXT_MOST];

    if (overlay->left[neighbour->rank])
        return;
    if (errnum == ETIMEDOUT || errnum == EHOSTUNREACH || errnum == ENETUNREACH || errnum == ENETDOWN) {
        snprintf(text, sizeof(text),
                 "rank %d gives no sign of life for %.1f s: its host or the network is down (%s; seen by rank %d)",
                 neighbour->rank, (double)overlay->world->config->peer_timeout_ns / (double)GY_SECOND, strerror(errnum),
                 overlay->world->rank);
        adopt(overlay, GYRE_PEER_UNREACHABLE, neighbour->rank, text, NULL);
        return;
    }
    snprintf(text, sizeof(text), "rank %d died (process %d on host %d%s, seen by rank %d)", neighbour->rank,
             member->pid, member->host, local ? ", the same host" : "", overlay->world->rank);
    adopt(overlay, GYRE_PEER_DEAD, neighbour->rank, text, NULL);
}

/* The process is gone. What it said last may still be on its way: read, and if there is neither goodbye nor end of file
 * (a forked child may hold the socket), judge in a moment. */
static void on_pidfd(void *owner, uint32_t events)
{
    struct neighbour *neighbour = owner;

    (void)events;
    unwatch_pid(neighbour);
    if (neighbour->connected && !neighbour->ended)
        gy_stream_drain(&neighbour->stream);
    if (neighbour->ended || neighbour->overlay->left[neighbour->rank])
        return;
    neighbour->suspect_since = gy_now();
    neighbour->overlay->suspects++;
}

static void judge_suspects(struct gy_overlay *overlay)
{
    int64_t now = gy_now();

    for (int i = 0; i < overlay->count; i++) {
        struct neighbour *neighbour = &overlay->neighbours[i];

        if (neighbour->suspect_since == 0 || now - neighbour->suspect_since < SUSPICION)
            continue;
        neighbour->suspect_since = 0;
        overlay->suspects--;
        if (neighbour->connected && !neighbour->ended)
            gy_stream_drain(&neighbour->stream);
        if (!neighbour->ended)
            declare_dead(neighbour, 0);
    }
}

/* Watches the process if its number means the same here; its connection lives, so the number is not somebody else's
 * yet. */
static void watch_pid(struct neighbour *neighbour, uint64_t namespace_id)
{
    struct gy_overlay *overlay = neighbour->overlay;
    const struct gy_member *member = &overlay->world->members[neighbour->rank];
    const struct gy_member *own = &overlay->world->members[overlay->world->rank];
    int fd;

    if (neighbour->pidfd.fd >= 0 || member->host != own->host || member->pid == own->pid || namespace_id == 0 ||
        namespace_id != overlay->namespace_id)
        return;
    fd = (int)syscall(SYS_pidfd_open, member->pid, 0);
    if (fd < 0)
        return; /* gone: the socket will say so; or an old kernel: the socket alone must do */
    neighbour->pidfd = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = on_pidfd, .owner = neighbour};
    if (gy_poller_add(overlay->world->poller, &neighbour->pidfd, NULL) != GYRE_SUCCESS) {
        close(fd);
        neighbour->pidfd.fd = -1;
    }
}

static void hear_verdict(struct neighbour *neighbour, uint8_t *body, size_t bytes)
{
    struct gy_overlay *overlay = neighbour->overlay;
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint32_t status = (uint32_t)gy_wire_get(&wire, 4), rank = (uint32_t)gy_wire_get(&wire, 4);
    char text[TEXT_MOST + 1];

    if (wire.bad || bytes > BODY_MOST || status == 0 || status > GYRE_INTERNAL ||
        rank >= (uint32_t)overlay->world->size)
        return;
    memcpy(text, wire.at, bytes - 8);
    text[bytes - 8] = '\0';
    adopt(overlay, (gyre_status)status, (int)rank, text, neighbour);
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct neighbour *neighbour = user;
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint64_t value;

    (void)stream;
    if (kind == KIND_VERDICT) {
        hear_verdict(neighbour, body, bytes);
    } else if (kind == KIND_GOODBYE && bytes == 4) {
        value = gy_wire_get(&wire, 4);
        if (value < (uint64_t)neighbour->overlay->world->size)
            goodbye(neighbour->overlay, (int)value, neighbour);
    } else if (kind == KIND_IDENTITY && bytes == 8) {
        watch_pid(neighbour, gy_wire_get(&wire, 8));
    } else {
        gy_log(GY_LOG_WARN, "rank %d sent an overlay message of kind %u that is not understood", neighbour->rank, kind);
    }
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    struct neighbour *neighbour = user;

    (void)stream;
    neighbour->ended = true;
    unwatch_pid(neighbour);
    if (neighbour->suspect_since) {
        neighbour->suspect_since = 0;
        neighbour->overlay->suspects--;
    }
    declare_dead(neighbour, errnum);
}

static struct neighbour *find_neighbour(struct gy_overlay *overlay, int rank)
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
    struct neighbour *neighbour = find_neighbour(overlay, rank);
    struct gy_boot_counters *counters = &overlay->world->counters;
    struct gy_error error = {.rank = -1};
    uint8_t body[8];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));

    if (fd < 0) {
        if (neighbour && overlay->verdict.status == GYRE_SUCCESS)
            declare_dead(neighbour, ECONNREFUSED); /* its door was open at the meeting */
        return;
    }
    if (!neighbour || neighbour->connected) {
        close(fd);
        return;
    }
    if (gy_stream_open(&neighbour->stream, overlay->world->poller, fd, BODY_MOST, on_message, on_closed, neighbour,
                       &error) != GYRE_SUCCESS) {
        adopt(overlay, error.status, overlay->world->rank, error.text, NULL);
        return;
    }
    neighbour->connected = true;
    neighbour->stream.sent_count = &counters->messages_sent;
    neighbour->stream.received_count = &counters->messages_received;
    gy_wire_put(&wire, overlay->namespace_id, 8);
    gy_stream_send(&neighbour->stream, KIND_IDENTITY, body, sizeof(body));
}

static bool shorter_way_up(int from, int to, int size)
{
    int up = (to - from + size) % size, down = size - up;

    return up < down || (up == down && from < to);
}

static void add_neighbour(struct gy_overlay *overlay, int rank)
{
    const struct gy_world *world = overlay->world;

    if (rank == world->rank || find_neighbour(overlay, rank))
        return;
    overlay->neighbours[overlay->count++] = (struct neighbour){.overlay = overlay,
                                                               .rank = rank,
                                                               .dials = shorter_way_up(world->rank, rank, world->size),
                                                               .pidfd.fd = -1,
                                                               .stream.fd = -1};
}

static int connected_count(const struct gy_overlay *overlay)
{
    int count = 0;

    for (int i = 0; i < overlay->count; i++)
        count += overlay->neighbours[i].connected;
    return count;
}

static gyre_status connect_all(struct gy_overlay *overlay, struct gy_error *error)
{
    struct gy_world *world = overlay->world;
    int64_t deadline = gy_now() + world->config->meet_timeout_ns;
    gyre_status status = GYRE_SUCCESS;

    gy_world_on_overlay(world, on_connected, overlay);
    for (int i = 0; i < overlay->count && status == GYRE_SUCCESS; i++) {
        if (overlay->neighbours[i].dials)
            status = gy_world_dial_overlay(world, overlay->neighbours[i].rank, on_connected, overlay, error);
    }
    while (status == GYRE_SUCCESS && connected_count(overlay) < overlay->count) {
        status = gy_overlay_check(overlay, error);
        if (status == GYRE_SUCCESS && gy_now() > deadline) {
            int absent = 0;

            while (overlay->neighbours[absent].connected)
                absent++;
            status = gy_error_set(error, GYRE_MEETING_FAILED, overlay->neighbours[absent].rank,
                                  "rank %d was at the meeting but did not connect to rank %d afterwards",
                                  overlay->neighbours[absent].rank, world->rank);
        } else if (status == GYRE_SUCCESS) {
            gy_poller_poll(world->poller, overlay->suspects ? GY_MILLISECOND : GY_SECOND / 10);
        }
    }
    return status;
}

gyre_status gy_overlay_create(struct gy_world *world, struct gy_overlay **overlay_p, struct gy_error *error)
{
    struct gy_overlay *overlay = gy_alloc_zero(1, sizeof(*overlay));
    struct stat about;
    gyre_status status;

    if (!overlay)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the overlay");
    overlay->world = world;
    overlay->verdict.rank = -1;
    overlay->namespace_id = stat("/proc/self/ns/pid", &about) == 0 ? (uint64_t)about.st_ino : 0;
    overlay->left = gy_alloc_zero((size_t)world->size, 1);
    overlay->neighbours = gy_alloc_zero(NEIGHBOURS_MOST, sizeof(*overlay->neighbours));
    if (!overlay->left || !overlay->neighbours) {
        status = gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the overlay of %d ranks", world->size);
        goto free_overlay;
    }
    for (int step = 1; step < world->size; step *= 2) {
        add_neighbour(overlay, (world->rank + step) % world->size);
        add_neighbour(overlay, (world->rank - step + world->size) % world->size);
    }
    status = connect_all(overlay, error);
    if (status != GYRE_SUCCESS) {
        adopt(overlay, status, error->rank >= 0 ? error->rank : world->rank, error->text, NULL);
        goto free_overlay;
    }
    *overlay_p = overlay;
    return GYRE_SUCCESS;
free_overlay:
    gy_overlay_free(overlay);
    return status;
}

void gy_overlay_attach_word(struct gy_overlay *overlay, _Atomic uint64_t *word)
{
    overlay->word = word;
    if (overlay->verdict.status != GYRE_SUCCESS)
        publish(overlay, overlay->verdict.status, overlay->verdict.rank);
}

/* Only the word is known: another rank of this host has the sentence, and does not tell. */
static void adopt_word(struct gy_overlay *overlay, uint64_t word)
{
    gyre_status status = (gyre_status)(word & 0xff);
    int rank = (int)(word >> 8) - 1;
    char text[TEXT_MOST];

    if (rank < 0 || rank >= overlay->world->size)
        return;
    snprintf(text, sizeof(text), "rank %d: %s (told by a rank of the same host)", rank, gyre_status_text(status));
    adopt(overlay, status, rank, text, NULL);
}

gyre_status gy_overlay_check(struct gy_overlay *overlay, struct gy_error *error)
{
    uint64_t word;

    if (overlay->verdict.status == GYRE_SUCCESS) {
        if (atomic_load_explicit(&overlay->pending, memory_order_acquire) == PENDING_READY)
            adopt(overlay, overlay->pending_status, overlay->pending_rank, overlay->pending_text, NULL);
        if (overlay->suspects)
            judge_suspects(overlay);
        word = overlay->word ? atomic_load_explicit(overlay->word, memory_order_acquire) : 0;
        if (word && !overlay->word_seen)
            overlay->word_seen = gy_now();
        else if (word && gy_now() - overlay->word_seen > SENTENCE_GRACE)
            adopt_word(overlay, word);
    }
    if (overlay->verdict.status != GYRE_SUCCESS && error->status == GYRE_SUCCESS)
        *error = overlay->verdict;
    return overlay->verdict.status;
}

void gy_overlay_report(struct gy_overlay *overlay, gyre_status status, int rank, const char *text)
{
    int none = PENDING_NONE;

    if (!atomic_compare_exchange_strong(&overlay->pending, &none, PENDING_WRITING))
        return; /* somebody was first */
    overlay->pending_status = status;
    overlay->pending_rank = rank < 0 ? overlay->world->rank : rank;
    snprintf(overlay->pending_text, sizeof(overlay->pending_text), "%s", text);
    atomic_store_explicit(&overlay->pending, PENDING_READY, memory_order_release);
    publish(overlay, status, overlay->pending_rank);
}

bool gy_overlay_has_left(const struct gy_overlay *overlay, int rank)
{
    return rank >= 0 && rank < overlay->world->size && overlay->left[rank];
}

static void flush_goodbye(struct gy_overlay *overlay)
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

void gy_overlay_free(struct gy_overlay *overlay)
{
    struct gy_error ignored = {.rank = -1};

    if (!overlay)
        return;
    if (overlay->left && overlay->neighbours) {
        gy_overlay_check(overlay, &ignored); /* a report that nobody has flooded yet leaves before the goodbye */
        goodbye(overlay, overlay->world->rank, NULL);
        flush_goodbye(overlay);
        gy_world_on_overlay(overlay->world, NULL, NULL);
        for (int i = 0; i < overlay->count; i++) {
            unwatch_pid(&overlay->neighbours[i]);
            gy_stream_close(&overlay->neighbours[i].stream);
        }
    }
    gy_world_cancel_dials(overlay->world, overlay);
    gy_free(overlay->neighbours);
    gy_free(overlay->left);
    gy_free(overlay);
}

void gy_overlay_abandon(struct gy_overlay *overlay)
{
    if (!overlay)
        return;
    for (int i = 0; i < overlay->count; i++) {
        gy_stream_abandon(&overlay->neighbours[i].stream);
        if (overlay->neighbours[i].pidfd.fd >= 0)
            close(overlay->neighbours[i].pidfd.fd);
    }
    gy_free(overlay->neighbours);
    gy_free(overlay->left);
    gy_free(overlay);
}
