/* The overlay's interface to the layers above.
 *
 *   socket ends without a leave message ─┐                           failure_detector.c
 *   pidfd says gone ─────────────────────┼─► first failure (stays) ─► neighbours, and this host's notice ─► theirs
 *   report(), FAILURE, notice ───────────┘                           overlay_flood.c
 *
 * Forwarding happens in the poller's callbacks; gy_overlay_check makes no system call unless something is to be flooded
 * or a neighbour is under suspicion. */
#include "membership/overlay.h"

#include <stdio.h>
#include <sys/stat.h>

#include "core/mem.h"
#include "membership/overlay_internal.h"

/* Out of descriptors, and not only for a moment: a peer waits at our listener, and would wait in vain. */
static void on_no_memory(void *user, int errnum)
{
    struct gy_overlay *overlay = user;
    struct gy_error error = {.rank = -1, .quiet = true};

    gy_error_system(&error, errnum, "rank %d cannot accept the connection of another rank", overlay->world->rank);
    gy_flood_failure(overlay, error.status, overlay->world->rank, error.text, NULL);
}

static void free_overlay(struct gy_overlay *overlay)
{
    gy_neighbours_free(overlay);
    gy_failures_free(overlay);
    gy_free(overlay->announced);
    gy_free(overlay->left);
    gy_free(overlay);
}

gyre_status gy_overlay_prepare(struct gy_world *world, struct gy_error *error)
{
    struct gy_overlay *overlay = gy_alloc_zero(1, sizeof(*overlay));

    if (!overlay)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the overlay");
    overlay->world = world;
    overlay->left = gy_alloc_zero((size_t)world->size, sizeof(*overlay->left));
    overlay->failures = gy_alloc_zero((size_t)world->size, sizeof(*overlay->failures));
    overlay->announced = gy_alloc_zero((size_t)world->size, sizeof(*overlay->announced));
    if (overlay->left && overlay->failures && overlay->announced && gy_neighbours_list(overlay)) {
        world->spare = overlay;
        return GYRE_SUCCESS;
    }
    free_overlay(overlay);
    return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the overlay of %d ranks", world->size);
}

gyre_status gy_overlay_create(struct gy_world *world, struct gy_overlay **overlay_p, struct gy_error *error)
{
    struct gy_overlay *overlay = world->spare;
    struct stat about;
    gyre_status status;

    world->spare = NULL;
    overlay->first_failure = world->bootstrap_failure;
    if (overlay->first_failure.rank < 0 || overlay->first_failure.rank >= world->size)
        overlay->first_failure.rank = world->bootstrap_failure.status == GYRE_SUCCESS ? -1 : world->rank;
    overlay->namespace_id = stat("/proc/self/ns/pid", &about) == 0 ? (uint64_t)about.st_ino : 0;
    gy_world_on_no_memory(world, on_no_memory, overlay);
    status = gy_neighbours_connect(overlay, error);
    /* In a later epoch a rank that finds the world failed by another rank keeps its overlay, to go on from there. */
    if (status != GYRE_SUCCESS &&
        (world->epoch == 1 || status == GYRE_EXCLUDED || overlay->first_failure.rank == world->rank)) {
        gy_overlay_free(overlay);
        return status;
    }
    world->overlay = overlay;
    *overlay_p = overlay;
    return GYRE_SUCCESS;
}

void gy_overlay_attach_notice(struct gy_overlay *overlay, struct gy_notice *notice)
{
    overlay->notice = notice;
    if (overlay->first_failure.status != GYRE_SUCCESS)
        gy_flood_publish(overlay, overlay->first_failure.status, overlay->first_failure.rank,
                         overlay->first_failure.text);
}

static bool report_take(struct gy_report *report)
{
    if (atomic_load_explicit(&report->state, memory_order_acquire) != GY_PENDING_READY)
        return false;
    atomic_store_explicit(&report->state, GY_PENDING_DONE, memory_order_relaxed);
    return true;
}

static void flood_reports(struct gy_overlay *overlay)
{
    struct gy_report *first = &overlay->first;

    if (report_take(first))
        gy_flood_own(overlay, first->status, first->rank, first->text, first->logged);
    if (report_take(&overlay->abort))
        gy_flood_abort(overlay, overlay->abort.rank, overlay->abort.text, NULL);
}

gyre_status gy_overlay_check(struct gy_overlay *overlay, struct gy_error *error)
{
    flood_reports(overlay);
    gy_flood_doubts(overlay);
    if (overlay->first_failure.status == GYRE_SUCCESS) {
        gy_neighbours_check(overlay);
        gy_flood_read_notice(overlay);
    }
    if (overlay->first_failure.status != GYRE_SUCCESS && error->status == GYRE_SUCCESS)
        *error = overlay->first_failure;
    return overlay->first_failure.status;
}

/* One branch for all of it: every call that repeats asks. */
bool gy_overlay_is_quiet(const struct gy_overlay *overlay)
{
    unsigned first = atomic_load_explicit(&overlay->first.state, memory_order_relaxed) == GY_PENDING_READY;
    unsigned abort = atomic_load_explicit(&overlay->abort.state, memory_order_relaxed) == GY_PENDING_READY;
    unsigned failed = overlay->first_failure.status != GYRE_SUCCESS;
    unsigned doubted = (overlay->suspects | overlay->doubted) != 0;
    return (first | abort | failed | doubted | (unsigned)gy_flood_has_notice(overlay)) == 0;
}

