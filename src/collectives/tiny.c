/* The direct exchange of short vectors over windows: everyone shows its contribution, waits for everyone's, and takes what
 * the collective gives it. Double-buffered by the parity of the exchange.
 *
 *   rank 0   line[k & 1]:  | k | shape | payload |  (or vector[k & 1])  ──▶ everyone loads everyone's line until it says k,
 *   rank 1   line[k & 1]:  | k | shape | payload |  (or vector[k & 1])      then takes what it needs, in rank order
 *
 * Up to GY_WINDOW_INLINE bytes lie beside the flag, up to GY_WINDOW_VECTOR in a place behind. It gives the bits of the
 * direct plans: operands are combined in rank order, or in the canonical tree. Nobody writes exchange k + 2 before everyone
 * has published k + 1, and whoever has published k + 1 has finished reading k: two places are enough, because everyone
 * waits for everyone, whatever the collective.
 *
 * A blocking call goes from the argument checks straight to the line and back: no request, no allocation, no lock, no
 * system call, no fence. The payload leaves first; what else a request does (sequence, arrival, flight recorder) is done
 * while it travels, and so is making the place of the next exchange this core's own again, which the peers' caches share
 * since they read it. When a peer keeps the call waiting it becomes a request, in the middle of its exchange, so that
 * clocks and verdicts are the same for all. */
#include <sched.h>
#include <string.h>

#include "collectives/order.h"
#include "collectives/request.h"

#define GY_TINY_SPINS 2000      /* loads of a peer's line before the call becomes a request: tens of microseconds */
#define GY_TINY_SPINS_CROWDED 4 /* where the peer may need this very core */
#define GY_TINY_YIELDS 16       /* and then so many times others go first */
#define GY_TINY_GATHERED 65536  /* bytes of all contributions that one rank takes: beyond, sharing the work pays */
#define GY_TINY_FIRST_LINE 48   /* bytes of a payload that are there when the flag is */
#define GY_TINY_HANDED_OVER \
    1024 /* bytes that are pushed out of this core's cache; of more it costs more than it saves */
#define GY_HARDWARE_LINE 64

_Static_assert(GY_WINDOW_VECTOR < 1 << 20 && GY_WINDOW_RANKS < 1 << 12, "counts and roots fit the shape word");
_Static_assert(GY_COLLECTIVES <= 16 && GYRE_FLOAT8_E5M2 < 16, "and so do collectives and types");

/* All that two ranks must agree on: no two shapes of direct exchanges with near sequence numbers share a word. */
static uint64_t shape_word(const struct gy_arrival *shape)
{
    return (shape->sequence & 0xffff) << 48 | (uint64_t)(shape->root & 0xfff) << 36 | (uint64_t)shape->op << 28 |
           (uint64_t)(shape->dtype & 15) << 24 | (uint64_t)(shape->collective & 15) << 20 | (shape->count & 0xfffff);
}

/* An exchange under way, from the call or from its request. */
struct exchange {
    struct gyre_comm *comm;
    const struct gy_arrival *shape;
    uint64_t number;
    size_t block, bytes; /* of `count` elements; of a contribution */
    const unsigned char *input;
    unsigned char *output;
};

/* How many times `count` elements a contribution has. */
static size_t contributed_blocks(const struct gyre_comm *comm, unsigned collective)
{
    switch (collective) {
    case GY_BARRIER: return 0;
    case GY_REDUCE_SCATTER:
    case GY_SCATTER_FROM:
    case GY_ALL_TO_ALL: return (size_t)comm->size;
    default: return 1;
    }
}

/* Is this rank's contribution read by others? */
static bool gives(const struct exchange *it)
{
    bool root = (int)it->shape->root == it->comm->rank;
    switch (it->shape->collective) {
    case GY_BARRIER: return false;
    case GY_BROADCAST:
    case GY_SCATTER_FROM: return root;
    case GY_REDUCE_TO:
    case GY_GATHER_TO: return !root;
    default: return true;
    }
}

static unsigned char *payload_of(const struct exchange *it, int rank, uint64_t number)
{
    struct gy_window_control *control = it->comm->control[rank];
    return it->bytes <= GY_WINDOW_INLINE ? control->line[number & 1].payload : gy_window_vector(control, number);
}

/* A hint, and no operation where the processor does not know it: the line is wanted elsewhere soon. */
static void hand_over(const unsigned char *line)
{
#if defined(__x86_64__)
    __asm__ volatile("cldemote %0" : : "m"(*line));
#else
    (void)line;
#endif
}

