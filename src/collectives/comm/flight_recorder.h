/* The flight recorder: the last 256 operations of a communicator, and its counters. Written by the driving thread, read
 * on error, on request, and from outside.
 *
 * The recorders of the first GYRE_PAGE_COMMS communicators of a world lie in the page. Another one has GY_RECORDS_FIRST records to
 * begin with, and its second operation allocates all of them (14 KiB), once: most of the communicators of a program that has
 * thousands are used once or not at all. This is the only allocation that a call of a known shape may make. Without memory for it
 * the recorder keeps the last GY_RECORDS_FIRST operations until there is some, and operations take longer ways (eager_call.c). */
#ifndef GY_COLLECTIVES_COMM_FLIGHT_RECORDER_H
#define GY_COLLECTIVES_COMM_FLIGHT_RECORDER_H

#include <gyre/page.h>
#include <stdbool.h>

#include "collectives/schedule/schedule.h"

#define GY_RECORDS GYRE_PAGE_RECORDS
#define GY_RECORDS_FIRST 16

_Static_assert((GY_RECORDS & (GY_RECORDS - 1)) == 0 && (GY_RECORDS_FIRST & (GY_RECORDS_FIRST - 1)) == 0, "masks");

struct gy_recorder {
    struct gyre_page_comm *page; /* counters and records; status_page.h says where it lies */
    uint64_t mask;               /* record s is at s & mask; there are no others */
    gyre_trace_func trace;       /* NULL: nobody wants to know */
    void *trace_user;
};

struct gy_call_signature;

/* `page` has so many records, a power of two. */
void gy_recorder_init(struct gy_recorder *recorder, struct gyre_page_comm *page, unsigned records);
/* Outside the page, zeroed: of struct gyre_page_comm as much as has so many records. NULL: out of memory. */
struct gyre_page_comm *gy_recorder_alloc(unsigned records);
static inline bool gy_recorder_is_full(const struct gy_recorder *recorder)
{
    return recorder->mask == GY_RECORDS - 1;
}
/* Before the second operation begins, or a later one, or where the next must not allocate: makes room for GY_RECORDS, if there is
 * none yet. Is there? */
bool gy_recorder_provide(struct gy_recorder *recorder);
/* `began` is noted by who knows it, or when somebody waits: the tiny path reads no clock. */
struct gyre_page_record *gy_recorder_begin(struct gy_recorder *recorder, const struct gy_call_signature *shape);
/* The same of one that is full: of the shortest ways, where a comparison can be measured. */
struct gyre_page_record *gy_recorder_begin_full(struct gy_recorder *recorder, const struct gy_call_signature *shape);
/* When it began, if that has not been noted yet: a trace has been told at once. */
void gy_recorder_note(struct gyre_page_record *record, int64_t now);
void gy_recorder_done(struct gy_recorder *recorder, struct gyre_page_record *record);
/* Tells the trace, if there is one, of the end of an operation; IN_PROGRESS: of its start. */
void gy_recorder_trace(const struct gy_recorder *recorder, const struct gy_call_signature *shape, gyre_status status,
                       int64_t began, int64_t now);
/* The record that was begun as `serial`, NULL when it has been overwritten. */
struct gyre_page_record *gy_recorder_at(struct gy_recorder *recorder, uint64_t serial);
/* The newest record of a collective with this sequence number, NULL likewise. */
struct gyre_page_record *gy_recorder_find(struct gy_recorder *recorder, uint64_t sequence);
/* False: it could not be written, errno says why. */
bool gy_recorder_dump(const struct gy_recorder *recorder, int rank, int fd);

/* "all_reduce #17 (float32 x 1000, sum, ring)" */
void gy_shape_print(const struct gy_call_signature *shape, char *text, size_t bytes);

#endif
