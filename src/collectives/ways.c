/* ways.h says what is tried, and why so. */
#include "collectives/ways.h"

#include "collectives/mapped.h"
#include "core/clock.h"
#include "transport/fence.h"

_Static_assert(GY_COLLECTIVES <= GY_WAY_KINDS && GY_WAY_OCTAVES <= 16, "a bit each");
_Static_assert(GY_QUESTIONS == GY_WAY_QUESTIONS, "a word each");

/* How a trial goes, for calls of a size. */
struct terms {
    uint32_t first;      /* calls before the first one: what a program does once it need not wait for */
    uint32_t samples;    /* calls by each way */
    uint32_t left_out;   /* of them: what they touch for the first time is mapped then */
    uint32_t pause;      /* calls between two trials of ways that are close, */
    uint32_t long_pause; /* and of ways of which one takes longer than FAR_PERCENT of the other */
    uint32_t
        others; /* calls of other sizes, or by the other way, after which a trial is given up: its own do not come */
};

/* Each call of a few tiles has other slots, a longer one has them all. */
static const struct terms of_short = {8, 8, GY_WINDOW_SLOTS, 512, 4096, 64}, of_long = {1, 2, 1, 32, 256, 16};

#define LONG_BYTES ((size_t)1 << 20)
#define FAR_PERCENT 130
#define BETTER_PERCENT 95 /* of the time of the way in use: below, the other one takes its place */

static const struct terms *terms_of(size_t bytes)
{
    return bytes >= LONG_BYTES ? &of_long : &of_short;
}

bool gy_way_asks(struct gy_way *way, size_t bytes)
{
    uint32_t pause = way->pause ? way->pause : terms_of(bytes)->first;
    if (way->trial)
        return true;
    if (++way->calls <= pause)
        return false;
    way->trial = true;
    way->bytes = bytes;
    way->others = 0;
    way->tried = way->second;
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
    uint32_t used = way->least[way->second], other = way->least[!way->second];
    if (is_below(other, used, BETTER_PERCENT))
        way->second = !way->second;
    bool close = is_below(used, other, FAR_PERCENT) && is_below(other, used, FAR_PERCENT);
    way->pause = close ? terms_of(way->bytes)->pause : terms_of(way->bytes)->long_pause;
    end_trial(way);
}

bool gy_way_untold(struct gy_way *way)
{
    if (way->trial && ++way->others > terms_of(way->bytes)->others) {
        way->pause = terms_of(way->bytes)->long_pause;
        end_trial(way);
    }
    return way->trial ? way->tried : way->second;
}

bool gy_way_told(struct gy_way *way, size_t bytes, bool second, int64_t ns)
{
    uint32_t time = ns < 0 || ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
    const struct terms *terms = terms_of(way->bytes);
    if (bytes != way->bytes) {
        if (++way->others > terms->others)
            end_trial(way);
    } else if (second != way->tried) {
        return gy_way_untold(way);
    } else if (way->seen[second] < terms->samples) {
        if (way->seen[second]++ >= terms->left_out && time < way->least[second])
            way->least[second] = time;
        if (way->seen[second] == terms->samples) {
            way->tried = !second;
            if (way->seen[!second] == terms->samples)
                judge(way);
        }
    }
    return way->trial ? way->tried : way->second;
}

static int octave_of(enum gy_question question, size_t bytes)
{
    static const int least[GY_QUESTIONS] = {[GY_HOW_GIVEN] = 13, [GY_HOW_WRITTEN] = 20}; /* 8 KiB, 1 MiB */
    int octave = 0;
    while (octave < GY_WAY_OCTAVES - 1 && bytes > (size_t)2 << (least[question] + octave))
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

/* Counts the call if this rank is its judge. The second way? */
static bool ask(struct gyre_request *r, enum gy_question question, size_t bytes)
{
    struct gyre_comm *comm = r->comm;
    enum gy_collective collective = r->plan->shape.collective;
    int octave = octave_of(question, bytes), judge = judge_of(r);
    if (comm->size < 2)
        return false;
    if (judge == comm->rank && comm->ways.asks && !comm->ways.measured) {
        struct gy_way *way = &comm->ways.way[question][collective][octave];
        if (gy_way_asks(way, bytes)) {
            comm->ways.measured = way;
            comm->ways.began = gy_now();
            comm->ways.question = question;
            comm->ways.giver = giver_of(r);
            comm->ways.collective = (int)collective;
            comm->ways.octave = octave;
            comm->ways.bytes = bytes;
        }
    }
    const _Atomic uint16_t *verdict = &comm->control[judge]->second[question][collective];
    return atomic_load_explicit(verdict, memory_order_relaxed) >> octave & 1;
}

/* Reading all operands on every rank saves an all_reduce one meeting, and reads them twice. */
static bool begins_with_slots(int collective)
{
    return collective == GY_ALL_REDUCE;
}

bool gy_ways_reads(struct gyre_request *r, bool mapped)
{
    r->comm->ways.mapped = mapped;
    return ask(r, GY_HOW_GIVEN, r->in.total * r->element) == begins_with_slots((int)r->plan->shape.collective);
}

bool gy_ways_streams(struct gyre_request *r, size_t bytes)
{
    bool second = ask(r, GY_HOW_WRITTEN, bytes);
    r->comm->ways.written = second;
    return !second;
}

void gy_ways_begin(struct gyre_comm *comm)
{
    comm->ways.asks = !comm->ctx->active_first;
    comm->ways.measured = NULL;
}

/* How the giver's input has come is in its entry, unless it has gone far ahead; it may also lie in memory of gyre, where a choice
 * was made only if the call said so. False: that cannot be told. */
static bool has_come(const struct gyre_comm *comm, bool *second_p)
{
    const struct gy_entry *entry = &comm->control[comm->ways.giver]->entry[comm->sequence % GY_ARRIVALS];
    if (atomic_load_explicit(&entry->offered, memory_order_acquire) != comm->sequence)
        return false;
    struct gy_offer offer = entry->offer;
    gy_fence(memory_order_acquire);
    bool through_slots = !offer.far_input && !offer.input;
    *second_p = through_slots != begins_with_slots(comm->ways.collective);
    return atomic_load_explicit(&entry->offered, memory_order_relaxed) == comm->sequence &&
           (!offer.input || comm->ways.mapped);
}

void gy_ways_end(struct gyre_comm *comm, bool succeeded)
{
    struct gy_ways *ways = &comm->ways;
    ways->asks = false;
    if (!ways->measured || !succeeded)
        return;
    int64_t took = gy_now() - ways->began;
    bool second = ways->written;
    bool known = ways->question != GY_HOW_GIVEN || has_come(comm, &second);
    second = known ? gy_way_told(ways->measured, ways->bytes, second, took) : gy_way_untold(ways->measured);
    _Atomic uint16_t *verdict = &comm->control[comm->rank]->second[ways->question][ways->collective];
    uint16_t bit = (uint16_t)(1u << ways->octave), now = atomic_load_explicit(verdict, memory_order_relaxed);
    now = (uint16_t)(second ? now | bit : now & ~bit);
    atomic_store_explicit(verdict, now, memory_order_relaxed);
}
