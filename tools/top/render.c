/* A line per rank, then a sentence about each rank that holds up others. */
#include "top/render.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const words[] = {[TOP_MOVING] = "moving", [TOP_WAITING] = "waiting", [TOP_OUTSIDE] = "outside",
                                    [TOP_AWAY] = "away",     [TOP_STOPPED] = "stopped", [TOP_FAILED] = "failed",
                                    [TOP_GONE] = "gone",     [TOP_UNSEEN] = "unseen",   [TOP_ELSEWHERE] = "elsewhere"};

const char *top_word(enum top_is is)
{
    return words[is];
}

static void print_amount(double amount, const char *unit, char *text_p, size_t bytes)
{
    static const char prefixes[] = " kMGT";
    int prefix = 0;
    for (; amount >= 1000 && prefixes[prefix + 1]; prefix++)
        amount /= 1000;
    if (prefix == 0)
        snprintf(text_p, bytes, "%.0f %s", amount, unit);
    else
        snprintf(text_p, bytes, "%.3g %c%s", amount, prefixes[prefix], unit);
}

/* "1, 2, 5-9" */
static void print_ranks(const int *ranks, int count, char *text_p, size_t bytes)
{
    size_t used = 0;
    text_p[0] = '\0';
    for (int i = 0; i < count && used + 24 < bytes; i++) {
        int first = i;
        while (i + 1 < count && ranks[i + 1] == ranks[i] + 1)
            i++;
        const char *comma = first ? ", " : "";
        if (i > first + 1)
            used += (size_t)snprintf(text_p + used, bytes - used, "%s%d-%d", comma, ranks[first], ranks[i]);
        else if (i > first)
            used += (size_t)snprintf(text_p + used, bytes - used, "%s%d, %d", comma, ranks[first], ranks[i]);
        else
            used += (size_t)snprintf(text_p + used, bytes - used, "%s%d", comma, ranks[i]);
    }
}

static int compare(const void *left, const void *right)
{
    return *(const int *)left - *(const int *)right;
}

static void print_waits(const struct top_state *state, char *text_p, size_t bytes)
{
    int ranks[GYRE_PAGE_WAITS], count = 0;
    for (uint32_t i = 0; state->is == TOP_WAITING && i < state->rank->page.waits; i++) {
        bool known = state->rank->page.wait[i].rank < 0; /* any rank */
        for (int j = 0; j < count; j++)
            known |= ranks[j] == state->rank->page.wait[i].rank;
        if (!known)
            ranks[count++] = state->rank->page.wait[i].rank;
    }
    qsort(ranks, (size_t)count, sizeof *ranks, compare);
    print_ranks(ranks, count, text_p, bytes);
}

/* The operation under way, or the one before, of the first communicator that has had one. */
static void print_operation(const struct top_state *state, char *text_p, size_t bytes)
{
    const struct gyre_page *page = &state->rank->page;
    char shape[160];
    text_p[0] = '\0';
    if (state->running) {
        const char *name = page->comm[state->comm].name;
        top_describe(page, state->running, shape, sizeof shape);
        snprintf(text_p, bytes, "%s%s%s", name, *name ? ": " : "", shape);
        return;
    }
    for (uint32_t i = 0; state->is == TOP_WAITING && i < page->waits && !*text_p; i++) {
        const char *name = page->comm[page->wait[i].comm].name;
        if (page->wait[i].window)
            snprintf(text_p, bytes, "%s%sone-sided call on window %u", name, *name ? ": " : "", page->wait[i].window);
    }
    for (uint32_t c = 0; c < GYRE_PAGE_COMMS && !*text_p; c++) {
        const struct gyre_page_record *last = page->comms & 1u << c ? top_record(&page->comm[c], page->comm[c].started)
                                                                    : NULL;
        if (!last)
            continue;
        top_describe(page, last, shape, sizeof shape);
        snprintf(text_p, bytes, "after %s", shape);
    }
}

