/* autotune.h says what is tried, and why so. */
#include "collectives/shm/autotune.h"

#include <stdlib.h>

#include "collectives/shm/zero_copy.h"
#include "core/clock.h"
#include "core/fence.h"
#include "core/mem.h"

_Static_assert(GY_COLLECTIVES <= GY_WAY_KINDS && GY_WAY_OCTAVES * 2 <= 32 && GY_WAYS <= 4, "two bits each");
_Static_assert(GY_QUESTIONS == GY_WAY_QUESTIONS, "a word each");

static const struct {
    int ways, least; /* how many there are; the first octave ends at twice two to the power of it */
} questions[GY_QUESTIONS] = {
    [GY_HOW_GIVEN] = {4, 13},   /* 8 KiB */
    [GY_HOW_SHOWN] = {3, 12},   /* 4 KiB */
    [GY_HOW_WRITTEN] = {2, 20}, /* 1 MiB */
    [GY_HOW_KEPT] = {2, 20},
};

/* How a trial goes, for calls of a size. */
struct terms {
    uint32_t first;      /* calls before the first one: what a program does once it need not wait for */
    uint32_t samples;    /* calls by each way */
    uint32_t left_out;   /* of them: they touch things for the first time, and who gives may be a call ahead */
    uint32_t pause;      /* calls between two trials, at least, */
    uint32_t long_pause; /* and at most */
    uint32_t others;     /* of other sizes, or by another way, after which a trial is given up: its own do not come */
};

/* Each short exchange has another place, each call of a few tiles has other slots, a longer one has them all. */
static const struct terms of_shortest = {8, 12, GY_WINDOW_LINES, 512, 4096, 64},
                          of_short = {8, 8, GY_WINDOW_SLOTS, 512, 4096, 64}, of_long = {1, 3, 1, 32, 256, 16},
                          of_longest = {1, 2, 1, 32, 256, 16};

#define LONG_BYTES ((size_t)1 << 20)
#define LONGEST_BYTES ((size_t)8 << 20)
#define COST 200 /* times what a trial loses by the slower ways lies between it and the next, within the limits above */
#define BETTER_PERCENT 95  /* of the time of the way in use: below, the quickest takes its place */
#define CLEARLY_PERCENT 85 /* the same where ranks share cores */
/* Of the time of the quickest. A way that has taken more is far behind: a neighbour's first trial of long calls does without. */
#define BEHIND_PERCENT 150
#define HOPELESS_PERCENT 200 /* after a call that has taken more the next way is tried, */
#define COLD_PERCENT 300     /* after one of the first calls of short ones if it has taken more than this */
#define COLD_CALLS 2         /* short calls of a way that may take anything */
#define NEIGHBOURS 2         /* octaves that far apart are */

/* Between trials the way in use is watched: of short calls every so-manieth. */
#define WATCHED_EACH 8
#define LATE_PERCENT 150 /* of its time in the trial, scaled by the size: so much more is late, */
#define LATE_CALLS 8     /* and so many late ones, one after the other, begin a trial */
#define CALM_LEAST 8     /* the part of the least pause that lies between the first such trial and the next */

static const struct terms *terms_of(size_t bytes)
{
    return bytes >= LONGEST_BYTES     ? &of_longest
           : bytes >= LONG_BYTES      ? &of_long
           : bytes <= GY_WINDOW_SHORT ? &of_shortest
                                      : &of_short;
}

/* The times of a trial say what calls of about its size take. Where ranks share cores the others' turns are in them. */
static bool is_watched(const struct gy_way *way, size_t bytes)
{
    if (!way->judged || way->crowded || bytes < way->bytes / 2 || bytes / 2 > way->bytes)
        return false;
    return bytes >= LONG_BYTES || way->calls % WATCHED_EACH == 0;
}

static void begin_trial(struct gy_way *way, size_t bytes)
{
    way->trial = true;
    way->late = 0;
    way->bytes = bytes;
    way->others = 0;
    way->skipped = way->judged || bytes < LONG_BYTES ? 0 : way->behind;
    way->tried = way->used;
    for (int w = 0; w < GY_WAYS; w++) {
        way->seen[w] = 0;
        way->least[w] = way->first[w] = UINT32_MAX;
    }
}

bool gy_way_asks(struct gy_way *way, size_t bytes)
{
    uint32_t pause = way->pause ? way->pause : terms_of(bytes)->first;
    if (way->trial)
        return true;
    if (++way->calls <= pause)
        return is_watched(way, bytes);
    way->calm /= 2;
    begin_trial(way, bytes);
    return true;
}

static void end_trial(struct gy_way *way)
{
    way->calls = 0;
    way->trial = false;
}

static bool is_skipped(const struct gy_way *way, int w)
{
    return way->skipped >> w & 1;
}