bool gy_overlay_calm(const struct gy_overlay *overlay)
{
    return overlay->suspects == 0 && !overlay->doubted;
}

/* Returns false if another thread was first. */
static bool report_begin(struct gy_report *report)
{
    int none = GY_PENDING_NONE;

    return atomic_compare_exchange_strong(&report->state, &none, GY_PENDING_WRITING);
}

static void report(struct gy_overlay *overlay, gyre_status status, int rank, const char *text, bool logged)
{
    int cause = atomic_load(&overlay->orphaned_by) - 1, own = overlay->world->rank;
    struct gy_report *first = &overlay->first;

    if (!report_begin(first))
        return;
    status = first->status = cause >= 0 ? GYRE_PEER_LEFT : status;
    rank = first->rank = cause >= 0 ? cause : rank < 0 ? own : rank;
    first->logged = logged;
    if (cause >= 0)
        snprintf(first->text, sizeof(first->text), "rank %d destroyed its communicator, and therefore %.400s", cause,
                 text);
    else
        snprintf(first->text, sizeof(first->text), "%s", text);
    atomic_store_explicit(&first->state, GY_PENDING_READY, memory_order_release);
    gy_flood_publish(overlay, status, rank, first->text);
}

void gy_overlay_report(struct gy_overlay *overlay, gyre_status status, int rank, const char *text)
{
    report(overlay, status, rank, text, true);
}

void gy_overlay_report_silence(struct gy_overlay *overlay, int rank, const char *text)
{
    if (atomic_load(&overlay->orphaned_by))
        gy_overlay_report(overlay, GYRE_PEER_UNREACHABLE, rank, text);
    else
        gy_flood_silence(overlay, rank, text);
}

void gy_overlay_call_off(struct gy_overlay *overlay, gyre_status status, const char *text)
{
    report(overlay, status, overlay->world->rank, text, false);
}

void gy_overlay_abort(struct gy_overlay *overlay, const char *text)
{
    struct gy_report *too = &overlay->abort;

    gy_overlay_call_off(overlay, GYRE_ABORTED, text);
    if (!report_begin(too))
        return;
    too->rank = overlay->world->rank;
    snprintf(too->text, sizeof(too->text), "%s", text);
    atomic_store_explicit(&too->state, GY_PENDING_READY, memory_order_release);
}

const struct gy_error *gy_overlay_deaf(const struct gy_overlay *overlay)
{
    return overlay->deaf.status != GYRE_SUCCESS ? &overlay->deaf : NULL;
}

bool gy_overlay_has_left(const struct gy_overlay *overlay, int rank)
{
    return rank >= 0 && rank < overlay->world->size && overlay->left[rank];
}

int gy_overlay_left_because(const struct gy_overlay *overlay, int rank)
{
    return gy_overlay_has_left(overlay, rank) ? overlay->left[rank] - 1 : rank;
}

void gy_overlay_leave(struct gy_overlay *overlay, int cause)
{
    if (cause < 0 || cause >= overlay->world->size)
        return;
    atomic_store(&overlay->orphaned_by, cause + 1);
    gy_flood_leave(overlay, overlay->world->rank, cause, NULL);
}

/* ---- messages of the layer above ---- */

static struct gy_neighbour *connected_to(struct gy_overlay *overlay, int rank)
{
    for (int i = 0; i < overlay->count; i++) {
        struct gy_neighbour *neighbour = overlay->neighbours[i];

        if (neighbour->rank == rank && neighbour->connected && !neighbour->ended)
            return neighbour;
    }
    return NULL;
}

bool gy_overlay_send(struct gy_overlay *overlay, int rank, const void *body, size_t bytes)
{
    struct gy_neighbour *neighbour = connected_to(overlay, rank);

    return neighbour && gy_stream_send(&neighbour->stream, GY_OVERLAY_AGREEMENT, body, bytes);
}

void gy_overlay_on_message(struct gy_overlay *overlay, gy_overlay_message_func *func, void *user, size_t most)
{
    overlay->on_message = func;
    overlay->message_user = user;
    overlay->message_most = most;
}

void gy_overlay_attend(struct gy_overlay *overlay)
{
    struct gy_error ignored = {.rank = -1, .quiet = true};

    if (gy_overlay_check(overlay, &ignored) != GYRE_SUCCESS)
        gy_neighbours_check(overlay);
}

void gy_overlay_read(struct gy_overlay *overlay)
{
    for (int i = 0; i < overlay->count; i++)
        gy_stream_drain(&overlay->neighbours[i]->stream);
}

void gy_overlay_free(struct gy_overlay *overlay)
{
    struct gy_error ignored = {.rank = -1};

    if (!overlay)
        return;
    gy_world_on_no_memory(overlay->world, NULL, NULL);
    gy_overlay_read(overlay);
    gy_overlay_check(overlay, &ignored); /* a report that has not been flooded yet is sent before the leave message */
    gy_flood_leave(overlay, overlay->world->rank, overlay->world->rank, NULL);
    gy_neighbours_flush(overlay);
    gy_neighbours_close(overlay);
    gy_world_cancel_connectors(overlay->world, overlay);
    overlay->world->overlay = NULL;
    free_overlay(overlay);
}

void gy_overlay_abandon(struct gy_overlay *overlay)
{
    if (!overlay)
        return;
    gy_neighbours_abandon(overlay);
    overlay->world->overlay = NULL;
    free_overlay(overlay);
}
