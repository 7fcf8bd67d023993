/* Registrants at rank 0: ranks that have connected for bootstrap and have no parent yet.
 *
 *   authenticated ──► registrant ──HELLO──► registered, told its tree position ──SEATED──► gone, its parent watches it
 *                       └── another job, size or setting, or a duplicate: all ranks are told, and fail
 *
 * At most 16 sockets (bootstrap/server.c) are in this state at once, for any number of ranks. The others wait in the
 * kernel's backlog. Between HELLO and SEATED the end of the socket is a death; after SEATED the tree (bootstrap/tree.c)
 * detects it. */
#include "bootstrap/registration.h"

#include <errno.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "net/byte_codec.h"

#define REGISTRANT_TIMEOUT (2 * GY_SECOND) /* a slower registrant keeps its socket, but frees its slot for others */

struct gy_registration {
    struct gy_bootstrap_root *root;
    struct gy_registration *next;
    struct gy_stream stream;
    int rank;
    int64_t since;
    bool counted; /* among the listener's registrants */
    bool registered, seated;
};

static bool failed(const struct gy_bootstrap_root *root)
{
    return root->failure.status != GYRE_SUCCESS;
}

static void uncount(struct gy_registration *registrant)
{
    if (registrant->counted)
        gy_listener_release(registrant->root->listener);
    registrant->counted = false;
}

static void dismiss(struct gy_registration *registrant)
{
    gy_stream_close(&registrant->stream);
    uncount(registrant);
}

static void tell(struct gy_bootstrap_root *root, struct gy_registration *registrant)
{
    uint8_t body[8 + GY_BOOTSTRAP_TEXT];

    if (!registrant->seated)
        gy_stream_send(&registrant->stream, GY_BOOTSTRAP_FAILED, body,
                       gy_bootstrap_failed_encode(&root->failure, 0, body));
}

static void register_registrant(struct gy_bootstrap_root *root, struct gy_registration *registrant,
                                const struct gy_member *member)
{
    uint8_t body[GY_POSITION_BYTES];
    struct gy_wire wire = gy_wire_over(body, sizeof(body));
    int64_t left = root->meeting->deadline - gy_now();
    int position = ++root->registered, parent = root->ranks[position & (position - 1)];

    root->world->members[registrant->rank] = *member;
    root->positions[registrant->rank] = position;
    root->ranks[position] = registrant->rank;
    registrant->registered = true;
    gy_wire_put(&wire, root->world->job, 8);
    gy_wire_put_bytes(&wire, root->meeting->salt, GY_KEY_BYTES);
    gy_wire_put(&wire, (uint64_t)(left > 0 ? left : 0), 8);
    gy_wire_put(&wire, (uint32_t)position, 4);
    gy_wire_put(&wire, (uint32_t)parent, 4);
    gy_member_encode(&root->world->members[parent], wire.at);
    gy_stream_send(&registrant->stream, GY_BOOTSTRAP_POSITION, body, sizeof(body));
}

/* A registrant claims a rank that is already registered. Before the table is sent that is a duplicate. Afterwards it is
 * the same process, which already wants the next world, and tries again. */
static void hear_duplicate(struct gy_bootstrap_root *root, struct gy_registration *registrant,
                           const struct gy_member *member)
{
    const struct gy_member *first = &root->world->members[registrant->rank];
    struct gy_error *failure = &root->failure, own = {.rank = -1};

    if (root->tree.has_table && member->host_key == first->host_key && member->pid == first->pid) {
        dismiss(registrant);
        return;
    }
    gy_error_set(root->tree.has_table ? &own : failure, GYRE_REFUSED, registrant->rank,
                 "rank %d is there twice: process %d and process %d both say they are rank %d; check RANK",
                 registrant->rank, first->pid, member->pid, registrant->rank);
    if (root->tree.has_table) { /* the world is complete without it */
        uint8_t body[8 + GY_BOOTSTRAP_TEXT];

        gy_stream_send(&registrant->stream, GY_BOOTSTRAP_FAILED, body, gy_bootstrap_failed_encode(&own, 0, body));
    }
}

