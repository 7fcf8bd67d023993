/* The shared-memory tuner: autotune.h says what is tried, and why. */
#include "collectives/shm/autotune.h"

#include <stdlib.h>

#include "collectives/shm/zero_copy.h"
#include "core/clock.h"
#include "core/fence.h"
#include "core/mem.h"

_Static_assert(GY_COLLECTIVES <= GY_TUNER_KINDS && GY_TUNER_OCTAVES * 2 <= 32 && GY_TUNER_VARIANTS <= 4,
               "two bits each");
_Static_assert(GY_TUNE_DECISIONS == GY_TUNER_DECISIONS, "a word each");

static const struct {
    int variants, least; /* number of variants; the first octave ends at 2 * 2^least bytes */
} decisions[GY_TUNE_DECISIONS] = {
    [GY_TUNE_INPUT] = {4, 13},   /* 8 KiB */
    [GY_TUNE_PUBLISH] = {3, 12}, /* 4 KiB */
    [GY_TUNE_OUTPUT] = {2, 20},  /* 1 MiB */
    [GY_TUNE_EXCHANGE] = {2, 20},
};

/* The terms of a measurement phase, by size of the call. */
struct terms {
    uint32_t first;      /* calls before the first phase: a program's set-up is not worth measuring */
    uint32_t samples;    /* calls per variant */
    uint32_t left_out;   /* calls of those not counted: first touches, and a sender that may be a call ahead */
    uint32_t pause;      /* calls between two phases, at least, */
    uint32_t long_pause; /* and at most */
    uint32_t others;     /* calls of other sizes or by other variants, after which a phase is abandoned */
};

/* Each short exchange has another place, each call of a few tiles has other slots, a longer one has them all. */
static const struct terms of_shortest = {8, 12, GY_REGION_LINES, 512, 4096, 64},
                          of_short = {8, 8, GY_REGION_SLOTS, 512, 4096, 64}, of_long = {1, 3, 1, 32, 256, 16},
                          of_longest = {1, 2, 1, 32, 256, 16};

#define LONG_BYTES ((size_t)1 << 20)
#define LONGEST_BYTES ((size_t)8 << 20)
#define COST 200 /* the pause after a phase is this many times its loss by slower variants, within these limits */
#define BETTER_PERCENT 95  /* of the time of the variant in use: below this, the fastest replaces it */
#define CLEARLY_PERCENT 85 /* the same if ranks share cores */
/* Of the time of the fastest. A variant above this is far behind: the first phase of a neighbouring octave of long
 * calls skips it. */
#define BEHIND_PERCENT 150
#define HOPELESS_PERCENT 200 /* after a call above this, the next variant is tried, */
#define COLD_PERCENT 300     /* after one of the first calls of short ones, if it is above this */
#define COLD_CALLS 2         /* short calls of a variant that may take any time */
#define NEIGHBOURS 2         /* distance in octaves of neighbours */

/* Between phases the variant in use is watched: of short calls, each of this many. */
#define WATCHED_EACH 8
#define LATE_PERCENT 150 /* of its time in the phase, scaled by size: above this, a call is late */
#define LATE_CALLS 8     /* this many consecutive late calls begin a phase */
#define CALM_LEAST 8     /* divides the least pause into the one between the first such phase and the next */

static const struct terms *terms_of(size_t bytes)
{
    return bytes >= LONGEST_BYTES     ? &of_longest
           : bytes >= LONG_BYTES      ? &of_long
           : bytes <= GY_REGION_SHORT ? &of_shortest
                                      : &of_short;
}

/* The times of a phase predict calls of about its size. If ranks share cores, they include time slices of other
 * ranks. */
static bool is_watched(const struct gy_tuner_entry *choice, size_t bytes)
{
    if (!choice->decided || choice->oversubscribed || bytes < choice->bytes / 2 || bytes / 2 > choice->bytes)
        return false;
    return bytes >= LONG_BYTES || choice->calls % WATCHED_EACH == 0;
}

