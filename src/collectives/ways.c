/* ways.h says what is tried, and why so. */
#include "collectives/ways.h"

#include "collectives/mapped.h"
#include "core/clock.h"
#include "transport/fence.h"

_Static_assert(GY_COLLECTIVES <= GY_WAY_KINDS && GY_WAY_OCTAVES <= 8, "a bit each");

#define FIRST_TRIAL 8            /* calls before it: what a program does once it need not wait for */
#define SAMPLES 8                /* calls by each way */
#define LEFT_OUT GY_WINDOW_SLOTS /* of them: each slot is another one, whose pages are mapped at the first touch */
#define OTHERS 64       /* calls of other sizes, after which a trial is given up: its own does not come again */
#define PAUSE 512       /* calls between two trials of ways that are close, */
#define LONG_PAUSE 4096 /* and of ways of which one takes longer than FAR times the other */
#define FAR_PERCENT 130
#define BETTER_PERCENT 95 /* of the time of the way in use: below, the other one takes its place */
#define LEAST_OCTAVE 13   /* 8 KiB */

bool gy_way_asks(struct gy_way *way, size_t bytes)
{
    uint32_t pause = way->pause ? way->pause : FIRST_TRIAL;
    if (way->trial)
        return true;
    if (++way->calls <= pause)
        return false;
    way->trial = true;
    way->bytes = bytes;
    way->others = 0;
    way->tried = way->slots;
    way->seen[0] = way->seen[1] = 0;
    way->least[0] = way->least[1] = UINT32_MAX;
    return true;
}

static bool is_below(uint32_t value, uint32_t other, uint32_t percent)
{
    return (uint64_t)value * 100 < (uint64_t)other * percent;
}

static void end_trial(struct gy_way *way)
{
    way->calls = 0;
    way->trial = false;
}

static void judge(struct gy_way *way)
{
    uint32_t used = way->least[way->slots], other = way->least[!way->slots];
    if (is_below(other, used, BETTER_PERCENT))
        way->slots = !way->slots;
    bool close = is_below(used, other, FAR_PERCENT) && is_below(other, used, FAR_PERCENT);
    way->pause = close ? PAUSE : LONG_PAUSE;
    end_trial(way);
}

bool gy_way_told(struct gy_way *way, size_t bytes, bool slots, int64_t ns)
{
    uint32_t time = ns < 0 || ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
    if (bytes != way->bytes) {
        if (++way->others > OTHERS)
            end_trial(way);
    } else if (slots == way->tried && way->seen[slots] < SAMPLES) {
        if (way->seen[slots]++ >= LEFT_OUT && time < way->least[slots])
            way->least[slots] = time;
        if (way->seen[slots] == SAMPLES) {
            way->tried = !slots;
            if (way->seen[!slots] == SAMPLES)
                judge(way);
        }
    }
    return way->trial ? way->tried : way->slots;
}

static int octave_of(size_t bytes)
{
    int octave = 0;
    while (octave < GY_WAY_OCTAVES - 1 && bytes > (size_t)2 << (LEAST_OCTAVE + octave))
        octave++;
    return octave;
}

static int judge_of(const struct gyre_request *r)
{
    int root = r->plan->shape.root;
    switch (r->plan->shape.collective) {
    case GY_BROADCAST:
    case GY_SCATTER_FROM: return (root + 1) % r->comm->size;
    case GY_REDUCE_TO:
    case GY_GATHER_TO: return root;
    default: return 0;
    }
}

/* A rank that gives to the judge. */
static int giver_of(const struct gyre_request *r)
{
    enum gy_collective collective = r->plan->shape.collective;
    if (collective == GY_BROADCAST || collective == GY_SCATTER_FROM)
        return r->plan->shape.root;
    return (judge_of(r) + 1) % r->comm->size;
}

bool gy_ways_reads(struct gyre_request *r)
{
    struct gyre_comm *comm = r->comm;
    enum gy_collective collective = r->plan->shape.collective;
    size_t bytes = r->in.total * r->element;
    int octave = octave_of(bytes), judge = judge_of(r);
    if (comm->ctx->crowded || comm->size < 2)
        return true;
    if (judge == comm->rank && comm->ways.asks) {
        struct gy_way *way = &comm->ways.way[collective][octave];
        if (gy_way_asks(way, bytes)) {
            comm->ways.measured = way;
            comm->ways.began = gy_now();
            comm->ways.giver = giver_of(r);
            comm->ways.collective = (int)collective;
            comm->ways.octave = octave;
            comm->ways.bytes = bytes;
        }
    }
    return !(atomic_load_explicit(&comm->control[judge]->through_slots[collective], memory_order_relaxed) >> octave &
             1);
}

void gy_ways_begin(struct gyre_comm *comm)
{
    comm->ways.asks = !comm->ctx->active_first;
    comm->ways.measured = NULL;
}

/* How the giver's input has come is in its entry, unless it has gone far ahead; it may also lie in memory of gyre. */
void gy_ways_end(struct gyre_comm *comm, bool succeeded)
{
    struct gy_ways *ways = &comm->ways;
    ways->asks = false;
    if (!ways->measured || !succeeded)
        return;
    int64_t took = gy_now() - ways->began;
    const struct gy_entry *entry = &comm->control[ways->giver]->entry[comm->sequence % GY_ARRIVALS];
    if (atomic_load_explicit(&entry->offered, memory_order_acquire) != comm->sequence)
        return;
    struct gy_offer offer = entry->offer;
    gy_fence(memory_order_acquire);
    if (atomic_load_explicit(&entry->offered, memory_order_relaxed) != comm->sequence || offer.input)
        return; /* replaced meanwhile, or no choice was made */
    bool slots = gy_way_told(ways->measured, ways->bytes, offer.far_input == 0, took);
    struct gy_window_control *mine = comm->control[comm->rank];
    _Atomic uint8_t *verdict = &mine->through_slots[ways->collective];
    uint8_t bit = (uint8_t)(1u << ways->octave), now = atomic_load_explicit(verdict, memory_order_relaxed);
    now = (uint8_t)(slots ? now | bit : now & ~bit);
    atomic_store_explicit(verdict, now, memory_order_relaxed);
}