/* In calls of the way in use. */
static uint32_t pause_after(const struct gy_way *way, int ways)
{
    const struct terms *terms = terms_of(way->bytes);
    uint64_t used = (uint64_t)way->least[way->used] + 1 /* no clock is that fine */, lost = 0;
    for (int w = 0; w < ways; w++)
        lost += way->least[w] > used ? (way->least[w] - used) * way->seen[w] : 0;
    uint64_t pause = lost * COST / used;
    return pause < terms->pause ? terms->pause : pause > terms->long_pause ? terms->long_pause : (uint32_t)pause;
}

/* Has it taken more than so many hundredths of the quickest call of the trial? */
static bool exceeds(uint32_t time, const struct gy_way *way, uint64_t percent)
{
    uint32_t quickest = UINT32_MAX;
    for (int w = 0; w < GY_WAYS; w++)
        quickest = way->least[w] < quickest ? way->least[w] : quickest;
    return (uint64_t)time * 100 > quickest * percent;
}

/* The way in use is never far behind: one as quick as it would take its place. */
static void judge(struct gy_way *way, int ways)
{
    int quickest = way->used;
    for (int w = 0; w < ways; w++)
        quickest = way->least[w] < way->least[quickest] ? w : quickest;
    uint64_t percent = way->crowded ? CLEARLY_PERCENT : BETTER_PERCENT;
    if ((uint64_t)way->least[quickest] * 100 < (uint64_t)way->least[way->used] * percent)
        way->used = (uint8_t)quickest;
    way->behind = 0;
    for (int w = 0; w < ways; w++)
        way->behind |= (uint8_t)(exceeds(way->least[w], way, BEHIND_PERCENT) << w);
    way->pause = way->skipped ? terms_of(way->bytes)->pause : pause_after(way, ways);
    way->judged = true;
    end_trial(way);
}

/* Of so many ways. The one in use has been the first. */
static void try_next(struct gy_way *way, int ways)
{
    do
        way->tried = (uint8_t)((way->tried + 1) % ways);
    while (is_skipped(way, way->tried));
    if (way->tried == way->used)
        judge(way, ways);
}

static int now(const struct gy_way *way)
{
    return way->trial ? way->tried : way->used;
}

int gy_way_untold(struct gy_way *way)
{
    if (way->trial && ++way->others > terms_of(way->bytes)->others) {
        way->pause = terms_of(way->bytes)->long_pause;
        end_trial(way);
    }
    return now(way);
}

/* Of the way's calls that count the one of this number. The second quickest among crowded ranks, as far as there are two. */
static void count_call(struct gy_way *way, int w, uint32_t number, uint32_t time)
{
    uint32_t first = way->first[w];
    way->first[w] = time < first ? time : first;
    if (!way->crowded || number == 0)
        way->least[w] = way->first[w];
    else if (time < first)
        way->least[w] = first;
    else if (time < way->least[w] || number == 1)
        way->least[w] = time;
}

/* A watched call. What takes half as long again as it did when it was chosen is compared with the others at once: they may not have
 * become slower. Each such trial doubles the number of calls that lie between it and the next one. */
static void watch(struct gy_way *way, size_t bytes, int went, uint32_t time)
{
    const struct terms *terms = terms_of(bytes);
    uint64_t expected = (uint64_t)way->least[way->used] * bytes / way->bytes;
    if (went != way->used || (uint64_t)time * 100 <= expected * LATE_PERCENT) {
        way->late = 0;
        return;
    }
    if (++way->late < LATE_CALLS || way->calls < way->calm)
        return;
    uint32_t calm = way->calm ? 2 * way->calm : terms->pause / CALM_LEAST;
    way->calm = calm < terms->long_pause ? calm : terms->long_pause;
    begin_trial(way, bytes);
}

/* Further calls by this way would be a loss. The first ones of short calls may find nothing in the caches. */
static bool is_hopeless(const struct gy_way *way, const struct terms *terms, int went, uint32_t time)
{
    if (way->crowded)
        return false;
    if (way->bytes >= LONG_BYTES || way->seen[went] >= terms->left_out)
        return exceeds(time, way, HOPELESS_PERCENT);
    return way->seen[went] >= COLD_CALLS && exceeds(time, way, COLD_PERCENT);
}

int gy_way_told(struct gy_way *way, int ways, size_t bytes, int went, int64_t ns)
{
    uint32_t time = ns < 0 || ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
    const struct terms *terms = terms_of(way->bytes);
    if (!way->trial) {
        watch(way, bytes, went, time);
    } else if (bytes != way->bytes) {
        if (++way->others > terms->others)
            end_trial(way);
    } else if (went != way->tried) {
        return gy_way_untold(way);
    } else {
        bool hopeless = is_hopeless(way, terms, went, time);
        if (way->seen[went]++ >= terms->left_out || hopeless)
            count_call(way, went, way->seen[went] - 1 - terms->left_out, time);
        if (way->seen[went] == terms->samples || hopeless)
            try_next(way, ways);
    }
    return now(way);
}