static void begin_trial(struct gy_tuner_entry *choice, size_t bytes)
{
    choice->measuring = true;
    choice->late = 0;
    choice->bytes = bytes;
    choice->others = 0;
    choice->skipped = choice->decided || bytes < LONG_BYTES ? 0 : choice->behind;
    choice->tried = choice->used;
    for (int w = 0; w < GY_TUNER_VARIANTS; w++) {
        choice->seen[w] = 0;
        choice->least[w] = choice->first[w] = UINT32_MAX;
    }
}

bool gy_tuner_should_measure(struct gy_tuner_entry *choice, size_t bytes)
{
    uint32_t pause = choice->pause ? choice->pause : terms_of(bytes)->first;
    if (choice->measuring)
        return true;
    if (++choice->calls <= pause)
        return is_watched(choice, bytes);
    choice->calm /= 2;
    begin_trial(choice, bytes);
    return true;
}

static void end_phase(struct gy_tuner_entry *choice)
{
    choice->calls = 0;
    choice->measuring = false;
}

static bool is_skipped(const struct gy_tuner_entry *choice, int w)
{
    return choice->skipped >> w & 1;
}

/* Returns the pause in calls of the variant in use. */
static uint32_t pause_after(const struct gy_tuner_entry *choice, int variants)
{
    const struct terms *terms = terms_of(choice->bytes);
    uint64_t used = (uint64_t)choice->least[choice->used] + 1 /* the clock may read 0 */, lost = 0;
    for (int w = 0; w < variants; w++)
        lost += choice->least[w] > used ? (choice->least[w] - used) * choice->seen[w] : 0;
    uint64_t pause = lost * COST / used;
    return pause < terms->pause ? terms->pause : pause > terms->long_pause ? terms->long_pause : (uint32_t)pause;
}

/* True if the time exceeds `percent` of the fastest call of the phase. */
static bool exceeds(uint32_t time, const struct gy_tuner_entry *choice, uint64_t percent)
{
    uint32_t quickest = UINT32_MAX;
    for (int w = 0; w < GY_TUNER_VARIANTS; w++)
        quickest = choice->least[w] < quickest ? choice->least[w] : quickest;
    return (uint64_t)time * 100 > quickest * percent;
}

/* Ends a phase. The variant in use is never far behind: otherwise the fastest replaces it. */
static void choose_variant(struct gy_tuner_entry *choice, int variants)
{
    int quickest = choice->used;
    for (int w = 0; w < variants; w++)
        quickest = choice->least[w] < choice->least[quickest] ? w : quickest;
    uint64_t percent = choice->oversubscribed ? CLEARLY_PERCENT : BETTER_PERCENT;
    if ((uint64_t)choice->least[quickest] * 100 < (uint64_t)choice->least[choice->used] * percent)
        choice->used = (uint8_t)quickest;
    choice->behind = 0;
    for (int w = 0; w < variants; w++)
        choice->behind |= (uint8_t)(exceeds(choice->least[w], choice, BEHIND_PERCENT) << w);
    choice->pause = choice->skipped ? terms_of(choice->bytes)->pause : pause_after(choice, variants);
    choice->decided = true;
    end_phase(choice);
}

/* Moves on to the next of `variants` variants. The one in use was the first. */
static void try_next(struct gy_tuner_entry *choice, int variants)
{
    do
        choice->tried = (uint8_t)((choice->tried + 1) % variants);
    while (is_skipped(choice, choice->tried));
    if (choice->tried == choice->used)
        choose_variant(choice, variants);
}

static int now(const struct gy_tuner_entry *choice)
{
    return choice->measuring ? choice->tried : choice->used;
}

int gy_tuner_discard(struct gy_tuner_entry *choice)
{
    if (choice->measuring && ++choice->others > terms_of(choice->bytes)->others) {
        choice->pause = terms_of(choice->bytes)->long_pause;
        end_phase(choice);
    }
    return now(choice);
}

/* Records the time of counted call `number` of variant w. Among oversubscribed ranks the second fastest counts, once
 * there are two. */
static void count_call(struct gy_tuner_entry *choice, int w, uint32_t number, uint32_t time)
{
    uint32_t first = choice->first[w];
    choice->first[w] = time < first ? time : first;
    if (!choice->oversubscribed || number == 0)
        choice->least[w] = choice->first[w];
    else if (time < first)
        choice->least[w] = first;
    else if (time < choice->least[w] || number == 1)
        choice->least[w] = time;
}