static void publish(const struct exchange *it)
{
    struct gy_window_line *mine = &it->comm->control[it->comm->rank]->line[it->number & 1];
    if (it->bytes > 0 && gives(it))
        memcpy(payload_of(it, it->comm->rank, it->number), it->input, it->bytes);
    mine->shape = shape_word(it->shape);
    atomic_store_explicit(&mine->sequence, it->number, memory_order_release);
    if (it->bytes <= GY_WINDOW_INLINE || it->bytes > GY_TINY_HANDED_OVER || !gives(it))
        return;
    for (size_t at = 0; at < it->bytes; at += GY_HARDWARE_LINE)
        hand_over(payload_of(it, it->comm->rank, it->number) + at);
}

static void own(const unsigned char *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*line));
#else
    __builtin_prefetch(line, 1);
#endif
}

/* The next exchange is likely to be like this one: its place is fetched for writing while this one's peers are waited for. */
static void prepare_next(const struct exchange *it)
{
    if (it->bytes <= GY_WINDOW_INLINE || !gives(it))
        return;
    const unsigned char *next = payload_of(it, it->comm->rank, it->number + 1);
    for (size_t at = 0; at < it->bytes; at += GY_HARDWARE_LINE)
        own(next + at);
}

static bool has_published(const struct gyre_comm *comm, int peer, uint64_t number)
{
    const struct gy_window_line *line = &comm->control[peer]->line[number & 1];
    return atomic_load_explicit(&line->sequence, memory_order_acquire) >= number;
}

/* The peer has published: does it mean the same? NOT_YET: something else, and it has not written yet what. */
enum answer { YES, NO, NOT_YET };

/* Operations with a root, that went before by a plan, may have waited for nobody: then they are compared as well. */
static bool all_compared(const struct gyre_comm *comm, uint64_t sequence)
{
    const struct gy_arrival *before = &comm->control[comm->rank]->arrival[(sequence - 1) % GY_ARRIVALS];
    return comm->compared + 1 == sequence || sequence == 1 || !gy_has_root(before->collective);
}

static enum answer verify(const struct exchange *it, int peer)
{
    struct gyre_comm *comm = it->comm;
    bool same = comm->control[peer]->line[it->number & 1].shape == shape_word(it->shape);
    if (same && all_compared(comm, it->shape->sequence))
        return YES;
    if (!gy_window_verify(comm, it->shape->sequence, peer))
        return NO;
    return same ? YES : NOT_YET;
}

/* The ranks' operands of a reduction, from element `skip` of the vector on. */
static void reduce(const struct exchange *it, const struct gy_operation *operation, bool canonical, size_t skip)
{
    const void *sources[GY_WINDOW_RANKS];
    for (int p = 0; p < it->comm->size; p++)
        sources[p] = (p == it->comm->rank ? it->input : payload_of(it, p, it->number)) + skip;
    (canonical ? gy_combine_tree : gy_combine_many)(operation, it->output, NULL, sources, it->comm->size,
                                                    it->shape->count);
    gy_operation_end(operation, it->output, it->shape->count, it->comm->size);
}

/* Block `from` of rank p's contribution to block `to` of the output; my own may be in its place. */
static void copy(const struct exchange *it, int p, int from, int to)
{
    const unsigned char *source = p == it->comm->rank ? it->input : payload_of(it, p, it->number);
    source += (size_t)from * it->block;
    unsigned char *target = it->output + (size_t)to * it->block;
    if (source != target)
        memcpy(target, source, it->block);
}

/* Everyone has published: out of the lines into the output. */
static void take(const struct exchange *it, const struct gy_operation *operation, bool canonical)
{
    const struct gyre_comm *comm = it->comm;
    int rank = comm->rank, root = (int)it->shape->root;
    if (it->bytes == 0) /* the buffers may be NULL */
        return;
    switch (it->shape->collective) {
    case GY_ALL_REDUCE: reduce(it, operation, canonical, 0); break;
    case GY_REDUCE_SCATTER: reduce(it, operation, canonical, (size_t)rank * it->block); break;
    case GY_REDUCE_TO:
        if (rank == root)
            reduce(it, operation, canonical, 0);
        break;
    case GY_BROADCAST: copy(it, root, 0, 0); break;
    case GY_SCATTER_FROM: copy(it, root, rank, 0); break;
    case GY_GATHER_TO:
    case GY_ALL_GATHER:
        for (int p = 0; p < comm->size && (it->shape->collective == GY_ALL_GATHER || rank == root); p++)
            copy(it, p, 0, p);
        break;
    case GY_ALL_TO_ALL:
        for (int p = 0; p < comm->size; p++)
            copy(it, p, rank, p);
        break;
    default: break;
    }
}

