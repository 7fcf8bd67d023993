/* The tree that connects the ranks during bootstrap, with the same code on every rank.
 *
 *            0          tree positions, given by rank 0 in order of registration; the parent of a tree position has its
 *        1   2    4     lowest set bit cleared, so it registered before
 *            3   5 6
 *                  7
 *
 *   up    HERE: a child connects to its parent's listener as soon as it has its tree position
 *         DONE: its whole subtree has the table
 *   down  WELCOME   TABLE when the last rank has registered                GO when every rank has it
 *   both  FAILED: the first error message, forwarded to all branches but the one it came from
 *
 * Invariant: from HERE to GO the end of a branch is a death, and the others are told before any socket is closed. So no
 * rank waits for one that is gone, and all ranks end alike: with the table, or with the same error message. Before HERE
 * the end of a branch is not reported: a rank that rank 0 has told of a failure closes in the middle of its handshake,
 * and its parent may have taken the handshake for finished. Until WELCOME rank 0 watches the child. A failure between
 * our DONE and our GO may find others already finished: world.c then lets the overlay tell them. */
#include "bootstrap/tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"
#include "net/byte_codec.h"

#define FLUSH_GRACE (GY_SECOND / 5)

static bool failed(const struct gy_bootstrap_tree *tree)
{
    return tree->error->status != GYRE_SUCCESS;
}

void gy_bootstrap_tree_begin(struct gy_bootstrap_tree *tree, struct gy_world *world, struct gy_error *error)
{
    memset(tree, 0, sizeof(*tree));
    tree->world = world;
    tree->error = error;
    for (int i = 0; i < GY_BOOTSTRAP_BRANCHES; i++)
        tree->branches[i] = (struct gy_bootstrap_branch){.tree = tree, .rank = -1, .stream.fd = -1};
}

void gy_bootstrap_tree_sit(struct gy_bootstrap_tree *tree, int position)
{
    tree->position = position;
    while (gy_bootstrap_child(position, tree->world->size, tree->expected) > 0)
        tree->expected++;
}

static void send_failure(struct gy_bootstrap_tree *tree, struct gy_bootstrap_branch *branch)
{
    uint8_t body[8 + GY_BOOTSTRAP_TEXT];

    gy_stream_send(&branch->stream, GY_BOOTSTRAP_FAILED, body,
                   gy_bootstrap_failed_encode(tree->error, tree->world->rank, body));
}

/* Sends the failure to every branch but the one it came from. */
static void pass_failure(struct gy_bootstrap_tree *tree, const struct gy_bootstrap_branch *from)
{
    if (tree->told)
        return;
    tree->told = true;
    for (int i = 0; i < GY_BOOTSTRAP_BRANCHES; i++) {
        if (&tree->branches[i] != from)
            send_failure(tree, &tree->branches[i]);
    }
}

static void pass_table(struct gy_bootstrap_tree *tree, struct gy_bootstrap_branch *branch)
{
    if (!gy_stream_send(&branch->stream, GY_BOOTSTRAP_TABLE, tree->table, tree->table_bytes) && branch->stream.fd >= 0)
        gy_error_set(tree->error, GYRE_NO_MEMORY, tree->world->rank,
                     "rank %d has no memory to send the table of members", tree->world->rank);
}

/* Up, once there is nothing left to wait for below. */
static void check_done(struct gy_bootstrap_tree *tree)
{
    if (!tree->has_table || tree->all_done || tree->done < tree->expected)
        return;
    tree->all_done = tree->world->complete = true;
    gy_stream_send(&tree->branches[GY_BOOTSTRAP_UP].stream, GY_BOOTSTRAP_DONE, NULL, 0);
}

static void hear_table(struct gy_bootstrap_tree *tree, uint8_t *body, size_t bytes)
{
    if (!gy_bootstrap_table_decode(tree->world, body, bytes))
        gy_error_set(tree->error, GYRE_PROTOCOL, -1,
                     "a table of members arrived that this version does not understand");
    else
        gy_bootstrap_tree_table(tree);
}

static void hear_child(struct gy_bootstrap_tree *tree, struct gy_bootstrap_branch *branch)
{
    branch->watched = true;
    if (failed(tree)) /* it was told when it connected */
        return;
    gy_stream_send(&branch->stream, GY_BOOTSTRAP_WELCOME, NULL, 0);
    if (tree->has_table)
        pass_table(tree, branch);
}

