#include "collectives/comm/flight_recorder.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "transport/shm/segment.h"

void gy_recorder_trace(const struct gy_recorder *recorder, const struct gy_call_signature *shape, gyre_status status,
                       int64_t began, int64_t now)
{
    if (!recorder->trace)
        return;
    enum gy_collective collective = shape->collective & ~GY_VARYING;
    const gyre_trace_event event = {.size = sizeof(event),
                                    .ended = status != GYRE_IN_PROGRESS,
                                    .status = status,
                                    .collective = gy_collective_name(collective),
                                    .algorithm = gy_algorithm_name((enum gy_algorithm)shape->algorithm),
                                    .sequence = shape->sequence & ~GY_POINT_TO_POINT,
                                    .count = shape->collective & GY_VARYING ? 0 : shape->count,
                                    .dtype = (gyre_dtype)shape->dtype,
                                    .op = (gyre_op)shape->op,
                                    .root = (int)shape->root,
                                    .began = began,
                                    .time = now};
    recorder->trace(recorder->trace_user, &event);
}

/* Collective, type, operation and algorithm are adjacent in both. */
#define KIND_BYTES 4
_Static_assert(offsetof(struct gyre_page_record, state) == offsetof(struct gyre_page_record, collective) + KIND_BYTES &&
                   sizeof(struct gy_call_signature) == offsetof(struct gy_call_signature, collective) + KIND_BYTES,
               "so that they are copied at once");

void gy_recorder_init(struct gy_recorder *recorder, struct gyre_page_comm *page, unsigned records)
{
    *recorder = (struct gy_recorder){.page = page, .mask = records - 1};
}

struct gyre_page_comm *gy_recorder_alloc(unsigned records)
{
    return gy_alloc_zero(1, offsetof(struct gyre_page_comm, record) + records * sizeof(struct gyre_page_record));
}

/* Operations in progress find their records by number. */
static __attribute__((noinline)) void grow(struct gy_recorder *recorder)
{
    struct gyre_page_comm *small = recorder->page, *page = gy_recorder_alloc(GY_RECORDS);
    if (!page)
        return;
    memcpy(page, small, offsetof(struct gyre_page_comm, record));
    for (uint64_t i = 0; i <= recorder->mask; i++)
        page->record[small->record[i].serial % GY_RECORDS] = small->record[i];
    recorder->page = page;
    recorder->mask = GY_RECORDS - 1;
    gy_free(small);
}

bool gy_recorder_provide(struct gy_recorder *recorder)
{
    if (!gy_recorder_is_full(recorder))
        grow(recorder);
    return gy_recorder_is_full(recorder);
}

/* Out of line: building an event takes as long as the rest of a record. */
static __attribute__((noinline)) void trace_start(const struct gy_recorder *recorder,
                                                  const struct gy_call_signature *shape,
                                                  struct gyre_page_record *record)
{
    record->began = gy_now();
    gy_recorder_trace(recorder, shape, GYRE_IN_PROGRESS, record->began, record->began);
}

static inline struct gyre_page_record *begin(struct gy_recorder *recorder, const struct gy_call_signature *shape,
                                             uint64_t mask)
{
    uint64_t serial = ++recorder->page->started;
    struct gyre_page_record *record = &recorder->page->record[serial & mask];
    record->serial = serial;
    record->sequence = shape->sequence;
    record->count = shape->count;
    record->began = record->ended = 0;
    record->root = (int32_t)shape->root;
    record->waited_for = -1;
    memcpy(&record->collective, &shape->collective, KIND_BYTES);
    record->state = GYRE_PAGE_RUNNING;
    if (recorder->trace)
        trace_start(recorder, shape, record);
    return record;
}

struct gyre_page_record *gy_recorder_begin(struct gy_recorder *recorder, const struct gy_call_signature *shape)
{
    if (recorder->page->started > 0)
        (void)gy_recorder_provide(recorder);
    return begin(recorder, shape, recorder->mask);
}

struct gyre_page_record *gy_recorder_begin_full(struct gy_recorder *recorder, const struct gy_call_signature *shape)
{
    return begin(recorder, shape, GY_RECORDS - 1);
}

void gy_recorder_note(struct gyre_page_record *record, int64_t now)
{
    if (record->began == 0)
        record->began = now;
}

static struct gy_call_signature shape_of(const struct gyre_page_record *record)
{
    return (struct gy_call_signature){.sequence = record->sequence,
                                      .count = record->count,
                                      .root = (uint32_t)record->root,
                                      .collective = record->collective,
                                      .dtype = record->dtype,
                                      .op = record->op,
                                      .algorithm = record->algorithm};
}

static __attribute__((noinline)) void trace_end(const struct gy_recorder *recorder, struct gyre_page_record *record)
{
    const struct gy_call_signature shape = shape_of(record);
    record->ended = gy_now();
    gy_recorder_trace(recorder, &shape, GYRE_SUCCESS, record->began, record->ended);
}

