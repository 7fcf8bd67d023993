/* The exchange itself: exchange.h says why it is right. */
#include "collectives/exchange.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "collectives/order.h"

/* Where the processor can push: bytes of a vector that is pushed out of this core's cache, and of one for whose successor the
 * place is fetched for writing. Of more, both keep the readers waiting, but where they are done together: the lines of a vector
 * that a root gives or takes, and of one that all give each other, up to these. */
#define GY_PUSHED 1024
#define GY_PREPARED 2048
#define GY_TOGETHER_ROOTED 8192
#define GY_TOGETHER 4096
/* Elsewhere: bytes whose place is fetched for writing when the call begins, all lines at once, and that a reader asks for together
 * with the flag. Of more, the lines are asked for twice as often as they travel. */
#define GY_OWNED 2048
#define GY_EXPECTED 512
#define GY_HARDWARE_LINE 64

_Static_assert(GY_WINDOW_VECTOR < 1 << 20 && GY_WINDOW_RANKS < 1 << 12, "counts and roots fit the shape word");
_Static_assert(GY_COLLECTIVES <= 16 && GYRE_FLOAT8_E5M2 < 16, "and so do collectives and types");

/* All that two ranks must agree on: no two shapes of direct exchanges with near sequence numbers share a word. */
static uint64_t shape_word(const struct gy_arrival *shape)
{
    return (shape->sequence & 0xffff) << 48 | (uint64_t)(shape->root & 0xfff) << 36 | (uint64_t)shape->op << 28 |
           (uint64_t)(shape->dtype & 15) << 24 | (uint64_t)(shape->collective & 15) << 20 | (shape->count & 0xfffff);
}

size_t gy_exchange_blocks(const struct gyre_comm *comm, unsigned collective)
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
static bool gives(const struct gy_exchange *it)
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

static unsigned char *payload_of(const struct gy_exchange *it, int rank, uint64_t number)
{
    struct gy_window_control *control = it->comm->control[rank];
    return it->bytes <= GY_WINDOW_INLINE ? control->line[number % GY_WINDOW_LINES].payload
                                         : gy_window_vector(control, number, it->bytes);
}

static bool ask_processor(void)
{
#if defined(__x86_64__)
    enum { CPUID_7_ECX_CLDEMOTE = 1 << 25 };
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (ecx & CPUID_7_ECX_CLDEMOTE);
#else
    return false;
#endif
}

/* Racing threads find the same. */
static bool can_push(void)
{
    enum { UNKNOWN, YES, NO };
    static _Atomic int known;
    int found = atomic_load_explicit(&known, memory_order_relaxed);
    if (found == UNKNOWN) {
        found = ask_processor() ? YES : NO;
        atomic_store_explicit(&known, found, memory_order_relaxed);
    }
    return found == YES;
}

static bool together(const struct gy_exchange *it)
{
    if (gy_has_root(it->shape->collective))
        return it->bytes <= GY_TOGETHER_ROOTED;
    return it->bytes > GY_PREPARED && it->bytes <= GY_TOGETHER;
}

