/* Rank 0 during bootstrap: the state that lasts from the first registration to the last.
 *
 *   wait for registrations (registration.c) ──all──► table down the tree, DONE up ──► GO
 *             │ deadline, death, refusal              │
 *             └──► registrants are told, seated ranks through the tree, latecomers for a while ◄──┘ */
#include <stdio.h>
#include <unistd.h>

#include "bootstrap/registration.h"
#include "core/clock.h"
#include "core/mem.h"

#define REGISTRANTS 16
#define FINISH_GRACE (10 * GY_SECOND)
#define FLUSH_GRACE (GY_SECOND / 5)
#define LATECOMER_GRACE (2 * GY_SECOND)

static bool failed(const struct gy_bootstrap_root *root)
{
    return root->failure.status != GYRE_SUCCESS;
}

/* "1, 4 (one was refused: wrong version), 5 and 17 more; a process that says it is rank 9 was refused" */
static void name_missing(const struct gy_bootstrap_root *root, char *text_p, size_t bytes)
{
    size_t used = 0;
    int missing = root->world->size - 1 - root->registered, named = 0;

    text_p[0] = '\0';
    for (int rank = 1; rank < root->world->size && used + 160 < bytes; rank++) {
        if (root->positions[rank])
            continue;
        const struct gy_bootstrap_refusal *refused = &root->refusals[rank];
        char text[GY_REFUSAL_TEXT];
        used += (size_t)snprintf(text_p + used, bytes - used, "%s%d", named ? ", " : "", rank);
        if (refused->why != GY_REFUSAL_NONE)
            used += (size_t)snprintf(text_p + used, bytes - used, " (one was refused: %s)",
                                     gy_refusal_print(refused->why, refused->theirs, refused->ours, text));
        named++;
    }
    if (named < missing)
        used += (size_t)snprintf(text_p + used, bytes - used, " and %d more", missing - named);
    if (root->impossible)
        snprintf(text_p + used, bytes - used, "; a process that says it is rank %u was refused: check WORLD_SIZE",
                 root->impossible_rank);
}

static void wait_registrations(struct gy_bootstrap_root *root)
{
    const struct gy_rendezvous *meeting = root->meeting;
    char missing[360];

    while (!failed(root) && root->registered < root->world->size - 1) {
        int64_t left = meeting->deadline - gy_now();

        if (left <= 0) {
            name_missing(root, missing, sizeof(missing));
            gy_error_set(&root->failure, GYRE_MEETING_FAILED, -1,
                         "after %.1f s %d of %d ranks are missing: rank %s; are they running, with the same meeting "
                         "address and secret? (GYRE_MEET_TIMEOUT)",
                         (double)root->world->config->meet_timeout_ns / (double)GY_SECOND,
                         root->world->size - 1 - root->registered, root->world->size, missing);
            return;
        }
        gy_poller_poll(root->world->poller, left < GY_SECOND ? left : GY_SECOND);
        gy_registrations_sweep(root);
    }
}

/* The table goes down, and comes back as DONE. */
static void hand_out_table(struct gy_bootstrap_root *root)
{
    int64_t deadline = root->meeting->deadline;

    if (deadline < gy_now() + FINISH_GRACE)
        deadline = gy_now() + FINISH_GRACE;
    gy_bootstrap_tree_table(&root->tree);
    while (!failed(root) && !root->tree.all_done) {
        if (gy_now() > deadline)
            gy_error_set(&root->failure, GYRE_MEETING_FAILED, -1,
                         "the table of members did not reach every rank in time");
        else
            gy_poller_poll(root->world->poller, GY_SECOND / 10);
        gy_registrations_sweep(root);
    }
    if (!failed(root))
        gy_bootstrap_tree_go(&root->tree);
}

/* Tells all connected ranks, and for a moment those that come late: they would wait for a rank 0 that is gone. */
static void tell_failure(struct gy_bootstrap_root *root)
{
    int64_t deadline = gy_now() + LATECOMER_GRACE;

    gy_registrations_tell(root);
    gy_bootstrap_tree_tell(&root->tree);
    while (root->failure.status != GYRE_MEETING_FAILED && root->registered + root->late < root->world->size - 1 &&
           gy_now() < deadline)
        gy_poller_poll(root->world->poller, GY_SECOND / 20);
    deadline = gy_now() + FLUSH_GRACE;
    while (!gy_registrations_flushed(root) && gy_now() < deadline)
        gy_poller_poll(root->world->poller, GY_MILLISECOND);
}

static gyre_status open_listener(struct gy_bootstrap_root *root, struct gy_error *error)
{
    struct gy_world *world = root->world;
    const struct gy_listener_env env = {
        .poller = world->poller,
        .key = root->meeting->identity->key,
        .job = world->job,
        .rank = 0,
        .size = world->size,
        .purposes = 1u << GY_PURPOSE_BOOTSTRAP,
        .peer_timeout_ns = world->config->peer_timeout_ns,
        .integrity = (enum gy_integrity)world->config->integrity,
        .most = REGISTRANTS,
    };
    gyre_status status = gy_listener_create(root->meeting->listen_fd, &root->listener, error);

    if (status != GYRE_SUCCESS)
        return status;
    status = gy_listener_open(root->listener, &env, error);
    if (status != GYRE_SUCCESS) {
        gy_listener_free(root->listener);
        return status;
    }
    gy_registrations_open(root);
    return GYRE_SUCCESS;
}

static gyre_status make_tables(struct gy_bootstrap_root *root, struct gy_error *error)
{
    size_t size = (size_t)root->world->size;

    root->positions = gy_alloc_zero(size, sizeof(*root->positions));
    root->ranks = gy_alloc_zero(size, sizeof(*root->ranks));
    root->refusals = gy_alloc_zero(size, sizeof(*root->refusals));
    if (!root->positions || !root->ranks || !root->refusals)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory to register %zu ranks", size);
    return GYRE_SUCCESS;
}

static void bootstrap(struct gy_bootstrap_root *root)
{
    gy_bootstrap_tree_begin(&root->tree, root->world, &root->failure);
    gy_bootstrap_tree_sit(&root->tree, 0);
    gy_bootstrap_tree_open(&root->tree);
    wait_registrations(root);
    if (!failed(root))
        hand_out_table(root);
    if (failed(root))
        tell_failure(root);
    gy_bootstrap_tree_end(&root->tree);
    gy_registrations_close(root);
}

gyre_status gy_bootstrap_as_root(struct gy_rendezvous *meeting, struct gy_error *error)
{
    struct gy_bootstrap_root *root = gy_alloc_zero(1, sizeof(*root));
    gyre_status status;

    if (!root) {
        close(meeting->listen_fd);
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory to meet");
    }
    root->meeting = meeting;
    root->world = meeting->world;
    root->failure.rank = -1;
    status = open_listener(root, error);
    if (status != GYRE_SUCCESS)
        goto free_root;
    status = make_tables(root, error);
    if (status == GYRE_SUCCESS) {
        bootstrap(root);
        status = root->failure.status;
        if (status != GYRE_SUCCESS)
            *error = root->failure;
    }
    gy_listener_free(root->listener);
    gy_free(root->refusals);
    gy_free(root->ranks);
    gy_free(root->positions);
free_root:
    gy_free(root);
    return status;
}