void gy_recorder_done(struct gy_recorder *recorder, struct gyre_page_record *record)
{
    record->state = GYRE_PAGE_DONE;
    recorder->page->done++;
    if (recorder->trace)
        trace_end(recorder, record);
}

struct gyre_page_record *gy_recorder_at(struct gy_recorder *recorder, uint64_t serial)
{
    struct gyre_page_record *record = &recorder->page->record[serial & recorder->mask];
    return record->serial == serial ? record : NULL;
}

struct gyre_page_record *gy_recorder_find(struct gy_recorder *recorder, uint64_t sequence)
{
    for (uint64_t back = 0; back <= recorder->mask && back < recorder->page->started; back++) {
        struct gyre_page_record *record = gy_recorder_at(recorder, recorder->page->started - back);
        if (record && record->sequence == sequence)
            return record;
    }
    return NULL;
}

/* Prints what follows the name and the number: elements, root, operation, if the collective has them. */
static int print_details(const struct gy_call_signature *shape, char *text, size_t bytes)
{
    const char *dtype = gyre_dtype_name((gyre_dtype)shape->dtype), *op = gyre_op_name((gyre_op)shape->op);
    unsigned collective = shape->collective & ~GY_VARYING;
    char number[8] = "", count[40], root[24] = "", operation[24] = "";
    if (collective == GY_BARRIER)
        return snprintf(text, bytes, "%s", "");
    if (shape->collective & GY_VARYING)
        snprintf(count, sizeof(count), "counts of hash %08" PRIx32, (uint32_t)shape->count);
    else
        snprintf(count, sizeof(count), "%" PRIu64, shape->count);
    if (gy_has_root(collective))
        snprintf(root, sizeof(root), ", root %" PRIu32, shape->root);
    if (!op)
        snprintf(number, sizeof(number), "op %u", shape->op);
    if (collective == GY_ALL_REDUCE || collective == GY_REDUCE_SCATTER || collective == GY_REDUCE_TO)
        snprintf(operation, sizeof(operation), ", %s", op ? op : number);
    return snprintf(text, bytes, "%s x %s%s%s, ", dtype ? dtype : "?", count, root, operation);
}

void gy_shape_print(const struct gy_call_signature *shape, char *text, size_t bytes)
{
    unsigned collective = shape->collective & ~GY_VARYING;
    const char *algorithm = shape->algorithm < GY_ALGORITHMS ? gy_algorithm_name(shape->algorithm) : "not started";
    char details[120];
    print_details(shape, details, sizeof(details));
    if (gy_is_point_to_point(collective))
        snprintf(text, bytes, "message #%" PRIu64 " of rank %" PRIu32 " (%s%s)", shape->sequence & ~GY_POINT_TO_POINT,
                 shape->root, details, algorithm);
    else
        snprintf(text, bytes, "%s%s #%" PRIu64 " (%s%s)",
                 collective < GY_COLLECTIVES ? gy_collective_name(collective) : "?",
                 shape->collective & GY_VARYING ? "v" : "", shape->sequence, details, algorithm);
}

/* Returns the result of dprintf. */
static int dump_record(const struct gyre_page_record *record, int fd)
{
    static const char *const states[] = {"running", "done", "failed"};
    struct gy_call_signature shape = shape_of(record);
    char text[160];
    gy_shape_print(&shape, text, sizeof(text));
    bool timed = record->began && (record->ended || record->state == GYRE_PAGE_RUNNING);
    int64_t end = record->ended ? record->ended : gy_now();
    if (record->waited_for >= 0)
        return dprintf(fd, "  %s %s %.1f us, waiting for rank %d\n", text, states[record->state],
                       (double)(end - record->began) / 1e3, record->waited_for);
    if (timed)
        return dprintf(fd, "  %s %s %.1f us\n", text, states[record->state], (double)(end - record->began) / 1e3);
    return dprintf(fd, "  %s %s\n", text, states[record->state]); /* the shortest paths read no clock */
}

bool gy_recorder_dump(const struct gy_recorder *recorder, int rank, int fd)
{
    bool good = dprintf(fd,
                        "rank %d: %" PRIu64 " operations started, %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64
                        " bytes\n",
                        rank, recorder->page->started, recorder->page->done, recorder->page->failed,
                        recorder->page->bytes) >= 0;
    uint64_t newest = recorder->page->started;
    for (uint64_t s = newest > GY_RECORDS ? newest - GY_RECORDS + 1 : 1; s <= newest && good; s++)
        if (recorder->page->record[s & recorder->mask].serial == s)
            good = dump_record(&recorder->page->record[s & recorder->mask], fd) >= 0;
    return good;
}
