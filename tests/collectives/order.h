/* Happens-before by vector clocks, and memory whose cells know their last accesses.
 *
 * An *event* is one iteration of one lane (or the start or end of a call). Events of one *chain* (a lane of a rank)
 * are ordered. The clock of an event holds, per chain, how many of its events come before. Two accesses of a cell
 * conflict when one writes; a conflict without order is a race. The run is one linear extension of the order, so
 * that it is enough to compare each access with the last write and the reads since.
 *
 * The *dataflow* is the multiset of (chain, cell, contents) of the writes that change a cell and whose contents are
 * read before they are overwritten. Two runs with the same dataflow, one of them ordered at least as strongly as the
 * other, do the same. */
#ifndef GY_TESTS_COLLECTIVES_ORDER_H
#define GY_TESTS_COLLECTIVES_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gy_order_access {
    int32_t chain, next;
    uint16_t index;
};

struct gy_order {
    int chains, events, capacity;
    uint16_t *clock;   /* [event][chain] */
    int32_t *chain_of; /* [event] */
    uint64_t *name;    /* [event]: call and number in the call, on its chain */
    int32_t *depth;    /* [event]: messages on the longest path to it */
    int32_t *last;     /* [chain]: its last event, −1 */
    struct gy_order_access *read;
    int32_t reads, read_capacity;
    uint64_t dataflow; /* sum of the hashes */
};

struct gy_cell {
    int32_t value; /* expression; GY_EXPRESSION_NONE: never written */
    int32_t write_chain, first_read;
    uint16_t write_index; /* 0: not written by an event */
    uint64_t name;        /* equal in all runs of the same calls */
    uint64_t contents;    /* hash */
    uint64_t unread;      /* what the last write adds to the dataflow when it is read; 0: it was read */
};

void gy_order_open(struct gy_order *order, int chains);
void gy_order_close(struct gy_order *order);
int gy_order_event(struct gy_order *order, int chain, int call);    /* after the last event of the chain */
void gy_order_after(struct gy_order *order, int event, int before); /* before any access of `event` */
/* True if `more` has every event of `less` (by chain, call, and number in the call), each after all that it is after
 * in `less`. Events that `less` does not have do not matter. */
bool gy_order_contains(const struct gy_order *more, const struct gy_order *less);

/* `place` tells memories apart. */
struct gy_cell *gy_cells_new(size_t count, int place);
/* False: a race. `contents`: a hash of the value. */
bool gy_cell_read(struct gy_order *order, int event, struct gy_cell *cell, int32_t *value_p);
bool gy_cell_write(struct gy_order *order, int event, struct gy_cell *cell, int32_t value, uint64_t contents);

#endif
