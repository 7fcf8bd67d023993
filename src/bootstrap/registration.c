/* Guests of rank 0: ranks that have come to the meeting and have no parent yet.
 *
 *   authenticated ──► guest ──HELLO──► registered, told its seat ──SEATED──► gone, its parent watches it
 *                       └── another job, size or setting, or there already: everybody is told, and fails
 *
 * At most 16 sockets (bootstrap/server.c) are in this state at once, however many ranks there are; the others wait in the kernel's
 * backlog. Between HELLO and SEATED the end of the socket is a death; after SEATED the tree (bootstrap/tree.c) sees it. */
#include "bootstrap/registration.h"

#include <errno.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "net/byte_codec.h"

#define GUEST_PATIENCE (2 * GY_SECOND) /* a slower one keeps its socket, but not the place of somebody else */

struct gy_meet_guest {
    struct gy_meet_root *root;
    struct gy_meet_guest *next;
    struct gy_stream stream;
    int rank;
    int64_t since;
    bool counted; /* among the door's guests */
    bool registered, seated;
};

static bool failed(const struct gy_meet_root *root)
{
    return root->failure.status != GYRE_SUCCESS;
}

static void uncount(struct gy_meet_guest *guest)
{
    if (guest->counted)
        gy_door_release(guest->root->listener);
    guest->counted = false;
}

static void dismiss(struct gy_meet_guest *guest)
{
    gy_stream_close(&guest->stream);
    uncount(guest);
}

static void tell(struct gy_meet_root *root, struct gy_meet_guest *guest)
{
    uint8_t body[8 + GY_MEET_TEXT];

    if (!guest->seated)
        gy_stream_send(&guest->stream, GY_MEET_FAILED, body, gy_meet_failed_encode(&root->failure, 0, body));
}

static void register_guest(struct gy_meet_root *root, struct gy_meet_guest *guest, const struct gy_member *member)
{
    uint8_t body[GY_SEAT_BYTES];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));
    int64_t left = root->meeting->deadline - gy_now();
    int seat = ++root->registered, parent = root->ranks[seat & (seat - 1)];

    root->world->members[guest->rank] = *member;
    root->seats[guest->rank] = seat;
    root->ranks[seat] = guest->rank;
    guest->registered = true;
    gy_wire_put(&wire, root->world->job, 8);
    gy_wire_put_bytes(&wire, root->meeting->salt, GY_KEY_BYTES);
    gy_wire_put(&wire, (uint64_t)(left > 0 ? left : 0), 8);
    gy_wire_put(&wire, (uint32_t)seat, 4);
    gy_wire_put(&wire, (uint32_t)parent, 4);
    gy_member_encode(&root->world->members[parent], wire.at);
    gy_stream_send(&guest->stream, GY_MEET_SEAT, body, sizeof(body));
}

/* Somebody says that it is a rank that is registered. Before the table is on its way that is one too many; afterwards
 * the same process wants the next world already, and tries again. */
static void hear_duplicate(struct gy_meet_root *root, struct gy_meet_guest *guest, const struct gy_member *member)
{
    const struct gy_member *first = &root->world->members[guest->rank];
    struct gy_error *failure = &root->failure, own = {.rank = -1};

    if (root->tree.has_table && member->host_key == first->host_key && member->pid == first->pid) {
        dismiss(guest);
        return;
    }
    gy_error_set(root->tree.has_table ? &own : failure, GYRE_REFUSED, guest->rank,
                 "rank %d is there twice: process %d and process %d both say they are rank %d; check RANK", guest->rank,
                 first->pid, member->pid, guest->rank);
    if (root->tree.has_table) { /* the world is complete without it */
        uint8_t body[8 + GY_MEET_TEXT];

        gy_stream_send(&guest->stream, GY_MEET_FAILED, body, gy_meet_failed_encode(&own, 0, body));
    }
}