/* Records a watched call. If calls take half as long again as when the variant was chosen, a phase begins at once:
 * the other variants may not have become slower. Each such phase doubles the number of calls between it and the next
 * one. */
static void watch(struct gy_tuner_entry *choice, size_t bytes, int went, uint32_t time)
{
    const struct terms *terms = terms_of(bytes);
    uint64_t expected = (uint64_t)choice->least[choice->used] * bytes / choice->bytes;
    if (went != choice->used || (uint64_t)time * 100 <= expected * LATE_PERCENT) {
        choice->late = 0;
        return;
    }
    if (++choice->late < LATE_CALLS || choice->calls < choice->calm)
        return;
    uint32_t calm = choice->calm ? 2 * choice->calm : terms->pause / CALM_LEAST;
    choice->calm = calm < terms->long_pause ? calm : terms->long_pause;
    begin_trial(choice, bytes);
}

/* True if further calls by this variant would be a loss. The first short calls may find nothing in the caches. */
static bool is_hopeless(const struct gy_tuner_entry *choice, const struct terms *terms, int went, uint32_t time)
{
    if (choice->oversubscribed)
        return false;
    if (choice->bytes >= LONG_BYTES || choice->seen[went] >= terms->left_out)
        return exceeds(time, choice, HOPELESS_PERCENT);
    return choice->seen[went] >= COLD_CALLS && exceeds(time, choice, COLD_PERCENT);
}

int gy_tuner_record(struct gy_tuner_entry *choice, int variants, size_t bytes, int went, int64_t ns)
{
    uint32_t time = ns < 0 || ns > UINT32_MAX ? UINT32_MAX : (uint32_t)ns;
    const struct terms *terms = terms_of(choice->bytes);
    if (!choice->measuring) {
        watch(choice, bytes, went, time);
    } else if (bytes != choice->bytes) {
        if (++choice->others > terms->others)
            end_phase(choice);
    } else if (went != choice->tried) {
        return gy_tuner_discard(choice);
    } else {
        bool hopeless = is_hopeless(choice, terms, went, time);
        if (choice->seen[went]++ >= terms->left_out || hopeless)
            count_call(choice, went, choice->seen[went] - 1 - terms->left_out, time);
        if (choice->seen[went] == terms->samples || hopeless)
            try_next(choice, variants);
    }
    return now(choice);
}

/* Returns the nearest octave with an outcome, the shorter of two; -1: none. */
static int nearest_decided(const struct gy_tuner_entry *octaves, int octave)
{
    for (int distance = 0; distance < GY_TUNER_OCTAVES; distance++) {
        if (octave - distance >= 0 && octaves[octave - distance].decided)
            return octave - distance;
        if (octave + distance < GY_TUNER_OCTAVES && octaves[octave + distance].decided)
            return octave + distance;
    }
    return -1;
}

void gy_tuner_spread(struct gy_tuner_entry *octaves)
{
    for (int o = 0; o < GY_TUNER_OCTAVES; o++) {
        int from = nearest_decided(octaves, o);
        if (from < 0 || octaves[o].measuring)
            continue;
        octaves[o].used = octaves[from].used;
        octaves[o].behind = abs(o - from) <= NEIGHBOURS ? octaves[from].behind : 0;
    }
}

static int octave_of(enum gy_tune_decision decision, size_t bytes)
{
    int octave = 0;
    while (octave < GY_TUNER_OCTAVES - 1 && bytes > (size_t)2 << (decisions[decision].least + octave))
        octave++;
    return octave;
}

/* What a decision depends on. */
struct asked {
    enum gy_collective collective;
    int root;
    size_t bytes;
    bool told; /* true: the sender's entry shows the variant; false: the outcome does */
};

static int arbiter_of(const struct gyre_comm *comm, const struct asked *it)
{
    switch (it->collective) {
    case GY_BROADCAST:
    case GY_SCATTER_FROM: return (it->root + 1) % comm->size;
    case GY_REDUCE_TO:
    case GY_GATHER_TO: return it->root;
    default: return 0;
    }
}

