#include "collectives/recorder.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/clock.h"
#include "transport/segment.h"

struct gy_record *gy_recorder_begin(struct gy_recorder *recorder, const struct gy_arrival *shape)
{
    struct gy_record *record = &recorder->record[shape->sequence % GY_RECORDS];
    *record = (struct gy_record){.sequence = shape->sequence,
                                 .count = shape->count,
                                 .root = (int32_t)shape->root,
                                 .waiting_for = -1,
                                 .collective = shape->collective,
                                 .dtype = shape->dtype,
                                 .op = shape->op,
                                 .algorithm = shape->algorithm,
                                 .state = GY_RECORD_STARTED};
    recorder->started++;
    return record;
}

void gy_recorder_done(struct gy_recorder *recorder, struct gy_record *record)
{
    record->state = GY_RECORD_DONE;
    recorder->done++;
}

struct gy_record *gy_recorder_find(struct gy_recorder *recorder, uint64_t sequence)
{
    struct gy_record *record = &recorder->record[sequence % GY_RECORDS];
    return record->sequence == sequence ? record : NULL;
}

void gy_shape_print(const struct gy_arrival *shape, char *text, size_t bytes)
{
    const char *collective = shape->collective < GY_COLLECTIVES ? gy_collective_name(shape->collective) : "?";
    const char *algorithm = shape->algorithm < GY_ALGORITHMS ? gy_algorithm_name(shape->algorithm) : "not started";
    const char *dtype = gyre_dtype_name((gyre_dtype)shape->dtype), *op = gyre_op_name((gyre_op)shape->op);
    if (shape->collective == GY_BARRIER)
        snprintf(text, bytes, "%s #%" PRIu64 " (%s)", collective, shape->sequence, algorithm);
    else if (shape->collective == GY_BROADCAST)
        snprintf(text, bytes, "%s #%" PRIu64 " (%s x %" PRIu64 ", root %" PRIu32 ", %s)", collective, shape->sequence,
                 dtype ? dtype : "?", shape->count, shape->root, algorithm);
    else if (shape->collective == GY_ALL_GATHER)
        snprintf(text, bytes, "%s #%" PRIu64 " (%s x %" PRIu64 ", %s)", collective, shape->sequence,
                 dtype ? dtype : "?", shape->count, algorithm);
    else
        snprintf(text, bytes, "%s #%" PRIu64 " (%s x %" PRIu64 ", %s, %s)", collective, shape->sequence,
                 dtype ? dtype : "?", shape->count, op ? op : "?", algorithm);
}

static void dump_record(const struct gy_record *record, int fd)
{
    static const char *const states[] = {"running", "done", "failed"};
    struct gy_arrival shape = {.sequence = record->sequence,
                               .count = record->count,
                               .root = (uint32_t)record->root,
                               .collective = record->collective,
                               .dtype = record->dtype,
                               .op = record->op,
                               .algorithm = record->algorithm};
    char text[160];
    gy_shape_print(&shape, text, sizeof(text));
    int64_t end = record->ended ? record->ended : gy_now();
    if (record->waiting_for >= 0)
        dprintf(fd, "  %s %s %.1f us, waiting for rank %d\n", text, states[record->state],
                (double)(end - record->began) / 1e3, record->waiting_for);
    else if (record->began)
        dprintf(fd, "  %s %s %.1f us\n", text, states[record->state], (double)(end - record->began) / 1e3);
    else
        dprintf(fd, "  %s %s\n", text, states[record->state]); /* the tiny path reads no clock */
}

void gy_recorder_dump(const struct gy_recorder *recorder, int rank, int fd)
{
    dprintf(fd, "rank %d: %" PRIu64 " operations started, %" PRIu64 " done, %" PRIu64 " failed, %" PRIu64 " bytes\n",
            rank, recorder->started, recorder->done, recorder->failed, recorder->bytes);
    uint64_t newest = 0;
    for (int i = 0; i < GY_RECORDS; i++)
        if (recorder->record[i].sequence > newest)
            newest = recorder->record[i].sequence;
    for (uint64_t s = newest > GY_RECORDS ? newest - GY_RECORDS + 1 : 1; s <= newest; s++)
        if (recorder->record[s % GY_RECORDS].sequence == s)
            dump_record(&recorder->record[s % GY_RECORDS], fd);
}
