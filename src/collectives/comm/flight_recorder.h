/* The flight recorder: the last 256 operations of a communicator, and its counters. Written by the driving thread;
 * read on errors, on request, and by external observers.
 *
 * The recorders of the first GYRE_PAGE_COMMS communicators of a world lie in the status page. Any other starts with
 * GY_RECORDS_FIRST records; its second operation allocates all of them (14 KiB) once. Programs with thousands of
 * communicators use most of them once or not at all. This is the only allocation in a call of a known shape. If it
 * fails, the recorder keeps the last GY_RECORDS_FIRST operations until memory is available, and operations take
 * slower paths (eager_call.c). */
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
    uint64_t mask;               /* record s is at index s & mask */
    gyre_trace_func trace;       /* NULL: no trace */
    void *trace_user;
};

struct gy_call_signature;

/* `page` has `records` records, a power of two. */
void gy_recorder_init(struct gy_recorder *recorder, struct gyre_page_comm *page, unsigned records);
/* Returns zeroed memory outside the page: the part of struct gyre_page_comm with that many records. NULL: out of
 * memory. */
struct gyre_page_comm *gy_recorder_alloc(unsigned records);
static inline bool gy_recorder_is_full(const struct gy_recorder *recorder)
{
    return recorder->mask == GY_RECORDS - 1;
}
/* Makes room for GY_RECORDS, if not done yet. Called before the second or a later operation, or where the next must
 * not allocate. True if the room exists. */
bool gy_recorder_provide(struct gy_recorder *recorder);
/* `began` is set by a caller that knows the time, or when a call waits: the eager path reads no clock. */
struct gyre_page_record *gy_recorder_begin(struct gy_recorder *recorder, const struct gy_call_signature *shape);
/* The same for a recorder of full size: inlined in the shortest paths, where one comparison is measurable. */
struct gyre_page_record *gy_recorder_begin_full(struct gy_recorder *recorder, const struct gy_call_signature *shape);
/* Sets the start time if it is not set yet. A trace has been called at once. */
void gy_recorder_note(struct gyre_page_record *record, int64_t now);
void gy_recorder_done(struct gy_recorder *recorder, struct gyre_page_record *record);
/* Calls the trace, if there is one, at the end of an operation; IN_PROGRESS: at its start. */
void gy_recorder_trace(const struct gy_recorder *recorder, const struct gy_call_signature *shape, gyre_status status,
                       int64_t began, int64_t now);
/* Returns the record begun as `serial`; NULL if it was overwritten. */
struct gyre_page_record *gy_recorder_at(struct gy_recorder *recorder, uint64_t serial);
/* Returns the newest record of a collective with this sequence number; NULL likewise. */
struct gyre_page_record *gy_recorder_find(struct gy_recorder *recorder, uint64_t sequence);
/* Returns false if writing failed; errno says why. */
bool gy_recorder_dump(const struct gy_recorder *recorder, int rank, int fd);

/* "all_reduce #17 (float32 x 1000, sum, ring)" */
void gy_shape_print(const struct gy_call_signature *shape, char *text, size_t bytes);

#endif