/* Returns a rank that sends to the arbiter. */
static int source_of(const struct gyre_comm *comm, const struct asked *it)
{
    if (it->collective == GY_BROADCAST || it->collective == GY_SCATTER_FROM)
        return it->root;
    return (arbiter_of(comm, it) + 1) % comm->size;
}

/* If ranks share cores, write-prefetched slots are not tried: they have not been measured there. */
static int variants_of(const struct gyre_comm *comm, enum gy_tune_decision decision)
{
    int all = decisions[decision].variants;
    return comm->ctx->oversubscribed && decision == GY_TUNE_PUBLISH ? all - 1 : all;
}

static int outcome_of(const struct gyre_comm *comm, enum gy_tune_decision decision, const struct asked *it)
{
    const _Atomic uint32_t *outcome = &comm->control[arbiter_of(comm, it)]->choice[decision][it->collective];
    return (int)(atomic_load_explicit(outcome, memory_order_relaxed) >> (2 * octave_of(decision, it->bytes)) & 3);
}

/* Returns the entry of an octave. The octaves are allocated at the first decision, since a communicator that is used
 * little needs few of them. NULL: out of memory; the call is then not counted. */
static struct gy_tuner_entry *entry_of(struct gyre_comm *comm, enum gy_tune_decision decision, const struct asked *it)
{
    struct gy_tuner_entry **octaves = &comm->tuner.choice[decision][it->collective];
    if (!*octaves)
        *octaves = gy_alloc_zero(GY_TUNER_OCTAVES, sizeof(**octaves));
    return *octaves ? *octaves + octave_of(decision, it->bytes) : NULL;
}

/* Counts the call if this rank is its arbiter. Returns the variant. */
static int ask(struct gyre_comm *comm, enum gy_tune_decision decision, const struct asked *it)
{
    if (comm->size < 2)
        return 0;
    int arbiter = arbiter_of(comm, it), now = outcome_of(comm, decision, it);
    if (arbiter == comm->rank && comm->tuner.counts && !comm->tuner.measured) {
        struct gy_tuner_entry *choice = entry_of(comm, decision, it);
        if (!choice)
            return now;
        choice->oversubscribed = comm->ctx->oversubscribed;
        if (gy_tuner_should_measure(choice, it->bytes)) {
            comm->tuner.measured = choice;
            comm->tuner.began = gy_now();
            comm->tuner.decision = decision;
            comm->tuner.source = source_of(comm, it);
            comm->tuner.collective = (int)it->collective;
            comm->tuner.bytes = it->bytes;
            comm->tuner.went = it->told ? -1 : now;
        }
    }
    return now;
}

static struct asked asked_of(const struct gyre_request *r, size_t bytes, bool told)
{
    const struct gy_schedule_shape *shape = &r->schedule->shape;
    return (struct asked){.collective = shape->collective, .root = shape->root, .bytes = bytes, .told = told};
}

/* Converts between a variant's number and the variant. If every rank reads all operands, an all_reduce saves one
 * synchronisation and reads each operand twice. */
static int sent_ahead(int collective, int choice)
{
    return collective == GY_ALL_REDUCE && choice < 2 ? 1 - choice : choice;
}

enum gy_shm_variant gy_tuner_input(struct gyre_request *r, bool mapped)
{
    const struct asked it = asked_of(r, r->in.total * r->element, true);
    r->comm->tuner.mapped = mapped;
    enum gy_shm_variant variant = (enum gy_shm_variant)sent_ahead((int)it.collective, ask(r->comm, GY_TUNE_INPUT, &it));
    r->prefers_slots = variant == GY_SHM_SLOT || variant == GY_SHM_SLOT_PREFETCHW;
    return variant;
}

enum gy_shm_variant gy_tuner_rooted(struct gyre_comm *comm, const struct gy_call *call, size_t bytes, bool open)
{
    const struct asked it = {.collective = call->collective, .root = call->root, .bytes = bytes, .told = true};
    if (open && outcome_of(comm, GY_TUNE_INPUT, &it) == GY_SHM_MAP)
        return GY_SHM_MAP;
    comm->tuner.mapped = false;
    int choice = open ? ask(comm, GY_TUNE_INPUT, &it) : GY_SHM_SLOT + ask(comm, GY_TUNE_PUBLISH, &it);
    return choice == GY_SHM_MAP ? GY_SHM_SLOT : (enum gy_shm_variant)choice; /* the outcome has just changed */
}

