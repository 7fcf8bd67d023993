/* States first, then blame.
 *
 *    waits[] of each page            0 ──▶ 1 ──▶ 3 ◀── 2          a waiting rank has edges to the ranks it misses;
 *                                                ┃                  a rank reached that does not wait delays these:
 *                                             stopped               3 delays 0, 1 and 2
 *
 * A stopped rank's own waits are out of date: it has no edges, whatever its page says. Ranks that reach only each
 * other form a cycle. That happens when ranks call in different orders. */
#include "top/diagnose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool same_beat(const struct top_rank *a, const struct top_rank *b)
{
    return a->page.beat == b->page.beat;
}

static uint64_t sum(const struct gyre_page *page, size_t offset)
{
    uint64_t total = 0, value;
    for (int c = 0; c < GYRE_PAGE_COMMS; c++) {
        memcpy(&value, (const char *)&page->comm[c] + offset, sizeof value);
        total += page->comms & 1u << c ? value : 0;
    }
    return total;
}

#define SUM(rank, counter) sum(&(rank)->page, offsetof(struct gyre_page_comm, counter))

static bool is_frozen(const struct top_rank *rank)
{
    return rank->process == 'T' || rank->process == 't';
}

static bool has_ended(const struct top_rank *rank)
{
    return rank->process == 0 || rank->process == 'Z' || rank->process == 'X';
}

bool top_undecided(const struct top_look *before, const struct top_look *after)
{
    uint32_t comm;
    for (size_t i = 0; i < after->count; i++) {
        const struct top_rank *rank = after->ranks[i];
        const struct top_rank *old = top_look_find(before, rank->page.job, rank->page.rank);
        if (old && !is_frozen(rank) && !has_ended(rank) && same_beat(old, rank) &&
            SUM(old, started) == SUM(rank, started) && top_running(&rank->page, &comm))
            return true;
    }
    return false;
}

static enum top_is classify(const struct top_rank *old, const struct top_state *state)
{
    const struct top_rank *rank = state->rank;
    bool lives = !old || !same_beat(old, rank), moves = old && SUM(old, started) != SUM(rank, started);
    if (has_ended(rank))
        return TOP_GONE;
    if (is_frozen(rank))
        return TOP_STOPPED;
    if (rank->page.status)
        return TOP_FAILED;
    if (!state->running && rank->page.waits == 0) /* waits without an operation are one-sided */
        return lives || moves ? TOP_MOVING : TOP_OUTSIDE;
    if (lives && !moves && rank->page.waits > 0)
        return TOP_WAITING;
    return lives || moves ? TOP_MOVING : TOP_AWAY;
}

/* Returns the time since which nothing has moved in what the rank waits for. */
static double waited(const struct top_rank *rank)
{
    int64_t since = 0;
    for (uint32_t i = 0; i < rank->page.waits; i++)
        if (rank->page.wait[i].since && (!since || rank->page.wait[i].since < since))
            since = rank->page.wait[i].since;
    return since && since < rank->when ? (double)(rank->when - since) / 1e9 : 0;
}

static void look_at(const struct top_look *before, struct top_state *state)
{
    const struct top_rank *rank = state->rank, *old = top_look_find(before, rank->page.job, rank->page.rank);
    double between = old ? (double)(rank->when - old->when) / 1e9 : 0;
    state->running = top_running(&rank->page, &state->comm);
    state->is = classify(old, state);
    state->seconds = state->is == TOP_WAITING ? waited(rank) : (double)(rank->when - rank->page.turned) / 1e9;
    if (between > 0) {
        state->operations = (double)(SUM(rank, done) - SUM(old, done)) / between;
        state->bytes = (double)(SUM(rank, bytes) - SUM(old, bytes)) / between;
    }
}

/* A rank without a page: its place is known from the other ranks' pages. */
static void guess(const struct top_job *job, struct top_state *state)
{
    char path[64];
    state->seconds = -1;
    if (state->member->host != job->host) {
        state->is = TOP_ELSEWHERE;
        return;
    }
    snprintf(path, sizeof path, "/proc/%d", (int)state->member->process);
    state->is = access(path, F_OK) == 0 ? TOP_UNSEEN : TOP_GONE;
}

/* Marks all ranks for which `from` waits, directly or indirectly. Counts the marked ranks that do not wait
 * themselves. */
static int reach(const struct top_job *job, int from, bool *marked, int *list)
{
    int count = 0, ends = 0;
    memset(marked, 0, (size_t)job->size * sizeof *marked);
    marked[from] = true;
    list[count++] = from;
    for (int i = 0; i < count; i++) {
        const struct top_state *state = &job->states[list[i]];
        if (state->is != TOP_WAITING) {
            ends++;
            continue;
        }
        for (uint32_t w = 0; w < state->rank->page.waits; w++) {
            int next = state->rank->page.wait[w].rank;
            if (next < 0) /* of a signal, which any rank may send */
                continue;
            if (!marked[next])
                list[count++] = next;
            marked[next] = true;
        }
    }
    return ends;
}

static void blame(struct top_job *job, bool *marked, int *list)
{
    for (int r = 0; r < job->size; r++) {
        struct top_state *state = &job->states[r];
        if (state->is != TOP_WAITING || state->seconds < TOP_PATIENCE_S)
            continue;
        bool all_stuck = true;
        int ends = reach(job, r, marked, list);
        for (int end = 0; end < job->size; end++) {
            struct top_state *other = &job->states[end];
            if (!marked[end])
                continue;
            all_stuck &= other->is == TOP_WAITING && other->seconds >= TOP_PATIENCE_S;
            if (other->is == TOP_WAITING || other->is == TOP_MOVING)
                continue;
            other->holds_up++;
            other->longest = state->seconds > other->longest ? state->seconds : other->longest;
        }
        job->circle |= ends == 0 && all_stuck;
    }
}

bool top_judge(const struct top_look *before, const struct top_look *after, size_t *at_p, struct top_job *job_p)
{
    const struct top_rank *first = after->ranks[*at_p];
    struct top_job job = {.id = first->page.job, .size = first->page.size, .host = first->page.host};
    bool *marked = calloc((size_t)job.size, sizeof *marked);
    int *list = calloc((size_t)job.size, sizeof *list);
    job.states = calloc((size_t)job.size, sizeof *job.states);
    bool good = job.states && marked && list;
    for (; *at_p < after->count && after->ranks[*at_p]->page.job == job.id; ++*at_p) {
        const struct top_rank *rank = after->ranks[*at_p];
        /* The page may hold any value: every value used as an index has been checked against its own size. */
        if (good && rank->page.size == job.size && rank->page.rank < job.size) {
            job.states[rank->page.rank].rank = rank;
            job.seen++;
        }
    }
    for (int r = 0; good && r < job.size; r++) {
        job.states[r].member = &first->members[r];
        if (job.states[r].rank)
            look_at(before, &job.states[r]);
        else
            guess(&job, &job.states[r]);
    }
    if (good)
        blame(&job, marked, list);
    free(list);
    free(marked);
    if (!good)
        free(job.states);
    else
        *job_p = job;
    return good;
}

void top_job_free(struct top_job *job)
{
    free(job->states);
}