/* The octave nearest to this one that has been judged, the shorter of two; -1: none. */
static int nearest_judged(const struct gy_way *octaves, int octave)
{
    for (int far = 0; far < GY_WAY_OCTAVES; far++) {
        if (octave - far >= 0 && octaves[octave - far].judged)
            return octave - far;
        if (octave + far < GY_WAY_OCTAVES && octaves[octave + far].judged)
            return octave + far;
    }
    return -1;
}

void gy_ways_spread(struct gy_way *octaves)
{
    for (int o = 0; o < GY_WAY_OCTAVES; o++) {
        int from = nearest_judged(octaves, o);
        if (from < 0 || octaves[o].trial)
            continue;
        octaves[o].used = octaves[from].used;
        octaves[o].behind = abs(o - from) <= NEIGHBOURS ? octaves[from].behind : 0;
    }
}

static int octave_of(enum gy_question question, size_t bytes)
{
    int octave = 0;
    while (octave < GY_WAY_OCTAVES - 1 && bytes > (size_t)2 << (questions[question].least + octave))
        octave++;
    return octave;
}

/* Of what a question is. */
struct asked {
    enum gy_collective collective;
    int root;
    size_t bytes;
    bool told; /* by the giver: how it has gone; otherwise as the verdict says */
};

static int judge_of(const struct gyre_comm *comm, const struct asked *it)
{
    switch (it->collective) {
    case GY_BROADCAST:
    case GY_SCATTER_FROM: return (it->root + 1) % comm->size;
    case GY_REDUCE_TO:
    case GY_GATHER_TO: return it->root;
    default: return 0;
    }
}

/* A rank that gives to the judge. */
static int giver_of(const struct gyre_comm *comm, const struct asked *it)
{
    if (it->collective == GY_BROADCAST || it->collective == GY_SCATTER_FROM)
        return it->root;
    return (judge_of(comm, it) + 1) % comm->size;
}

/* Where ranks share cores nothing is claimed: that has not been measured. */
static int ways_of(const struct gyre_comm *comm, enum gy_question question)
{
    int all = questions[question].ways;
    return comm->ctx->crowded && question == GY_HOW_SHOWN ? all - 1 : all;
}

static int verdict_of(const struct gyre_comm *comm, enum gy_question question, const struct asked *it)
{
    const _Atomic uint32_t *verdict = &comm->control[judge_of(comm, it)]->way[question][it->collective];
    return (int)(atomic_load_explicit(verdict, memory_order_relaxed) >> (2 * octave_of(question, it->bytes)) & 3);
}

/* Of an octave, made at the first question: a communicator that is used little keeps no place for all of them. NULL: out of
 * memory; the call is not counted then. */
static struct gy_way *way_of(struct gyre_comm *comm, enum gy_question question, const struct asked *it)
{
    struct gy_way **octaves = &comm->ways.way[question][it->collective];
    if (!*octaves)
        *octaves = gy_alloc_zero(GY_WAY_OCTAVES, sizeof(**octaves));
    return *octaves ? *octaves + octave_of(question, it->bytes) : NULL;
}

/* Counts the call if this rank is its judge. Returns the way. */
static int ask(struct gyre_comm *comm, enum gy_question question, const struct asked *it)
{
    if (comm->size < 2)
        return 0;
    int judge = judge_of(comm, it), now = verdict_of(comm, question, it);
    if (judge == comm->rank && comm->ways.asks && !comm->ways.measured) {
        struct gy_way *way = way_of(comm, question, it);
        if (!way)
            return now;
        way->crowded = comm->ctx->crowded;
        if (gy_way_asks(way, it->bytes)) {
            comm->ways.measured = way;
            comm->ways.began = gy_now();
            comm->ways.question = question;
            comm->ways.giver = giver_of(comm, it);
            comm->ways.collective = (int)it->collective;
            comm->ways.bytes = it->bytes;
            comm->ways.went = it->told ? -1 : now;
        }
    }
    return now;
}

static struct asked asked_of(const struct gyre_request *r, size_t bytes, bool told)
{
    const struct gy_plan_shape *shape = &r->plan->shape;
    return (struct asked){.collective = shape->collective, .root = shape->root, .bytes = bytes, .told = told};
}

/* Between the number of a way and what it is. Reading all operands on every rank saves an all_reduce one meeting, and reads them
 * twice. */
static int swapped(int collective, int way)
{
    return collective == GY_ALL_REDUCE && way < 2 ? 1 - way : way;
}

