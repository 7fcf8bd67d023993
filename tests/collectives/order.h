/* Happens-before by vector clocks, and memory whose cells know who touched them last.
 *
 * An *event* is one iteration of one lane (or the start or end of a call). Events of one *chain* (a lane of a rank) are
 * ordered. The clock of an event holds, per chain, how many of its events come before. Two accesses of a cell conflict
 * when one writes; a conflict without order is a race. The run is one linear extension of the order, so that it is
 * enough to compare each access with the last write and the reads since. */
#ifndef GY_TESTS_COLLECTIVES_ORDER_H
#define GY_TESTS_COLLECTIVES_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gy_access {
    int32_t chain, next;
    uint16_t index;
};

struct gy_order {
    int chains, events, capacity;
    uint16_t *clock;   /* [event][chain] */
    int32_t *chain_of; /* [event] */
    int32_t *depth;    /* [event]: messages on the longest path to it */
    int32_t *last;     /* [chain]: its last event, −1 */
    struct gy_access *read;
    int32_t reads, read_capacity;
};

struct gy_cell {
    int32_t value; /* expression; GY_EXPRESSION_NONE: never written */
    int32_t write_chain, first_read;
    uint16_t write_index; /* 0: not written by an event */
};

void gy_order_open(struct gy_order *order, int chains);
void gy_order_close(struct gy_order *order);
int gy_order_event(struct gy_order *order, int chain);              /* after the last event of the chain */
void gy_order_after(struct gy_order *order, int event, int before); /* before any access of `event` */
uint64_t gy_order_hash(const struct gy_order *order);               /* equal orders, equal hash */

struct gy_cell *gy_cells_new(size_t count);
/* False: a race. */
bool gy_cell_read(struct gy_order *order, int event, struct gy_cell *cell, int32_t *value_p);
bool gy_cell_write(struct gy_order *order, int event, struct gy_cell *cell, int32_t value);

#endif
