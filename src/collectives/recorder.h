/* The flight recorder: the last 256 operations of a communicator, and its counters. Written by the driving thread, read
 * on error and on request. */
#ifndef GY_COLLECTIVES_RECORDER_H
#define GY_COLLECTIVES_RECORDER_H

#include "collectives/plan.h"

#define GY_RECORDS 256

enum gy_record_state { GY_RECORD_STARTED, GY_RECORD_DONE, GY_RECORD_FAILED };

struct gy_record {
    uint64_t
        serial; /* of the recorder, from 1; 0: unused. Point-to-point operations have sequence numbers of their own */
    uint64_t sequence, count;
    int64_t began, ended; /* gy_now; ended 0: not yet */
    int32_t root, waiting_for;
    uint8_t collective, dtype, op, algorithm, state;
};

struct gy_recorder {
    uint64_t started, done, failed, bytes;
    uint64_t window_bytes; /* part of bytes: operations through shared windows */
    gyre_trace_func trace; /* NULL: nobody wants to know */
    void *trace_user;
    struct gy_record record[GY_RECORDS];
};

struct gy_arrival;

/* `began` is the caller's to set: the tiny path reads no clock. */
struct gy_record *gy_recorder_begin(struct gy_recorder *recorder, const struct gy_arrival *shape);
void gy_recorder_done(struct gy_recorder *recorder, struct gy_record *record);
/* Tells the trace, if there is one, of the end of an operation; IN_PROGRESS: of its start. */
void gy_recorder_trace(const struct gy_recorder *recorder, const struct gy_arrival *shape, gyre_status status,
                       int64_t began, int64_t now);
/* The record that was begun as `serial`, NULL when it has been overwritten. */
struct gy_record *gy_recorder_at(struct gy_recorder *recorder, uint64_t serial);
/* The newest record of a collective with this sequence number, NULL likewise. */
struct gy_record *gy_recorder_find(struct gy_recorder *recorder, uint64_t sequence);
void gy_recorder_dump(const struct gy_recorder *recorder, int rank, int fd);

/* "all_reduce #17 (float32 x 1000, sum, ring)" */
void gy_shape_print(const struct gy_arrival *shape, char *text, size_t bytes);

#endif
