/* The flight recorder: the last 256 operations of a communicator, and its counters. Written by the driving thread, read
 * on error, on request, and from outside. */
#ifndef GY_COLLECTIVES_RECORDER_H
#define GY_COLLECTIVES_RECORDER_H

#include <stdbool.h>

#include "collectives/page.h"
#include "collectives/plan.h"

#define GY_RECORDS GYRE_PAGE_RECORDS

struct gy_recorder {
    struct gyre_page_comm *page; /* counters and records; page.h says where it lies */
    gyre_trace_func trace;       /* NULL: nobody wants to know */
    void *trace_user;
};

struct gy_arrival;

/* `began` is noted by who knows it, or when somebody waits: the tiny path reads no clock. */
struct gyre_page_record *gy_recorder_begin(struct gy_recorder *recorder, const struct gy_arrival *shape);
/* When it began, if that has not been noted yet: a trace has been told at once. */
void gy_recorder_note(struct gyre_page_record *record, int64_t now);
void gy_recorder_done(struct gy_recorder *recorder, struct gyre_page_record *record);
/* Tells the trace, if there is one, of the end of an operation; IN_PROGRESS: of its start. */
void gy_recorder_trace(const struct gy_recorder *recorder, const struct gy_arrival *shape, gyre_status status,
                       int64_t began, int64_t now);
/* The record that was begun as `serial`, NULL when it has been overwritten. */
struct gyre_page_record *gy_recorder_at(struct gy_recorder *recorder, uint64_t serial);
/* The newest record of a collective with this sequence number, NULL likewise. */
struct gyre_page_record *gy_recorder_find(struct gy_recorder *recorder, uint64_t sequence);
/* False: it could not be written, errno says why. */
bool gy_recorder_dump(const struct gy_recorder *recorder, int rank, int fd);

/* "all_reduce #17 (float32 x 1000, sum, ring)" */
void gy_shape_print(const struct gy_arrival *shape, char *text, size_t bytes);

#endif
