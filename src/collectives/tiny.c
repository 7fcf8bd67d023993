/* Tiny vectors over windows: payload and flag share one cache line, double-buffered by the parity of the exchange.
 *
 *   rank 0   line[k & 1]:  | k | shape | payload |  ──▶ everyone loads everyone's line until it says k,
 *   rank 1   line[k & 1]:  | k | shape | payload |      then reduces all payloads in rank order
 *
 * This is the plan of direct one-shot with one tile: publish, then gather or collect. Nobody writes exchange k + 2 before
 * everyone has published k + 1, and whoever has published k + 1 has finished reading k: two lines are enough.
 *
 * A blocking call goes from the argument checks straight to the line and back: no request, no allocation, no lock, no
 * system call, no fence. It does what a request would do (sequence, arrival, flight recorder), and when a peer keeps it
 * waiting it becomes a request, in the middle of its exchange, so that clocks and verdicts are the same for all. */
#include <string.h>

#include "collectives/order.h"
#include "collectives/request.h"
#include "core/clock.h"

#define GY_TINY_SPINS 2000    /* loads of a peer's line before the call becomes a request; a few microseconds */
#define GY_TINY_TURN_EVERY 64 /* calls between two looks at links and clocks, which nobody else gives a busy caller */

/* All that two ranks must agree on: no two shapes of tiny exchanges with near sequence numbers share a word. */
static uint64_t shape_word(const struct gy_arrival *shape)
{
    return (shape->sequence & 0xff) << 56 | (uint64_t)(shape->root & 0xffffff) << 32 | (uint64_t)shape->op << 24 |
           (uint64_t)shape->dtype << 16 | (uint64_t)shape->collective << 8 | (shape->count & 0xff);
}

static void publish(const struct gyre_comm *comm, const struct gy_arrival *shape, uint64_t number, const void *input,
                    size_t bytes)
{
    struct gy_window_line *mine = &comm->control[comm->rank]->line[number & 1];
    bool gives = shape->collective != GY_BARRIER &&
                 (shape->collective != GY_BROADCAST || (int)shape->root == comm->rank);
    if (gives && bytes > 0)
        memcpy(mine->payload, input, bytes);
    mine->shape = shape_word(shape);
    atomic_store_explicit(&mine->sequence, number, memory_order_release);
    gy_window_wake(comm);
}

/* The peer has published: does it mean the same? In an operation with a root just before, it may have waited for nobody. */
static bool verify(struct gyre_comm *comm, const struct gy_arrival *shape, uint64_t number, int peer)
{
    const struct gy_window_control *mine = comm->control[comm->rank];
    bool same = comm->control[peer]->line[number & 1].shape == shape_word(shape);
    bool checked = shape->sequence == 1 ||
                   mine->arrival[(shape->sequence - 1) % GY_ARRIVALS].collective != GY_BROADCAST;
    return (same && checked) || gy_window_verify(comm, shape->sequence, peer);
}

static bool has_published(const struct gyre_comm *comm, int peer, uint64_t number)
{
    const struct gy_window_line *line = &comm->control[peer]->line[number & 1];
    return atomic_load_explicit(&line->sequence, memory_order_acquire) >= number;
}

static const unsigned char *payload_of(const struct gyre_comm *comm, int rank, uint64_t number)
{
    return comm->control[rank]->line[number & 1].payload;
}

static void reduce_lines(const struct gyre_comm *comm, const struct gy_operation *operation, uint64_t number,
                         size_t count, void *output)
{
    const void *lines[GY_WINDOW_RANKS];
    for (int p = 0; p < comm->size; p++)
        lines[p] = payload_of(comm, p, number);
    (gy_comm_canonical(comm) ? gy_combine_tree : gy_combine_many)(operation, output, NULL, lines, comm->size, count);
    gy_operation_end(operation, output, count, comm->size);
}

/* Everyone has published: out of the lines into the output. */
static void take(const struct gyre_comm *comm, const struct gy_arrival *shape, const struct gy_operation *operation,
                 uint64_t number, void *output, size_t bytes)
{
    if (bytes == 0) /* the buffers may be NULL */
        return;
    if (shape->collective == GY_BROADCAST)
        memcpy(output, payload_of(comm, (int)shape->root, number), bytes);
    else if (shape->collective == GY_ALL_REDUCE ||
             (shape->collective == GY_REDUCE_TO && (int)shape->root == comm->rank))
        reduce_lines(comm, operation, number, shape->count, output);
}