static void hear_hello(struct gy_bootstrap_root *root, struct gy_registration *registrant, uint8_t *body, size_t bytes)
{
    const struct gy_rendezvous *meeting = root->meeting;
    const struct gy_bootstrap_register own = {.size = (uint32_t)root->world->size,
                                              .label = meeting->identity->label,
                                              .settings = (const uint8_t *)meeting->settings,
                                              .settings_bytes = meeting->settings_bytes};
    struct gy_bootstrap_register theirs = {.rank = registrant->rank};
    struct gy_wire wire = gy_wire_over(body, bytes);
    struct gy_member member;

    if (failed(root)) {
        root->late++;
        tell(root, registrant);
        return;
    }
    theirs.size = (uint32_t)gy_wire_get(&wire, 4);
    theirs.label = gy_wire_get(&wire, 8);
    if (bytes < GY_HELLO_LEAST || registrant->registered || !gy_member_decode(wire.at, &member)) {
        dismiss(registrant);
        return;
    }
    theirs.settings = body + GY_HELLO_LEAST;
    theirs.settings_bytes = bytes - GY_HELLO_LEAST;
    if (!gy_bootstrap_agree(&own, &theirs, &root->failure)) {
        root->late++;
        return;
    }
    if (root->positions[registrant->rank])
        hear_duplicate(root, registrant, &member);
    else
        register_registrant(root, registrant, &member);
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct gy_registration *registrant = user;
    struct gy_bootstrap_root *root = registrant->root;

    (void)stream;
    if (kind == GY_BOOTSTRAP_HELLO) {
        hear_hello(root, registrant, body, bytes);
    } else if (kind == GY_BOOTSTRAP_POSITIONED && registrant->registered) {
        registrant->seated = true;
        dismiss(registrant);
    } else if (kind == GY_BOOTSTRAP_FAILED && (registrant->registered || !root->positions[registrant->rank]) &&
               !failed(root)) {
        gy_bootstrap_failed_decode(body, bytes, &root->failure);
    } else {
        dismiss(registrant);
    }
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    struct gy_registration *registrant = user;

    uncount(registrant);
    if (errnum == EBADMSG && !registrant->registered) { /* it comes again, and may have better luck */
        gy_log(GY_LOG_WARN, "what rank %d said when it came %s", registrant->rank, gy_flaw_text(stream->flaw));
        gy_stream_close(stream);
        return;
    }
    if (registrant->registered && !registrant->seated && !failed(registrant->root))
        gy_bootstrap_lost(registrant->root->world, registrant->rank, errnum, &registrant->root->failure);
}

/* The handshake has checked that 0 < rank < size. */
static void on_registrant(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_bootstrap_root *root = user;
    struct gy_registration *registrant = gy_alloc_zero(1, sizeof(*registrant));

    if (!registrant) {
        close(fd);
        gy_listener_release(root->listener);
        return;
    }
    *registrant = (struct gy_registration){.root = root, .rank = rank, .since = gy_now(), .counted = true};
    if (gy_stream_open(&registrant->stream, root->world->poller, fd, keys,
                       gy_max_size(8 + GY_BOOTSTRAP_TEXT, GY_HELLO_MOST), on_message, on_closed, registrant,
                       NULL) != GYRE_SUCCESS) {
        close(fd);
        uncount(registrant);
        gy_free(registrant);
        return;
    }
    root->world->counters.registrations++;
    registrant->next = root->registrants;
    root->registrants = registrant;
}

static void on_refused(void *user, const struct gy_handshake *handshake)
{
    struct gy_bootstrap_root *root = user;

    if (handshake->from > 0 && handshake->from < (uint32_t)root->world->size)
        root->refusals[handshake->from] = (struct gy_bootstrap_refusal){handshake->refusal, handshake->peer_version,
                                                                        handshake->version};
    if (handshake->refusal == GY_REFUSAL_RANK) {
        root->impossible = true;
        root->impossible_rank = handshake->from;
    }
}

static void on_no_memory(void *user, int errnum)
{
    struct gy_bootstrap_root *root = user;

    if (!failed(root))
        gy_error_system(&root->failure, errnum, "rank 0 cannot accept the ranks that want to meet it");
}

void gy_registrations_sweep(struct gy_bootstrap_root *root)
{
    int64_t now = gy_now();

    for (struct gy_registration **at = &root->registrants; *at;) {
        struct gy_registration *registrant = *at;

        if (now - registrant->since > REGISTRANT_TIMEOUT)
            uncount(registrant);
        if (registrant->stream.fd >= 0) {
            at = &registrant->next;
            continue;
        }
        *at = registrant->next;
        gy_free(registrant);
    }
}

void gy_registrations_open(struct gy_bootstrap_root *root)
{
    gy_listener_on(root->listener, GY_PURPOSE_BOOTSTRAP, on_registrant, root);
    gy_listener_on_refused(root->listener, on_refused, root);
    gy_listener_on_no_memory(root->listener, on_no_memory, root);
}

void gy_registrations_tell(struct gy_bootstrap_root *root)
{
    for (struct gy_registration *registrant = root->registrants; registrant; registrant = registrant->next)
        tell(root, registrant);
}

bool gy_registrations_flushed(const struct gy_bootstrap_root *root)
{
    for (const struct gy_registration *registrant = root->registrants; registrant; registrant = registrant->next) {
        if (!gy_stream_flushed(&registrant->stream))
            return false;
    }
    return true;
}

void gy_registrations_close(struct gy_bootstrap_root *root)
{
    struct gy_registration *registrant;

    while ((registrant = root->registrants)) {
        root->registrants = registrant->next;
        gy_stream_close(&registrant->stream);
        gy_free(registrant);
    }
}
