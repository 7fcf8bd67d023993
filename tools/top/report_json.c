#include "top/report_json.h"

#include <inttypes.h>

#include "top/json_text.h"
#include "top/render.h"

static void put_operation(FILE *stream, const struct top_state *state)
{
    char text[240];
    const struct gyre_page *page = &state->rank->page;
    if (!state->running) {
        fputs(", \"operation\": null", stream);
        return;
    }
    top_describe(page, state->running, text, sizeof text);
    fputs(", \"operation\": ", stream);
    top_json_text(stream, text);
    fputs(", \"communicator\": ", stream);
    top_json_text(stream, page->comm[state->comm].name);
}

static void put_waits(FILE *stream, const struct top_state *state)
{
    const struct gyre_page *page = &state->rank->page;
    const char *comma = "";
    fputs(", \"waits_for\": [", stream);
    for (uint32_t i = 0; state->is == TOP_WAITING && i < page->waits; i++) {
        if (page->wait[i].rank < 0)
            continue;
        fprintf(stream, "%s%d", comma, (int)page->wait[i].rank);
        comma = ", ";
    }
    fputs("]", stream);
}

static void put_rank(FILE *stream, int rank, const struct top_state *state)
{
    fprintf(stream, "{\"rank\": %d, \"process\": %d, \"host\": %d, \"state\": \"%s\"", rank,
            (int)state->member->process, (int)state->member->host, top_word(state->is));
    if (state->seconds >= 0 && state->is != TOP_MOVING)
        fprintf(stream, ", \"seconds\": %.3f", state->seconds);
    if (state->rank) {
        fprintf(stream, ", \"operations_per_second\": %.3f, \"bytes_per_second\": %.0f", state->operations,
                state->bytes);
        put_operation(stream, state);
        put_waits(stream, state);
    }
    fprintf(stream, ", \"holds_up\": %d, \"longest_wait\": %.3f}", state->holds_up, state->longest);
}

void top_json(FILE *stream, const struct top_job *jobs, size_t count, size_t strange)
{
    fputs("{\"jobs\": [", stream);
    for (size_t j = 0; j < count; j++) {
        fprintf(stream, "%s{\"job\": \"%016" PRIx64 "\", \"size\": %d, \"seen\": %d, \"circle\": %s, \"ranks\": [",
                j ? ", " : "", jobs[j].id, jobs[j].size, jobs[j].seen, jobs[j].circle ? "true" : "false");
        for (int r = 0; r < jobs[j].size; r++) {
            fputs(r ? ", " : "", stream);
            put_rank(stream, r, &jobs[j].states[r]);
        }
        fputs("]}", stream);
    }
    fprintf(stream, "], \"other_versions\": %zu}\n", strange);
}