bool gy_tiny_advance(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    size_t bytes = r->shape.count * r->element;
    if (!has_published(comm, comm->rank, r->tiny_number))
        publish(comm, &r->shape, r->tiny_number, r->input, bytes);
    for (; r->tiny_next < comm->size; r->tiny_next++) {
        if (!has_published(comm, r->tiny_next, r->tiny_number)) {
            r->waiting_for = r->tiny_next;
            return false;
        }
        if (r->tiny_next != comm->rank && !verify(comm, &r->shape, r->tiny_number, r->tiny_next))
            return true;
    }
    take(comm, &r->shape, &r->operation, r->tiny_number, r->output, bytes);
    gy_request_finish(r, GYRE_SUCCESS);
    return true;
}

/* Is the direct path open? Whatever is unusual takes the general one: other requests under way, a first call, which
 * makes plan, window and request, an operation that needs more than kernels, or a choice that is to be shown. */
static bool is_open(struct gyre_comm *comm, const struct gy_call *call)
{
    struct gy_context *ctx = comm->ctx;
    if (!comm->window_reserved || comm->verify || ctx->active_first || !ctx->idle || ctx->config.show_choice ||
        call->op >= GYRE_PREMUL_SUM)
        return false;
    int8_t *tiny = &comm->tiny[call->collective];
    if (*tiny == 0) {
        enum gy_algorithm empty, full;
        struct gy_error error = {.quiet = true};
        bool direct = gy_select(comm, call->collective, false, 0, &empty, &error) == GYRE_SUCCESS &&
                      gy_select(comm, call->collective, false, GY_WINDOW_INLINE, &full, &error) == GYRE_SUCCESS &&
                      empty == GY_DIRECT_ONE_SHOT && full == GY_DIRECT_ONE_SHOT &&
                      gy_comm_plan(comm, call->collective, GY_DIRECT_ONE_SHOT, 0) != NULL;
        *tiny = direct ? 1 : -1;
    }
    return *tiny > 0;
}

/* A peer keeps us waiting: the exchange goes on as a request. */
static gyre_status go_on(struct gyre_comm *comm, const struct gy_call *call, const struct gy_arrival *shape,
                         uint64_t number, int next)
{
    struct gyre_request *r = gy_request_adopt(comm, call, shape);
    r->tiny = r->begun = true;
    r->tiny_number = number;
    r->tiny_next = next;
    gy_wait(r);
    gyre_status status = r->status;
    gy_request_recycle(r);
    return status;
}

static void look_around(struct gy_context *ctx)
{
    int64_t now = gy_now();
    if (ctx->links > 0)
        gy_progress(ctx);
    if (now - ctx->turned > GY_MILLISECOND)
        gy_turn(ctx, now);
}

bool gy_tiny_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    size_t bytes = call->collective == GY_BARRIER ? 0 : call->count * gyre_dtype_size(call->dtype);
    if (bytes > GY_WINDOW_INLINE || call->varying || !is_open(comm, call))
        return false;
    struct gy_arrival shape = gy_shape_of(call, GY_DIRECT_ONE_SHOT, comm->size);
    uint64_t number = ++comm->inline_started;
    shape.sequence = ++comm->sequence;
    struct gyre_page_record *record = gy_recorder_begin(&comm->recorder, &shape);
    comm->recorder.page->bytes += bytes;
    comm->recorder.page->window_bytes += bytes;
    gy_window_arrive(comm, &shape, (struct gy_offer){0});
    publish(comm, &shape, number, call->input, bytes);
    unsigned spins = comm->ctx->crowded ? GY_TINY_SPINS / 100 : GY_TINY_SPINS;
    for (int p = 0; p < comm->size; p++) {
        if (p == comm->rank)
            continue;
        while (!has_published(comm, p, number) && spins > 0) {
            gy_cpu_relax();
            spins--;
        }
        if (spins == 0 || !verify(comm, &shape, number, p)) {
            *status_p = go_on(comm, call, &shape, number, p);
            return true;
        }
    }
    const struct gy_operation operation = {.dtype = call->dtype, .op = call->op};
    take(comm, &shape, &operation, number, call->output, bytes);
    gy_recorder_done(&comm->recorder, record);
    if ((number & (GY_TINY_TURN_EVERY - 1)) == 0)
        look_around(comm->ctx);
    *status_p = GYRE_SUCCESS;
    return true;
}