static struct exchange exchange_of(struct gyre_comm *comm, const struct gy_arrival *shape, uint64_t number,
                                   size_t element, const void *input, void *output)
{
    size_t block = shape->count * element;
    return (struct exchange){.comm = comm,
                             .shape = shape,
                             .number = number,
                             .block = block,
                             .bytes = block * contributed_blocks(comm, shape->collective),
                             .input = input,
                             .output = output};
}

bool gy_tiny_advance(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    const struct exchange it = exchange_of(comm, &r->shape, r->tiny_number, r->element, r->input, r->output);
    if (!has_published(comm, comm->rank, it.number)) {
        publish(&it);
        gy_window_wake(comm);
    }
    for (; r->tiny_next < comm->size; r->tiny_next++) {
        int p = r->tiny_next;
        if (p == comm->rank)
            continue;
        enum answer answer = has_published(comm, p, it.number) ? verify(&it, p) : NOT_YET;
        if (answer != YES)
            r->waiting_for = p;
        if (answer != YES)
            return answer == NO;
    }
    comm->compared = it.shape->sequence;
    take(&it, &r->operation, r->canonical);
    gy_request_through(r);
    return true;
}

/* Whatever the size, the choice is one of the direct plans up to it, and the exchange does what they do. What is forced is
 * to be seen: beyond a line it goes by its plan. */
static void find_out(struct gyre_comm *comm, enum gy_collective collective)
{
    size_t blocks = contributed_blocks(comm, collective), least = blocks > 0 ? blocks : 1;
    bool forced = gy_select_forces(comm, collective);
    size_t room = forced ? GY_WINDOW_INLINE : GY_WINDOW_VECTOR;
    if (collective == GY_ALL_GATHER || collective == GY_GATHER_TO)
        room = gy_min_size(room, GY_TINY_GATHERED / (size_t)comm->size);
    enum gy_algorithm first = GY_ALGORITHMS;
    int32_t most = -1;
    for (size_t bytes = 0; bytes * least <= room; bytes = bytes ? 2 * bytes : 1) {
        enum gy_algorithm choice;
        struct gy_error error = {.quiet = true};
        if (gy_select(comm, collective, false, bytes, &choice, &error) != GYRE_SUCCESS)
            break;
        first = bytes == 0 ? choice : first;
        if (choice != first || !(choice == GY_DIRECT_ONE_SHOT || (choice == GY_DIRECT_TWO_SHOT && !forced)))
            break;
        most = (int32_t)(bytes * least);
    }
    comm->tiny[collective].known = true;
    comm->tiny[collective].algorithm = (uint8_t)first;
    comm->tiny[collective].most = most;
}

/* Bytes of the largest contribution that is exchanged directly. */
static int32_t most_of(struct gyre_comm *comm, enum gy_collective collective)
{
    if (!comm->tiny[collective].known)
        find_out(comm, collective);
    return comm->tiny[collective].most;
}

bool gy_tiny_fits(struct gyre_comm *comm, const struct gy_arrival *shape, size_t element)
{
    if (comm->window < 0 || comm->size < 2 || shape->collective >= GY_SEND_TO || shape->count > GY_WINDOW_VECTOR)
        return false;
    size_t bytes = shape->count * element * contributed_blocks(comm, shape->collective);
    return (int64_t)bytes <= most_of(comm, (enum gy_collective)shape->collective) &&
           shape->algorithm == comm->tiny[shape->collective].algorithm;
}

bool gy_tiny_algorithm(struct gyre_comm *comm, const struct gy_call *call, enum gy_algorithm *algorithm_p)
{
    if (comm->window < 0 || call->varying || gy_is_point_to_point(call->collective))
        return false;
    int32_t most = most_of(comm, call->collective);
    enum gy_algorithm algorithm = (enum gy_algorithm)comm->tiny[call->collective].algorithm;
    struct gy_arrival shape = gy_shape_of(call, algorithm, comm->size);
    if (most < 0 || !gy_tiny_fits(comm, &shape, gyre_dtype_size(call->dtype)))
        return false;
    *algorithm_p = algorithm;
    return true;
}