static void print_bytes(const struct top_state *state, char *text_p, size_t bytes)
{
    const struct gyre_page_record *running = state->running;
    snprintf(text_p, bytes, "-");
    if (running && !(running->collective & GYRE_PAGE_VARYING))
        snprintf(text_p, bytes, "%" PRIu64, running->count * gyre_dtype_size((gyre_dtype)running->dtype));
}

static void show_rank(int rank, const struct top_state *state)
{
    char operation[240] = "", amount[24] = "-", rate[24] = "", calls[24] = "", waits[128] = "", seconds[24] = "-";
    if (state->rank) {
        print_operation(state, operation, sizeof operation);
        print_bytes(state, amount, sizeof amount);
        print_amount(state->bytes, "B/s", rate, sizeof rate);
        print_amount(state->operations, "op/s", calls, sizeof calls);
        print_waits(state, waits, sizeof waits);
    }
    if (state->seconds >= 0 && state->is != TOP_MOVING)
        snprintf(seconds, sizeof seconds, "%.1f", state->seconds);
    printf("%5d %8d  %-9s %7s  %-10s %-10s %12s  %s%s%s\n", rank, (int)state->member->process, words[state->is],
           seconds, calls, rate, amount, operation, *waits ? ", waits for rank " : "", waits);
}

/* Returns the cause for which a rank delays others. */
static void explain(const struct top_state *state, char *text_p, size_t bytes)
{
    char operation[240] = "";
    int process = (int)state->member->process;
    if (state->rank)
        print_operation(state, operation, sizeof operation);
    switch (state->is) {
    case TOP_STOPPED:
        snprintf(text_p, bytes, "it is stopped, by a signal or a debugger (kill -CONT %d lets it go on)", process);
        break;
    case TOP_OUTSIDE:
        snprintf(text_p, bytes, "it is outside gyre%s%s; does it compute, or wait for something else? (gdb -p %d)",
                 *operation ? ", " : "", operation, process);
        break;
    case TOP_AWAY:
        snprintf(text_p, bytes, "it has %s under way, and has not been inside gyre for %.1f s (gdb -p %d)", operation,
                 state->seconds, process);
        break;
    case TOP_FAILED:
        snprintf(text_p, bytes, "its world has ended with %s, because of rank %d",
                 gyre_status_name((gyre_status)state->rank->page.status), (int)state->rank->page.culprit);
        break;
    case TOP_GONE: snprintf(text_p, bytes, "its process has ended"); break;
    case TOP_UNSEEN:
        snprintf(text_p, bytes, "its process runs here, but its page may not be looked at: is it another user's?");
        break;
    case TOP_ELSEWHERE:
        snprintf(text_p, bytes, "it is on another host (number %d of the job): run gyre-top there",
                 (int)state->member->host);
        break;
    default: snprintf(text_p, bytes, "%s", words[state->is]);
    }
}

static void show_blame(const struct top_job *job)
{
    for (int r = 0; r < job->size; r++) {
        const struct top_state *state = &job->states[r];
        char why[400];
        if (state->holds_up == 0)
            continue;
        explain(state, why, sizeof why);
        printf("rank %d (process %d) holds up %d %s, for %.1f s at the longest: %s\n", r, (int)state->member->process,
               state->holds_up, state->holds_up == 1 ? "rank" : "ranks", state->longest, why);
    }
    if (job->circle)
        printf("ranks wait for one another in a circle, and no other rank is the cause: do they call in different "
               "orders?\n");
}

void top_show(const struct top_job *job)
{
    printf("job %016" PRIx64 ": %d %s, %d of them seen here\n", job->id, job->size, job->size == 1 ? "rank" : "ranks",
           job->seen);
    printf(" rank  process  is              s  calls      rate              bytes  in\n");
    for (int r = 0; r < job->size; r++)
        show_rank(r, &job->states[r]);
    show_blame(job);
}