/* Is its vector pushed, or its successor's place prepared, as vectors up to `most` bytes are? */
static bool worth_pushing(const struct gy_exchange *it, size_t most)
{
    return it->bytes > GY_WINDOW_INLINE && !it->past && gives(it) && can_push() && (it->bytes <= most || together(it));
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

/* So many bytes of the contribution, from one on, in its place as exchange `number`. */
typedef void (*part_func)(const struct gy_exchange *it, uint64_t number, size_t from, size_t bytes);

/* What others read of a contribution: a block for every rank without this one's own, which it takes from its input. */
static inline void each_part(const struct gy_exchange *it, uint64_t number, part_func func)
{
    size_t mine = (size_t)it->comm->rank * it->block;
    if (it->bytes == it->block) {
        func(it, number, 0, it->bytes);
        return;
    }
    func(it, number, 0, mine);
    func(it, number, mine + it->block, it->bytes - mine - it->block);
}

static void put(const struct gy_exchange *it, uint64_t number, size_t from, size_t bytes)
{
    (it->past ? gy_copy_stream : gy_copy)(payload_of(it, it->comm->rank, number) + from, it->input + from, bytes);
}

static void push(const struct gy_exchange *it, uint64_t number, size_t from, size_t bytes)
{
    const unsigned char *place = payload_of(it, it->comm->rank, number) + from;
    for (size_t at = 0; at < bytes; at += GY_HARDWARE_LINE)
        hand_over(place + at);
}

static void fetch_back(const struct gy_exchange *it, uint64_t number, size_t from, size_t bytes)
{
    const unsigned char *place = payload_of(it, it->comm->rank, number) + from;
    for (size_t at = 0; at < bytes; at += GY_HARDWARE_LINE)
        gy_line_own(place + at);
}

void gy_exchange_publish(const struct gy_exchange *it)
{
    struct gy_window_line *mine = &it->comm->control[it->comm->rank]->line[it->number % GY_WINDOW_LINES];
    if (it->bytes > 0 && gives(it))
        each_part(it, it->number, put);
    if (it->past)
        gy_stream_fence();
    mine->shape = shape_word(it->shape);
    atomic_store_explicit(&mine->sequence, it->number, memory_order_release);
    if (worth_pushing(it, GY_PUSHED))
        each_part(it, it->number, push);
}

void gy_exchange_prepare(const struct gy_exchange *it)
{
    if (worth_pushing(it, GY_PREPARED))
        each_part(it, it->number + 1, fetch_back);
}

void gy_exchange_own(struct gyre_comm *comm, const struct gy_call *call)
{
    const struct gy_arrival shape = {.root = (uint32_t)call->root, .collective = (uint8_t)call->collective};
    struct gy_exchange it = {.comm = comm, .shape = &shape, .number = comm->inline_started + 1};
    struct gy_window_line *line = &comm->control[comm->rank]->line[it.number % GY_WINDOW_LINES];
    it.block = call->count * gy_dtype_bytes(call->dtype);
    it.bytes = it.block * gy_exchange_blocks(comm, shape.collective);
    bool given = it.bytes > GY_TINY_FIRST_LINE && gives(&it);
    if (given && it.bytes > GY_WINDOW_INLINE) {
        if (it.bytes - (it.bytes == it.block ? 0 : it.block) > GY_OWNED || can_push()) /* my own block is not shown */
            return;
        each_part(&it, it.number, fetch_back);
    }
    gy_line_own(line); /* the first to be written of two, the last of more */
    if (given && it.bytes <= GY_WINDOW_INLINE)
        gy_line_own(line->payload + GY_TINY_FIRST_LINE);
}

/* Does this rank read anything of a peer's contribution? */
static bool reads(const struct gy_exchange *it, int peer)
{
    int root = (int)it->shape->root;
    switch (it->shape->collective) {
    case GY_BARRIER: return false;
    case GY_BROADCAST:
    case GY_SCATTER_FROM: return peer == root;
    case GY_REDUCE_TO:
    case GY_GATHER_TO: return it->comm->rank == root;
    default: return true;
    }
}

struct gy_span gy_exchange_expected(const struct gy_exchange *it, int peer)
{
    const struct gy_span nothing = {0};
    if (it->bytes <= GY_TINY_FIRST_LINE || it->block > GY_EXPECTED || !reads(it, peer))
        return nothing;
    const unsigned char *place = payload_of(it, peer, it->number);
    if (it->bytes <= GY_WINDOW_INLINE)
        return (struct gy_span){place + GY_TINY_FIRST_LINE, it->bytes - GY_TINY_FIRST_LINE};
    if (can_push())
        return nothing;
    size_t skip = it->bytes == it->block ? 0 : (size_t)it->comm->rank * it->block;
    return (struct gy_span){place + skip, it->block};
}

/* Operations with a root, that went before by a plan, may have waited for nobody: then they are compared as well. */
static bool all_compared(const struct gyre_comm *comm, uint64_t sequence)
{
    const struct gy_arrival *before = &comm->control[comm->rank]->entry[(sequence - 1) % GY_ARRIVALS].arrival;
    return comm->compared + 1 == sequence || sequence == 1 || !gy_has_root(before->collective);
}

enum gy_answer gy_exchange_verify(const struct gy_exchange *it, int peer)
{
    struct gyre_comm *comm = it->comm;
    bool same = comm->control[peer]->line[it->number % GY_WINDOW_LINES].shape == shape_word(it->shape);
    if (same && all_compared(comm, it->shape->sequence))
        return GY_YES;
    if (!gy_window_verify(comm, it->shape->sequence, peer))
        return GY_NO;
    return same ? GY_YES : GY_NOT_YET;
}

/* The ranks' operands of a reduction, from element `skip` of the vector on. */
static void reduce(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical, size_t skip)
{
    const void *sources[GY_WINDOW_RANKS];
    for (int p = 0; p < it->comm->size; p++)
        sources[p] = (p == it->comm->rank ? it->input : payload_of(it, p, it->number)) + skip;
    (canonical ? gy_combine_tree : gy_combine_many)(operation, it->output, NULL, sources, it->comm->size,
                                                    it->shape->count);
    gy_operation_end(operation, it->output, it->shape->count, it->comm->size);
}

/* Block `from` of rank p's contribution to block `to` of the output; my own may be in its place. */
static void copy(const struct gy_exchange *it, int p, int from, int to)
{
    const unsigned char *source = p == it->comm->rank ? it->input : payload_of(it, p, it->number);
    source += (size_t)from * it->block;
    unsigned char *target = it->output + (size_t)to * it->block;
    if (source != target)
        memcpy(target, source, it->block);
}

void gy_exchange_take(const struct gy_exchange *it, const struct gy_operation *operation, bool canonical)
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

struct gy_exchange gy_exchange_of(struct gyre_comm *comm, const struct gy_arrival *shape, uint64_t number,
                                  size_t element, const void *input, void *output)
{
    size_t block = shape->count * element;
    return (struct gy_exchange){.comm = comm,
                                .shape = shape,
                                .number = number,
                                .block = block,
                                .bytes = block * gy_exchange_blocks(comm, shape->collective),
                                .input = input,
                                .output = output};
}