static void hear_hello(struct gy_meet_root *root, struct gy_meet_guest *guest, uint8_t *body, size_t bytes)
{
    const struct gy_meeting *meeting = root->meeting;
    const struct gy_meet_claim own = {.size = (uint32_t)root->world->size,
                                      .label = meeting->identity->label,
                                      .settings = (const uint8_t *)meeting->settings,
                                      .settings_bytes = meeting->settings_bytes};
    struct gy_meet_claim theirs = {.rank = guest->rank};
    struct gy_wire wire = gy_wire_over(body, bytes);
    struct gy_member member;

    if (failed(root)) {
        root->late++;
        tell(root, guest);
        return;
    }
    theirs.size = (uint32_t)gy_wire_get(&wire, 4);
    theirs.label = gy_wire_get(&wire, 8);
    if (bytes < GY_HELLO_LEAST || guest->registered || !gy_member_decode(wire.at, &member)) {
        dismiss(guest);
        return;
    }
    theirs.settings = body + GY_HELLO_LEAST;
    theirs.settings_bytes = bytes - GY_HELLO_LEAST;
    if (!gy_meet_agree(&own, &theirs, &root->failure)) {
        root->late++;
        return;
    }
    if (root->seats[guest->rank])
        hear_duplicate(root, guest, &member);
    else
        register_guest(root, guest, &member);
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct gy_meet_guest *guest = user;
    struct gy_meet_root *root = guest->root;

    (void)stream;
    if (kind == GY_MEET_HELLO) {
        hear_hello(root, guest, body, bytes);
    } else if (kind == GY_MEET_SEATED && guest->registered) {
        guest->seated = true;
        dismiss(guest);
    } else if (kind == GY_MEET_FAILED && (guest->registered || !root->seats[guest->rank]) && !failed(root)) {
        gy_meet_failed_decode(body, bytes, &root->failure);
    } else {
        dismiss(guest);
    }
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    struct gy_meet_guest *guest = user;

    uncount(guest);
    if (errnum == EBADMSG && !guest->registered) { /* it comes again, and may have better luck */
        gy_log(GY_LOG_WARN, "what rank %d said when it came %s", guest->rank, gy_flaw_text(stream->flaw));
        gy_stream_close(stream);
        return;
    }
    if (guest->registered && !guest->seated && !failed(guest->root))
        gy_meet_lost(guest->root->world, guest->rank, errnum, &guest->root->failure);
}

/* The handshake has checked that 0 < rank < size. */
static void on_guest(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_meet_root *root = user;
    struct gy_meet_guest *guest = gy_alloc_zero(1, sizeof(*guest));

    if (!guest) {
        close(fd);
        gy_door_release(root->listener);
        return;
    }
    *guest = (struct gy_meet_guest){.root = root, .rank = rank, .since = gy_now(), .counted = true};
    if (gy_stream_open(&guest->stream, root->world->poller, fd, keys, gy_max_size(8 + GY_MEET_TEXT, GY_HELLO_MOST),
                       on_message, on_closed, guest, NULL) != GYRE_SUCCESS) {
        close(fd);
        uncount(guest);
        gy_free(guest);
        return;
    }
    root->world->counters.registrations++;
    guest->next = root->guests;
    root->guests = guest;
}

static void on_refused(void *user, const struct gy_handshake *handshake)
{
    struct gy_meet_root *root = user;

    if (handshake->from > 0 && handshake->from < (uint32_t)root->world->size)
        root->refusals[handshake->from] = (struct gy_meet_refusal){handshake->refusal, handshake->peer_version,
                                                                   handshake->version};
    if (handshake->refusal == GY_REFUSAL_RANK) {
        root->stranger = true;
        root->stranger_rank = handshake->from;
    }
}

static void on_starved(void *user, int errnum)
{
    struct gy_meet_root *root = user;

    if (!failed(root))
        gy_error_system(&root->failure, errnum, "rank 0 cannot accept the ranks that want to meet it");
}

void gy_meet_guests_sweep(struct gy_meet_root *root)
{
    int64_t now = gy_now();

    for (struct gy_meet_guest **at = &root->guests; *at;) {
        struct gy_meet_guest *guest = *at;

        if (now - guest->since > GUEST_PATIENCE)
            uncount(guest);
        if (guest->stream.fd >= 0) {
            at = &guest->next;
            continue;
        }
        *at = guest->next;
        gy_free(guest);
    }
}

void gy_meet_guests_open(struct gy_meet_root *root)
{
    gy_door_on(root->listener, GY_PURPOSE_MEET, on_guest, root);
    gy_door_on_refused(root->listener, on_refused, root);
    gy_door_on_starved(root->listener, on_starved, root);
}

void gy_meet_guests_tell(struct gy_meet_root *root)
{
    for (struct gy_meet_guest *guest = root->guests; guest; guest = guest->next)
        tell(root, guest);
}

bool gy_meet_guests_flushed(const struct gy_meet_root *root)
{
    for (const struct gy_meet_guest *guest = root->guests; guest; guest = guest->next) {
        if (!gy_stream_flushed(&guest->stream))
            return false;
    }
    return true;
}

void gy_meet_guests_close(struct gy_meet_root *root)
{
    struct gy_meet_guest *guest;

    while ((guest = root->guests)) {
        root->guests = guest->next;
        gy_stream_close(&guest->stream);
        gy_free(guest);
    }
}
