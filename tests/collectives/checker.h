/* The checker: runs all ranks' schedules symbolically and proves what a schedule must hold. It shares no code with the
 * builders.
 *
 * A run is a sequence of calls on one communicator. Messages are rendezvous (a send completes only when it is matched),
 * which decides deadlock freedom: the system has no choices, so one run finds a deadlock if there is one. Accesses are
 * ordered by the weakest relation: lane order, needs, a message's send before its receive (as if links buffered),
 * shared counters, and the order of calls on one rank. The run proves:
 *
 *   exactly once    each output element holds each contribution once; nothing else is read or written
 *   order           its expression is the algorithm's, operand for operand, as tree.h has it: the same on all ranks
 *   no deadlock     even as rendezvous, with the needs as they stand
 *   no race         any two conflicting accesses, of private memory (in place too) or shared, are ordered
 *   matching        the two sides of a message have the same elements; lanes are well formed
 *   barrier         its end on any rank comes after its beginning on every rank
 *   return          a rank's buffers are its caller's again at the end of its call, and its scratch is another call's:
 *                   that end writes over them all
 *
 * A message from one rank to another is a call in which all other ranks have no schedule. One to oneself is the two
 * requests of its rank side by side: one schedule with the lanes of both. */
#ifndef GY_TESTS_COLLECTIVES_CHECKER_H
#define GY_TESTS_COLLECTIVES_CHECKER_H

#include "collectives/schedule/schedule.h"

#include "expression.h"
#include "order.h"

/* How tiny vectors are exchanged instead of by their one-shot schedule: exchange k of the communicator uses line k
 * mod `lines` of every rank. A rank that enters it has waited for all ranks to enter the one before, or has not. */
struct gy_checker_eager {
    int lines;
    bool makes_room;
};

/* Operands that others use where they are (mapped.h), a bit per rank: inputs are read instead of what would be
 * published, outputs of all_reduce are written instead of results being collected. Worlds of up to 64 ranks. */
struct gy_checker_mapped {
    uint64_t input, output;
};

/* Broken on purpose: the check of the check. */
enum gy_checker_flaw {
    GY_CHECKER_SOUND,
    GY_CHECKER_NO_LAST_WAIT,   /* a rank that exposes operands returns when its own lanes are done */
    GY_CHECKER_WAIT_ONE_SHORT, /* it waits for the last iteration but one of all ranks */
    GY_CHECKER_WAIT_NOT_FOR,   /* it does not wait for one that reads */
    GY_CHECKER_EXPOSED,        /* all_to_all in place offers what it overwrites */
    GY_CHECKER_NOT_ARRIVED,    /* a block is taken whole whether its rank has arrived or not */
    GY_CHECKER_NO_READERS,     /* where any operand is exposed, no rank waits for the readers of a slot */
    GY_CHECKER_SENDS_FORGOTTEN /* a rank returns before what it has sent is known to have been read */
};

struct gy_checker_call {
    struct gy_schedule *const *schedules; /* one per rank; NULL: this rank has no part in it */
    size_t total, tile;                   /* elements */
    bool in_place;
    const struct gy_checker_eager *tiny;    /* NULL: by the schedules */
    bool canonical;                         /* gathers combine in the canonical tree, and so must every algorithm */
    const size_t *starts;                   /* [size + 1] where the ranks' blocks begin; NULL: all have one length */
    const struct gy_checker_mapped *mapped; /* NULL: nothing is offered */
    enum gy_checker_flaw flaw;
};

/* What was counted, over all ranks and calls. */
struct gy_checker_report {
    char text[256];     /* why the run was rejected */
    size_t sent;        /* elements over links */
    size_t crossed;     /* of them, between ranks of different groups of the shape */
    size_t shm_written; /* elements into slots of shared memory, both halves */
    size_t shm_read;    /* elements out of other ranks' slots */
    int depth;          /* messages one after another on the longest path */
};

/* False: the schedules are wrong, and report_p->text says why. `order_p` (or NULL) receives what happened before what,
 * and the dataflow: gy_order_close it. `expression_p` (or NULL) receives the first call's values: free it. */
bool gy_checker_run(int size, const struct gy_checker_call *calls, int ncalls, struct gy_checker_report *report_p,
                    struct gy_order *order_p, struct gy_expression *expression_p);

/* Compares counts of a single call with the algorithm's formula; `starts` as in the call. */
bool gy_checker_formula(const struct gy_schedule_shape *shape, size_t total, const size_t *starts,
                        const struct gy_checker_report *report, char *text, size_t text_bytes);

/* Of the same collective with any other shape: is the length a multiple of the world size? */
bool gy_checker_by_rank(enum gy_collective collective);

/* Builds the schedules of a shape for every rank (shape.rank is ignored); NULL when out of memory. Point to point: rank
 * root + 1 sends to rank `root`, or receives from it, and rank `root` does the opposite; the others' schedules are
 * NULL. In a world of one rank it does both. */
struct gy_schedule **gy_checker_schedules(const struct gy_schedule_shape *shape);
/* Rank `rank` sends to itself; the others' schedules are NULL. */
struct gy_schedule **gy_checker_schedules_to_self(int size, int rank);
void gy_checker_schedules_free(struct gy_schedule **schedules, int size);

/* The expression of every element of the vector as this shape computes it, for gy_expression_evaluate. */
bool gy_checker_expression(const struct gy_schedule_shape *shape, size_t total, size_t tile,
                           struct gy_expression *expression_p);

#endif
