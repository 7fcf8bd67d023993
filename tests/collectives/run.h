/* Inside the checker: the state of a run. checker.c schedules, effect.c moves values. */
#ifndef GY_TESTS_COLLECTIVES_RUN_H
#define GY_TESTS_COLLECTIVES_RUN_H

#include "checker.h"
#include "order.h"
#include "transport/segment.h"

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
    int call; /* the call it is in or about to start */
    bool started;
    int start_event;
    int base; /* window iterations before this call */
    struct lane_state lane[GY_PLAN_LANES];
    struct events counter[GY_WINDOW_LANES]; /* the event that made the counter i + 1 */
    struct gy_cell *input, *output, *scratch;
    size_t scratch_length; /* of one slot */
    struct gy_cell *window[GY_WINDOW_SLOTS], *result[GY_WINDOW_SLOTS];
};

struct run {
    int size, ncalls, lanes;
    const struct gy_checker_call *calls;
    struct rank_state *rank;
    struct gy_order order;
    struct gy_expression expression;
    struct gy_checker_report *report;
    uint64_t *expected; /* [call][element]: hash of the algorithm's tree, 0: not known yet */
    size_t stride;      /* elements per call in `expected`, and per window slot */
    int32_t *message;   /* values on their way */
    bool failed;
};

/* One iteration, resolved. */
struct iteration {
    int rank, lane, event;
    const struct gy_plan *plan;
    const struct gy_step *step;
    size_t tile;
    int round_in_step, number; /* number: of the iteration in its window lane */
};

bool run_fail(struct run *run, int rank, const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t piece_of(const struct run *run, const struct iteration *it, int block, int width, size_t *start_p);
size_t block_begin(size_t total, int blocks, int block);
bool views_hold(struct run *run, int rank, const struct gy_plan *plan);

/* What the steps do to memory. `effect_send` fills run->message; `effect_receive` takes it. */
bool effect_send(struct run *run, const struct iteration *it, size_t *start_p, size_t *count_p);
bool effect_receive(struct run *run, const struct iteration *it, size_t start, size_t count);
bool effect_local(struct run *run, const struct iteration *it);
/* Fresh buffers at the start of a call; comparison with the definition of the collective at its end. */
void memory_begin(struct run *run, int rank);
bool memory_end(struct run *run, int rank, int event);

#endif