/* Is the direct path open? Whatever is unusual takes the general one: other requests under way, a first call, which
 * makes plan, window and request, an operation that needs more than kernels, or a choice that is to be shown. */
static bool is_open(struct gyre_comm *comm, const struct gy_call *call)
{
    const struct gy_context *ctx = comm->ctx;
    enum gy_collective collective = call->collective;
    if (!comm->window_reserved || call->varying || collective >= GY_SEND_TO || call->op >= GYRE_PREMUL_SUM ||
        call->count > GY_WINDOW_VECTOR || comm->verify || comm->attributes.uniform || ctx->active_first || !ctx->idle ||
        ctx->config.show_choice)
        return false;
    return most_of(comm, collective) >= 0 &&
           (comm->plans[collective][comm->tiny[collective].algorithm] ||
            gy_comm_plan(comm, collective, (enum gy_algorithm)comm->tiny[collective].algorithm, 0));
}

/* As a request counts them. */
static void count_bytes(const struct exchange *it)
{
    bool by_rank = it->shape->collective == GY_ALL_GATHER || it->shape->collective == GY_GATHER_TO;
    size_t total = by_rank ? it->bytes * (size_t)it->comm->size : it->bytes;
    it->comm->recorder.page->bytes += total;
    it->comm->recorder.page->window_bytes += total;
}

/* A peer keeps us waiting: the exchange goes on as a request. */
static gyre_status go_on(const struct exchange *it, const struct gy_call *call, int next)
{
    struct gyre_request *r = gy_request_adopt(it->comm, call, it->shape);
    r->tiny = r->begun = true;
    r->tiny_number = it->number;
    r->tiny_next = next;
    gy_wait(r);
    gyre_status status = r->status;
    gy_request_recycle(r);
    return status;
}

/* How long the call waits before it becomes a request. */
struct patience {
    unsigned spins, yields;
};

static bool wait_for(const struct exchange *it, int peer, struct patience *patience)
{
    const struct gyre_comm *comm = it->comm;
    const unsigned char *rest = comm->control[peer]->line[it->number & 1].payload + GY_TINY_FIRST_LINE;
    bool two_lines = it->bytes > GY_TINY_FIRST_LINE && it->bytes <= GY_WINDOW_INLINE;
    while (!has_published(comm, peer, it->number)) {
        if (two_lines)
            __builtin_prefetch(rest); /* so that it comes together with the flag */
        if (patience->spins > 0) {
            patience->spins--;
            gy_cpu_relax();
        } else if (patience->yields > 0) {
            patience->yields--;
            sched_yield();
        } else {
            return false;
        }
    }
    return true;
}

bool gy_tiny_call(struct gyre_comm *comm, const struct gy_call *call, gyre_status *status_p)
{
    if (!is_open(comm, call))
        return false;
    struct gy_arrival shape = gy_shape_of(call, (enum gy_algorithm)comm->tiny[call->collective].algorithm, comm->size);
    struct exchange it = exchange_of(comm, &shape, 0, gy_dtype_bytes(call->dtype), call->input, call->output);
    if ((int64_t)it.bytes > comm->tiny[call->collective].most)
        return false;
    struct gy_context *ctx = comm->ctx;
    it.number = ++comm->inline_started;
    shape.sequence = ++comm->sequence;
    publish(&it);
    gy_window_wake(comm);
    struct gyre_page_record *record = gy_recorder_begin(&comm->recorder, &shape);
    count_bytes(&it);
    gy_window_arrive(comm, &shape, (struct gy_offer){0});
    prepare_next(&it);
    /* A thread that waits for the lock is let in by a request's turns. */
    struct patience patience = {.spins = ctx->crowded ? GY_TINY_SPINS_CROWDED : GY_TINY_SPINS,
                                .yields = ctx->crowded && !ctx->driver.held ? GY_TINY_YIELDS : 0};
    for (int p = 0; p < comm->size; p++) {
        if (p == comm->rank)
            continue;
        if (!wait_for(&it, p, &patience) || verify(&it, p) != YES) {
            *status_p = go_on(&it, call, p);
            return true;
        }
    }
    comm->compared = shape.sequence;
    const struct gy_operation operation = {.dtype = call->dtype, .op = call->op};
    take(&it, &operation, gy_comm_canonical(comm));
    gy_recorder_done(&comm->recorder, record);
    if ((it.number & (GY_LOOK_EVERY - 1)) == 0)
        gy_look_around(ctx);
    *status_p = GYRE_SUCCESS;
    return true;
}