enum gy_giving gy_ways_given(struct gyre_request *r, bool mapped)
{
    const struct asked it = asked_of(r, r->in.total * r->element, true);
    r->comm->ways.mapped = mapped;
    enum gy_giving giving = (enum gy_giving)swapped((int)it.collective, ask(r->comm, GY_HOW_GIVEN, &it));
    r->prefers_slots = giving == GY_GIVEN_SLOTS || giving == GY_GIVEN_CLAIMED;
    return giving;
}

enum gy_giving gy_ways_rooted(struct gyre_comm *comm, const struct gy_call *call, size_t bytes, bool open)
{
    const struct asked it = {.collective = call->collective, .root = call->root, .bytes = bytes, .told = true};
    if (open && verdict_of(comm, GY_HOW_GIVEN, &it) == GY_GIVEN_THERE)
        return GY_GIVEN_THERE;
    comm->ways.mapped = false;
    int way = open ? ask(comm, GY_HOW_GIVEN, &it) : GY_GIVEN_SLOTS + ask(comm, GY_HOW_SHOWN, &it);
    return way == GY_GIVEN_THERE ? GY_GIVEN_SLOTS : (enum gy_giving)way; /* the verdict has changed just now */
}

enum gy_giving gy_ways_shown(struct gyre_request *r)
{
    const struct asked it = asked_of(r, r->in.total * r->element, true);
    r->comm->ways.mapped = false;
    return (enum gy_giving)(GY_GIVEN_SLOTS + ask(r->comm, GY_HOW_SHOWN, &it));
}

/* Nobody is more than one exchange ahead of its judge, or four where ranks share cores, so what the verdict says here has come so, but
 * for the first of its way. */
enum gy_giving gy_ways_exchanged(struct gyre_comm *comm, const struct gy_arrival *shape, size_t bytes)
{
    const struct asked it = {
        .collective = (enum gy_collective)shape->collective, .root = (int)shape->root, .bytes = bytes};
    return (enum gy_giving)(GY_GIVEN_SLOTS + ask(comm, GY_HOW_SHOWN, &it));
}

bool gy_ways_streams(struct gyre_request *r, size_t bytes)
{
    const struct asked it = asked_of(r, bytes, false);
    return r->prefers_slots ? ask(r->comm, GY_HOW_KEPT, &it) == 1 : ask(r->comm, GY_HOW_WRITTEN, &it) == 0;
}

void gy_ways_begin(struct gyre_comm *comm)
{
    comm->ways.asks = !comm->ctx->active_first;
    comm->ways.measured = NULL;
}

/* How the giver's input has come is in its entry, unless it has gone far ahead; it may also lie in memory of gyre, where a choice
 * was made only if the call said so. -1: that cannot be told. */
static int has_come(const struct gyre_comm *comm)
{
    const struct gy_entry *entry = &comm->control[comm->ways.giver]->entry[comm->sequence % GY_ARRIVALS];
    if (atomic_load_explicit(&entry->offered, memory_order_acquire) != comm->sequence)
        return -1;
    struct gy_offer offer = entry->offer;
    gy_fence(memory_order_acquire);
    bool there = offer.far_input || offer.input;
    if (atomic_load_explicit(&entry->offered, memory_order_relaxed) != comm->sequence ||
        (offer.input && !comm->ways.mapped))
        return -1;
    int slots = offer.past ? GY_GIVEN_PAST : offer.claimed ? GY_GIVEN_CLAIMED : GY_GIVEN_SLOTS;
    if (comm->ways.question == GY_HOW_SHOWN)
        return there ? -1 : slots - GY_GIVEN_SLOTS;
    return swapped(comm->ways.collective, there ? GY_GIVEN_THERE : slots);
}

void gy_ways_end(struct gyre_comm *comm, bool succeeded)
{
    struct gy_ways *ways = &comm->ways;
    ways->asks = false;
    if (!ways->measured || !succeeded)
        return;
    int64_t took = gy_now() - ways->began;
    int went = ways->went >= 0 ? ways->went : has_come(comm);
    if (went >= 0)
        gy_way_told(ways->measured, ways_of(comm, ways->question), ways->bytes, went, took);
    else
        gy_way_untold(ways->measured);
    struct gy_way *octaves = ways->way[ways->question][ways->collective];
    if (!ways->measured->trial)
        gy_ways_spread(octaves);
    uint32_t verdict = 0;
    for (int o = 0; o < GY_WAY_OCTAVES; o++)
        verdict |= (uint32_t)now(&octaves[o]) << (2 * o);
    _Atomic uint32_t *shown = &comm->control[comm->rank]->way[ways->question][ways->collective];
    if (verdict != atomic_load_explicit(shown, memory_order_relaxed))
        atomic_store_explicit(shown, verdict, memory_order_relaxed);
}

void gy_ways_free(struct gyre_comm *comm)
{
    for (int q = 0; q < GY_QUESTIONS; q++)
        for (int c = 0; c < GY_COLLECTIVES; c++)
            gy_free(comm->ways.way[q][c]);
}
