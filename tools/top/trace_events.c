/* Events of one track must nest. Operations that overlap are put on several tracks of their communicator: each goes to
 * the first track whose last operation has ended. */
#include "top/trace_events.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "top/json_text.h"

#define TRACKS 32u

struct writer {
    FILE *stream;
    const char *comma;
};

static void put_name(struct writer *writer, const char *what, int process, uint32_t track, const char *name)
{
    fprintf(writer->stream,
            "%s\n{\"ph\": \"M\", \"name\": \"%s\", \"pid\": %d, \"tid\": %u, \"args\": {\"name\": ", writer->comma,
            what, process, track);
    top_json_text(writer->stream, name);
    fputs("}}", writer->stream);
    writer->comma = ",";
}

/* Times are microseconds. An operation that runs ends, in the picture, with the snapshot. */
static void put_operation(struct writer *writer, const struct top_rank *rank, const struct gyre_page_record *record,
                          uint32_t track)
{
    static const char *const states[] = {"running", "done", "failed"};
    const struct gyre_page *page = &rank->page;
    unsigned collective = record->collective & ~GYRE_PAGE_VARYING;
    int64_t ended = record->ended > record->began ? record->ended : record->state == GYRE_PAGE_RUNNING ? rank->when : 0;
    char text[240];
    top_describe(page, record, text, sizeof text);
    fprintf(writer->stream, "%s\n{\"ph\": \"X\", \"cat\": \"gyre\", \"name\": ", writer->comma);
    top_json_text(writer->stream, record->sequence & GYRE_PAGE_MESSAGE ? "message"
                                  : collective < GYRE_PAGE_NAMES       ? page->collective[collective]
                                                                       : "?");
    fprintf(writer->stream,
            ", \"pid\": %d, \"tid\": %u, \"ts\": %.3f, \"dur\": %.3f, \"args\": {\"operation\": ", (int)page->process,
            track, (double)record->began / 1e3, ended > record->began ? (double)(ended - record->began) / 1e3 : 0);
    top_json_text(writer->stream, text);
    fprintf(writer->stream, ", \"serial\": %" PRIu64 ", \"state\": \"%s\"}}", record->serial,
            record->state <= GYRE_PAGE_FAILED ? states[record->state] : "?");
    writer->comma = ",";
}

static int by_beginning(const void *left, const void *right)
{
    const struct gyre_page_record *a = *(const struct gyre_page_record *const *)left;
    const struct gyre_page_record *b = *(const struct gyre_page_record *const *)right;
    return a->began < b->began ? -1 : a->began > b->began;
}

/* Writes the operations of a communicator and the names of the tracks that they need. */
static void put_communicator(struct writer *writer, const struct top_rank *rank, uint32_t number)
{
    const struct gyre_page_comm *comm = &rank->page.comm[number];
    const struct gyre_page_record *records[GYRE_PAGE_RECORDS];
    int64_t busy[TRACKS] = {0};
    uint32_t count = 0, used = 0;
    char name[128];
    for (uint32_t i = 0; i < GYRE_PAGE_RECORDS; i++)
        if (comm->record[i].serial != 0 && comm->record[i].began > 0)
            records[count++] = &comm->record[i];
    qsort(records, count, sizeof(const struct gyre_page_record *), by_beginning);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t track = 0;
        while (track < TRACKS - 1 && busy[track] > records[i]->began)
            track++;
        busy[track] = records[i]->ended > records[i]->began ? records[i]->ended : rank->when;
        used = track >= used ? track + 1 : used;
        put_operation(writer, rank, records[i], number * TRACKS + track);
    }
    snprintf(name, sizeof name, "%s (communicator %u)", *comm->name ? comm->name : "world or part of it", comm->number);
    for (uint32_t track = 0; track < used; track++)
        put_name(writer, "thread_name", rank->page.process, number * TRACKS + track, name);
}

void top_trace(FILE *stream, const struct top_job *jobs, size_t count)
{
    struct writer writer = {.stream = stream, .comma = ""};
    char name[64];
    fputs("{\"displayTimeUnit\": \"ns\", \"traceEvents\": [", stream);
    for (size_t j = 0; j < count; j++) {
        for (int r = 0; r < jobs[j].size; r++) {
            const struct top_rank *rank = jobs[j].states[r].rank;
            if (!rank)
                continue;
            snprintf(name, sizeof name, "rank %d of job %016" PRIx64, r, jobs[j].id);
            put_name(&writer, "process_name", rank->page.process, 0, name);
            for (uint32_t c = 0; c < GYRE_PAGE_COMMS; c++)
                if (rank->page.comms & 1u << c)
                    put_communicator(&writer, rank, c);
        }
    }
    fputs("\n]}\n", stream);
}