enum gy_shm_variant gy_tuner_publish(struct gyre_request *r)
{
    const struct asked it = asked_of(r, r->in.total * r->element, true);
    r->comm->tuner.mapped = false;
    return (enum gy_shm_variant)(GY_SHM_SLOT + ask(r->comm, GY_TUNE_PUBLISH, &it));
}

/* A rank is at most one exchange ahead of its arbiter, or four if ranks share cores. So the outcome read here is the
 * variant of the contribution, except for the first of a new variant. */
enum gy_shm_variant gy_tuner_exchange(struct gyre_comm *comm, const struct gy_call_signature *shape, size_t bytes)
{
    const struct asked it = {
        .collective = (enum gy_collective)shape->collective, .root = (int)shape->root, .bytes = bytes};
    return (enum gy_shm_variant)(GY_SHM_SLOT + ask(comm, GY_TUNE_PUBLISH, &it));
}

bool gy_tuner_streams(struct gyre_request *r, size_t bytes)
{
    const struct asked it = asked_of(r, bytes, false);
    return r->prefers_slots ? ask(r->comm, GY_TUNE_EXCHANGE, &it) == 1 : ask(r->comm, GY_TUNE_OUTPUT, &it) == 0;
}

void gy_tuner_begin(struct gyre_comm *comm)
{
    comm->tuner.counts = !comm->ctx->active_first;
    comm->tuner.measured = NULL;
}

/* Returns how the sender's input has come, which its entry shows unless the sender is far ahead. The input may also
 * lie in memory of gyre, where a choice was made only if the call said so. -1: unknown. */
static int has_come(const struct gyre_comm *comm)
{
    const struct gy_entry *entry = &comm->control[comm->tuner.source]->entry[comm->sequence % GY_CALL_SIGNATURES];
    if (atomic_load_explicit(&entry->offered, memory_order_acquire) != comm->sequence)
        return -1;
    struct gy_offer offer = entry->offer;
    gy_fence(memory_order_acquire);
    bool there = offer.peer_input || offer.input;
    if (atomic_load_explicit(&entry->offered, memory_order_relaxed) != comm->sequence ||
        (offer.input && !comm->tuner.mapped))
        return -1;
    int slots = offer.nontemporal ? GY_SHM_SLOT_NT : offer.claimed ? GY_SHM_SLOT_PREFETCHW : GY_SHM_SLOT;
    if (comm->tuner.decision == GY_TUNE_PUBLISH)
        return there ? -1 : slots - GY_SHM_SLOT;
    return sent_ahead(comm->tuner.collective, there ? GY_SHM_MAP : slots);
}

void gy_tuner_end(struct gyre_comm *comm, bool succeeded)
{
    struct gy_tuner *tuner = &comm->tuner;
    tuner->counts = false;
    if (!tuner->measured || !succeeded)
        return;
    int64_t took = gy_now() - tuner->began;
    int went = tuner->went >= 0 ? tuner->went : has_come(comm);
    if (went >= 0)
        gy_tuner_record(tuner->measured, variants_of(comm, tuner->decision), tuner->bytes, went, took);
    else
        gy_tuner_discard(tuner->measured);
    struct gy_tuner_entry *octaves = tuner->choice[tuner->decision][tuner->collective];
    if (!tuner->measured->measuring)
        gy_tuner_spread(octaves);
    uint32_t outcome = 0;
    for (int o = 0; o < GY_TUNER_OCTAVES; o++)
        outcome |= (uint32_t)now(&octaves[o]) << (2 * o);
    _Atomic uint32_t *shown = &comm->control[comm->rank]->choice[tuner->decision][tuner->collective];
    if (outcome != atomic_load_explicit(shown, memory_order_relaxed))
        atomic_store_explicit(shown, outcome, memory_order_relaxed);
}

void gy_tuner_free(struct gyre_comm *comm)
{
    for (int q = 0; q < GY_TUNE_DECISIONS; q++)
        for (int c = 0; c < GY_COLLECTIVES; c++)
            gy_free(comm->tuner.choice[q][c]);
}
