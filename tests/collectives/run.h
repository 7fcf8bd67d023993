/* Inside the checker: the state of a run. checker.c schedules, iteration.c says what may go on, effect.c moves values,
 * form.c looks at schedules before they run. */
#ifndef GY_TESTS_COLLECTIVES_RUN_H
#define GY_TESTS_COLLECTIVES_RUN_H

#include "checker.h"
#include "order.h"
#include "transport/shm/segment.h"

#define GY_RUN_PRIVATE 3 /* memories of a rank in a call: output, input, scratch */

#define GY_RUN_LINES 2
#define GY_RUN_SHARED (2 * GY_REGION_SLOTS + GY_RUN_LINES) /* memories that a rank shares */

/* A growing list of events. */
struct events {
    int *event;
    int count, capacity;
};

struct lane_state {
    int step, round_in_step, round; /* where the lane stands */
    size_t tile;
    struct events done, first_done; /* all events; per round the index of its first event in `done` */
};

struct rank_state {
    int call;               /* the call it is in or about to start */
    bool started, finished; /* finished: its lanes are done, and the counters that it does not use have caught up */
    int start_event, finish_event;
    int iterations; /* of a schedule over shared memory; known when it has finished */
    int base;       /* iterations over shared memory before this call */
    struct lane_state lane[GY_SCHEDULE_LANES];
    struct events counter[GY_REGION_LANES]; /* the event that made the counter i + 1 */
    struct gy_cell *input, *output, *scratch;
    size_t scratch_length; /* of one slot */
    struct gy_cell *slots[GY_REGION_SLOTS], *result[GY_REGION_SLOTS];
    struct gy_cell *line[GY_RUN_LINES];
    struct events published; /* into lines, by exchange */
    int exchanged;           /* exchanges that this rank has finished */
};

struct run {
    int size, ncalls, lanes;
    /* Chains of a rank: its calls, its lanes, and, if sends > 0, those on which messages are read, and one per lane on
     * which they are done. */
    int sends, chains;
    const struct gy_checker_call *calls;
    struct rank_state *rank;
    struct gy_order order;
    struct gy_expression expression;
    struct gy_checker_report *report;
    uint64_t *expected; /* [call][element]: hash of the algorithm's tree, 0: not known yet */
    size_t stride;      /* elements per call in `expected`, and per slot */
    int32_t *message;   /* values on their way */
    bool failed;
};

/* One iteration, resolved. */
struct iteration {
    int rank, lane, event;
    const struct gy_schedule *schedule;
    const struct gy_step *step;
    size_t tile;
    int round_in_step, number; /* number: of the iteration in its region lane */
};

bool run_fail(struct run *run, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* iteration.c: what iterations cover and wait for. Chain 0 of a rank is its caller (lane −1): starts and ends of calls;
 * its lanes follow. */
size_t block_begin(const struct gy_checker_call *call, int blocks, int block);
/* The block of the element, where blocks are ranks. */
int block_of(const struct gy_checker_call *call, int size, size_t element);
/* Tile t of blocks [block, block + width): its first element and their number. */
size_t piece_of(const struct run *run, const struct iteration *it, int block, int width, size_t *start_p);
size_t tiles_of(const struct gy_checker_call *call, const struct gy_schedule *schedule, const struct gy_step *step);
const struct gy_schedule *schedule_of(const struct run *run, int rank);
int chain_of(const struct run *run, int rank, int lane);
/* A lane goes on to its next message while the one before is still being read, if that goes to another rank: nothing
 * but its receiver, or a need, knows that it has been. Worlds of up to GY_RUN_SENDS_WORLD ranks are checked so. Each
 * lane has so many chains for that: what two lanes send has no order. */
#define GY_RUN_SENDS 4
#define GY_RUN_SENDS_WORLD 16
/* The step at which the lane stands; NULL at its end. */
const struct gy_step *lane_head(const struct run *run, int rank, int lane);
/* True if all needs of the lane's iteration are met. With `event` >= 0, orders that event after them. */
bool needs_met(struct run *run, int rank, int lane, int event);
struct iteration iteration_begin(struct run *run, int rank, int lane);
void iteration_end(struct run *run, const struct iteration *it);
void events_push(struct events *events, int event);

/* tiny.c: the exchange of a tiny vector as far as it can go; true in *done_p when it is over. Returns: did it move? */
bool tiny_advance(struct run *run, int rank, bool *done_p);

/* mapped.c: operands that others use in place. Does the rank offer its input, or its output, in the call? */
bool mapped_offers(const struct run *run, int call, int rank, enum gy_space space);
/* mapped_keeps: true if the rank writes its result slots in the reduction. mapped_idle: true if it does not write the
 * slots of the step, so that it need not wait for their readers. */
bool mapped_keeps(const struct run *run, int rank, const struct gy_step *reduce);
bool mapped_idle(const struct run *run, int rank, const struct gy_step *step);
/* mapped_whole: true if the rank reads the block of rank `from` in one piece, when that rank has arrived.
 * mapped_arrived: true if it has. With `event` >= 0, orders that event after the arrival. */
bool mapped_whole(const struct run *run, int rank, const struct gy_step *step, int from);
bool mapped_arrived(struct run *run, int rank, int from, int event);
/* True if all ranks have done what the rank's return has to wait for. With `event` >= 0, orders that event after it. */
bool mapped_quiet(struct run *run, int rank, int event);

/* form.c: what a schedule must hold before anything runs; and the blocks that a space covers, by the definition of the
 * collective and not by the schedule. */
bool form_holds(struct run *run, int rank, const struct gy_schedule *schedule);
/* A message to oneself: sends and receives. */
bool form_to_self(const struct gy_schedule *schedule);
void form_view(const struct gy_schedule *schedule, enum gy_space space, int *lo_p, int *width_p);

/* What the steps do to memory. `effect_send` fills run->message; `effect_receive` takes it. */
bool effect_send(struct run *run, const struct iteration *it, size_t *start_p, size_t *count_p);
bool effect_receive(struct run *run, const struct iteration *it, size_t start, size_t count);
bool effect_local(struct run *run, const struct iteration *it);
/* One element: a checked access. A NULL cell is outside of what the space covers. */
bool effect_load(struct run *run, const struct iteration *it, struct gy_cell *cell, size_t e, int32_t *value_p);
bool effect_store(struct run *run, const struct iteration *it, struct gy_cell *cell, size_t e, int32_t value);
bool effect_join(struct run *run, const struct iteration *it, int32_t left, int32_t right, int32_t *value_p);
/* The values of ranks [0, size), left to right or in the canonical tree, as the call wants. */
bool effect_combine(struct run *run, const struct iteration *it, const int32_t *values, int32_t *value_p);
/* Fresh buffers at the start of a call; comparison with the definition of the collective at its end. */
void memory_begin(struct run *run, int rank);
bool memory_end(struct run *run, int rank, int event);
/* The caller writes over its input or its output, or another call over the scratch. */
bool memory_return(struct run *run, int rank, enum gy_space space, int event);

#endif