static void on_message(void *user, struct gy_stream *stream, uint8_t kind, uint8_t *body, size_t bytes)
{
    struct gy_bootstrap_branch *branch = user;
    struct gy_bootstrap_tree *tree = branch->tree;
    bool up = branch == &tree->branches[GY_BOOTSTRAP_UP];

    if (kind == GY_BOOTSTRAP_FAILED) {
        if (!failed(tree) && gy_bootstrap_failed_decode(body, bytes, tree->error))
            pass_failure(tree, branch);
    } else if (kind == GY_BOOTSTRAP_HERE && !up && !branch->watched) {
        hear_child(tree, branch);
    } else if (kind == GY_BOOTSTRAP_WELCOME && up && !tree->welcome) {
        tree->welcome = true;
    } else if (kind == GY_BOOTSTRAP_TABLE && up && tree->welcome && !tree->has_table) {
        hear_table(tree, body, bytes);
    } else if (kind == GY_BOOTSTRAP_DONE && !up && tree->has_table && !branch->done) {
        branch->done = true;
        tree->done++;
        check_done(tree);
    } else if (kind == GY_BOOTSTRAP_GO && up && tree->all_done) {
        gy_bootstrap_tree_go(tree);
    } else {
        gy_stream_close(stream);
        gy_error_set(tree->error, GYRE_PROTOCOL, branch->rank, "rank %d sent message %u, which has no place here",
                     branch->rank, kind);
    }
}

void gy_bootstrap_lost(const struct gy_world *world, int rank, int errnum, struct gy_error *error)
{
    char process[48] = "", why[160] = "";

    if (world->members[rank].pid)
        snprintf(process, sizeof(process), " (process %d)", world->members[rank].pid);
    if (errnum)
        snprintf(why, sizeof(why), ": %s", strerror(errnum));
    if (errnum == EBADMSG)
        gy_error_set(error, GYRE_CORRUPTED, rank,
                     "what rank %d said while the ranks were meeting was changed on its way (GYRE_INTEGRITY)", rank);
    else if (errnum == ETIMEDOUT || errnum == EHOSTUNREACH || errnum == ENETUNREACH || errnum == ENETDOWN)
        gy_error_set(error, GYRE_PEER_UNREACHABLE, rank,
                     "the connection to rank %d%s broke while the ranks were meeting%s", rank, process, why);
    else
        gy_error_set(error, GYRE_PEER_DEAD, rank, "rank %d%s died while the ranks were meeting%s", rank, process, why);
}

static void on_closed(void *user, struct gy_stream *stream, int errnum)
{
    struct gy_bootstrap_branch *branch = user;
    struct gy_bootstrap_tree *tree = branch->tree;

    (void)stream;
    if (tree->went || failed(tree))
        return;
    if (errnum == EBADMSG && branch->rank >= 0) {
        gy_bootstrap_lost(tree->world, branch->rank, errnum, tree->error);
        pass_failure(tree, NULL);
        return;
    }
    if (branch == &tree->branches[GY_BOOTSTRAP_UP] && !tree->welcome) {
        tree->turned_away = true;
        return;
    }
    if (branch != &tree->branches[GY_BOOTSTRAP_UP] && !branch->watched) {
        branch->rank = -1; /* rank 0 knows what became of it; or it comes again */
        return;
    }
    gy_bootstrap_lost(tree->world, branch->rank, errnum, tree->error);
    pass_failure(tree, branch);
}

static void open_branch(struct gy_bootstrap_tree *tree, struct gy_bootstrap_branch *branch, int rank, int fd,
                        const struct gy_seal_keys *keys)
{
    size_t limit = 8 + GY_BOOTSTRAP_TEXT;
    struct gy_error why = {.rank = -1, .quiet = true};
    uint8_t body[8 + GY_BOOTSTRAP_TEXT];

    if (branch == &tree->branches[GY_BOOTSTRAP_UP])
        limit = gy_max_size(limit, 4 + (size_t)tree->world->size * GY_MEMBER_WIRE);
    branch->rank = rank;
    if (gy_stream_open(&branch->stream, tree->world->poller, fd, keys, limit, on_message, on_closed, branch, &why) !=
        GYRE_SUCCESS) {
        gy_error_set(tree->error, why.status, tree->world->rank, "rank %d cannot keep its connection to rank %d: %s",
                     tree->world->rank, rank, why.text);
        gy_stream_refuse(fd, keys, GY_BOOTSTRAP_FAILED, body,
                         gy_bootstrap_failed_encode(tree->error, tree->world->rank, body));
        return;
    }
    branch->stream.sent_count = &tree->world->counters.messages_sent;
    branch->stream.received_count = &tree->world->counters.messages_received;
}

