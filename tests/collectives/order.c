/* Vector clocks and race detection; see order.h. */
#include "order.h"

#include <stdlib.h>
#include <string.h>

void gy_order_open(struct gy_order *order, int chains)
{
    memset(order, 0, sizeof(*order));
    order->chains = chains;
    order->last = malloc((size_t)chains * sizeof(order->last[0]));
    if (order->last == NULL)
        abort();
    for (int i = 0; i < chains; i++)
        order->last[i] = -1;
}

void gy_order_close(struct gy_order *order)
{
    free(order->clock);
    free(order->chain_of);
    free(order->depth);
    free(order->last);
    free(order->read);
}

static uint16_t *clock_of(const struct gy_order *order, int event)
{
    return order->clock + (size_t)event * (size_t)order->chains;
}

static void grow(struct gy_order *order)
{
    order->capacity = order->capacity == 0 ? 256 : 2 * order->capacity;
    size_t n = (size_t)order->capacity;
    order->clock = realloc(order->clock, n * (size_t)order->chains * sizeof(order->clock[0]));
    order->chain_of = realloc(order->chain_of, n * sizeof(order->chain_of[0]));
    order->depth = realloc(order->depth, n * sizeof(order->depth[0]));
    if (order->clock == NULL || order->chain_of == NULL || order->depth == NULL)
        abort();
}

int gy_order_event(struct gy_order *order, int chain)
{
    if (order->events == order->capacity)
        grow(order);
    int event = order->events++, previous = order->last[chain];
    uint16_t *clock = clock_of(order, event);
    if (previous < 0)
        memset(clock, 0, (size_t)order->chains * sizeof(clock[0]));
    else
        memcpy(clock, clock_of(order, previous), (size_t)order->chains * sizeof(clock[0]));
    clock[chain]++;
    order->chain_of[event] = chain;
    order->depth[event] = previous < 0 ? 0 : order->depth[previous];
    order->last[chain] = event;
    return event;
}

void gy_order_after(struct gy_order *order, int event, int before)
{
    uint16_t *mine = clock_of(order, event);
    const uint16_t *theirs = clock_of(order, before);
    for (int i = 0; i < order->chains; i++)
        mine[i] = mine[i] > theirs[i] ? mine[i] : theirs[i];
    if (order->depth[event] < order->depth[before])
        order->depth[event] = order->depth[before];
}

uint64_t gy_order_hash(const struct gy_order *order)
{
    uint64_t sum = 0; /* of the events' hashes: the run's own sequence does not matter */
    for (int e = 0; e < order->events; e++) {
        uint64_t h = (uint64_t)order->chain_of[e] + 1;
        for (int i = 0; i < order->chains; i++)
            h = (h ^ clock_of(order, e)[i]) * UINT64_C(0x100000001b3);
        sum += h ^ (h >> 29);
    }
    return sum;
}

struct gy_cell *gy_cells_new(size_t count)
{
    struct gy_cell *cells = calloc(count + 1, sizeof(cells[0]));
    if (cells == NULL)
        abort();
    for (size_t i = 0; i < count; i++)
        cells[i].value = cells[i].first_read = -1;
    return cells;
}

bool gy_cell_read(struct gy_order *order, int event, struct gy_cell *cell, int32_t *value_p)
{
    const uint16_t *clock = clock_of(order, event);
    *value_p = cell->value;
    if (cell->write_index > clock[cell->write_chain])
        return false;
    if (order->reads == order->read_capacity) {
        order->read_capacity = order->read_capacity == 0 ? 1024 : 2 * order->read_capacity;
        order->read = realloc(order->read, (size_t)order->read_capacity * sizeof(order->read[0]));
        if (order->read == NULL)
            abort();
    }
    int chain = order->chain_of[event];
    order->read[order->reads] = (struct gy_access){chain, cell->first_read, clock[chain]};
    cell->first_read = order->reads++;
    return true;
}

bool gy_cell_write(struct gy_order *order, int event, struct gy_cell *cell, int32_t value)
{
    const uint16_t *clock = clock_of(order, event);
    bool ordered = cell->write_index <= clock[cell->write_chain];
    for (int32_t i = cell->first_read; i >= 0; i = order->read[i].next)
        ordered = ordered && order->read[i].index <= clock[order->read[i].chain];
    cell->value = value;
    cell->first_read = -1;
    cell->write_chain = order->chain_of[event];
    cell->write_index = clock[cell->write_chain];
    return ordered;
}