/* An inbound connection knows the world's key, which only registered ranks are given: it is one of our children. It may
 * connect again, if its first attempt was cut, or so late that this rank has failed meanwhile. */
static void on_child(void *user, int rank, int fd, const struct gy_seal_keys *keys)
{
    struct gy_bootstrap_tree *tree = user;
    int k = 0;

    while (k < tree->expected && tree->branches[k].rank != rank && tree->branches[k].rank >= 0)
        k++;
    if (k >= tree->expected) {
        close(fd);
        return;
    }
    gy_stream_close(&tree->branches[k].stream);
    tree->branches[k].watched = false;
    open_branch(tree, &tree->branches[k], rank, fd, keys);
    if (failed(tree))
        send_failure(tree, &tree->branches[k]);
}

static void on_no_memory(void *user, int errnum)
{
    struct gy_bootstrap_tree *tree = user;

    if (!failed(tree))
        gy_error_system(tree->error, errnum, "rank %d cannot accept the ranks below it in the meeting",
                        tree->world->rank);
}

void gy_bootstrap_tree_open(struct gy_bootstrap_tree *tree)
{
    gy_listener_on_no_memory(tree->world->listener, on_no_memory, tree);
    gy_listener_on(tree->world->listener, GY_PURPOSE_BOOTSTRAP, on_child, tree);
}

void gy_bootstrap_tree_join(struct gy_bootstrap_tree *tree, int parent, int fd, const struct gy_seal_keys *keys)
{
    struct gy_bootstrap_branch *up = &tree->branches[GY_BOOTSTRAP_UP];

    open_branch(tree, up, parent, fd, keys);
    gy_stream_send(&up->stream, GY_BOOTSTRAP_HERE, NULL, 0);
}

void gy_bootstrap_tree_table(struct gy_bootstrap_tree *tree)
{
    if (!gy_bootstrap_table_encode(tree->world, &tree->table, &tree->table_bytes)) {
        gy_error_set(tree->error, GYRE_NO_MEMORY, tree->world->rank, "rank %d has no memory for the table of members",
                     tree->world->rank);
        return;
    }
    tree->has_table = true;
    for (int k = 0; k < tree->expected; k++) {
        if (tree->branches[k].watched)
            pass_table(tree, &tree->branches[k]);
    }
    check_done(tree);
}

void gy_bootstrap_tree_go(struct gy_bootstrap_tree *tree)
{
    tree->went = true;
    for (int k = 0; k < tree->expected; k++)
        gy_stream_send(&tree->branches[k].stream, GY_BOOTSTRAP_GO, NULL, 0);
}

void gy_bootstrap_tree_tell(struct gy_bootstrap_tree *tree)
{
    if (failed(tree))
        pass_failure(tree, NULL);
}

static bool flushed(const struct gy_bootstrap_tree *tree)
{
    for (int i = 0; i < GY_BOOTSTRAP_BRANCHES; i++) {
        if (!gy_stream_flushed(&tree->branches[i].stream))
            return false;
    }
    return true;
}

/* After a failure: children that are still connecting have to be told here, or they report this rank dead. */
static bool awaits_children(const struct gy_bootstrap_tree *tree)
{
    for (int k = 0; failed(tree) && k < tree->expected; k++) {
        if (tree->branches[k].rank < 0)
            return true;
    }
    return false;
}

void gy_bootstrap_tree_end(struct gy_bootstrap_tree *tree)
{
    int64_t deadline = gy_now() + FLUSH_GRACE;

    gy_bootstrap_tree_tell(tree);
    while ((!flushed(tree) || awaits_children(tree)) && gy_now() < deadline)
        gy_poller_poll(tree->world->poller, GY_MILLISECOND);
    if (tree->world->listener) {
        gy_listener_on(tree->world->listener, GY_PURPOSE_BOOTSTRAP, NULL, NULL);
        gy_listener_on_no_memory(tree->world->listener, NULL, NULL);
    }
    tree->went = true; /* the end of a branch is no death from now on */
    for (int i = 0; i < GY_BOOTSTRAP_BRANCHES; i++) {
        /* Unread bytes at close would make the kernel reset the connection, and a reset may overtake the error
         * message. */
        gy_stream_drain(&tree->branches[i].stream);
        gy_stream_close(&tree->branches[i].stream);
    }
    gy_free(tree->table);
    tree->table = NULL;
}
