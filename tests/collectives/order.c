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
    free(order->name);
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
    order->name = realloc(order->name, n * sizeof(order->name[0]));
    if (order->clock == NULL || order->chain_of == NULL || order->depth == NULL || order->name == NULL)
        abort();
}

int gy_order_event(struct gy_order *order, int chain, int call)
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
    uint64_t first = (uint64_t)call << 32;
    order->name[event] = previous >= 0 && order->name[previous] >= first ? order->name[previous] + 1 : first;
    order->depth[event] = previous < 0 ? 0 : order->depth[previous];
    order->last[chain] = event;
    return event;
}

void gy_order_after(struct gy_order *order, int event, int before)
{
    uint16_t *restrict mine = clock_of(order, event);
    const uint16_t *restrict theirs = clock_of(order, before);
    for (int i = 0; i < order->chains && event != before; i++)
        mine[i] = mine[i] > theirs[i] ? mine[i] : theirs[i];
    if (order->depth[event] < order->depth[before])
        order->depth[event] = order->depth[before];
}

/* All events by chain and number in it; chain c begins at first[c]. */
struct table {
    int *event, *first;
};

static struct table table_open(const struct gy_order *order)
{
    struct table table = {malloc(((size_t)order->events + 1) * sizeof(int)),
                          malloc(((size_t)order->chains + 1) * sizeof(int))};
    if (table.event == NULL || table.first == NULL)
        abort();
    table.first[0] = 0;
    for (int c = 0; c < order->chains; c++)
        table.first[c + 1] = table.first[c] + (order->last[c] < 0 ? 0 : clock_of(order, order->last[c])[c]);
    for (int e = 0; e < order->events; e++)
        table.event[table.first[order->chain_of[e]] + clock_of(order, e)[order->chain_of[e]] - 1] = e;
    return table;
}

static void table_close(struct table *table)
{
    free(table->event);
    free(table->first);
}

/* For each event of `less`, in the sequence of its table: the number in its chain of the event of that name in `more`.
 * False: there is none. */
static bool translate(const struct gy_order *more, const struct table *in, const struct gy_order *less,
                      const struct table *of, int *number)
{
    for (int c = 0; c < less->chains; c++) {
        int at = in->first[c];
        for (int i = of->first[c]; i < of->first[c + 1]; i++, at++) {
            while (at < in->first[c + 1] && more->name[in->event[at]] < less->name[of->event[i]])
                at++;
            if (at == in->first[c + 1] || more->name[in->event[at]] != less->name[of->event[i]])
                return false;
            number[i] = at - in->first[c] + 1;
        }
    }
    return true;
}

bool gy_order_contains(const struct gy_order *more, const struct gy_order *less)
{
    if (more->chains != less->chains)
        return false;
    struct table in = table_open(more), of = table_open(less);
    int *number = malloc(((size_t)less->events + 1) * sizeof(number[0]));
    if (number == NULL)
        abort();
    bool contains = translate(more, &in, less, &of, number);
    for (int i = 0; i < less->events && contains; i++) {
        int chain = less->chain_of[of.event[i]];
        const uint16_t *before = clock_of(less, of.event[i]);
        const uint16_t *after = clock_of(more, in.event[in.first[chain] + number[i] - 1]);
        for (int c = 0; c < less->chains && contains; c++)
            contains = before[c] == 0 || after[c] >= number[of.first[c] + before[c] - 1];
    }
    table_close(&in);
    table_close(&of);
    free(number);
    return contains;
}

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a ^ (b * UINT64_C(0x9e3779b97f4a7c15))) + UINT64_C(0x2545f4914f6cdd1d);
    x = (x ^ (x >> 31)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 29);
}

struct gy_cell *gy_cells_new(size_t count, int place)
{
    struct gy_cell *cells = calloc(count + 1, sizeof(cells[0]));
    if (cells == NULL)
        abort();
    for (size_t i = 0; i < count; i++) {
        cells[i].value = cells[i].first_read = -1;
        cells[i].name = mix((uint64_t)place + 1, i);
    }
    return cells;
}

bool gy_cell_read(struct gy_order *order, int event, struct gy_cell *cell, int32_t *value_p)
{
    const uint16_t *clock = clock_of(order, event);
    *value_p = cell->value;
    if (cell->write_index > clock[cell->write_chain])
        return false;
    order->dataflow += cell->unread;
    cell->unread = 0;
    if (order->reads == order->read_capacity) {
        order->read_capacity = order->read_capacity == 0 ? 1024 : 2 * order->read_capacity;
        order->read = realloc(order->read, (size_t)order->read_capacity * sizeof(order->read[0]));
        if (order->read == NULL)
            abort();
    }
    int chain = order->chain_of[event];
    order->read[order->reads] = (struct gy_order_access){chain, cell->first_read, clock[chain]};
    cell->first_read = order->reads++;
    return true;
}

bool gy_cell_write(struct gy_order *order, int event, struct gy_cell *cell, int32_t value, uint64_t contents)
{
    const uint16_t *clock = clock_of(order, event);
    bool ordered = cell->write_index <= clock[cell->write_chain];
    for (int32_t i = cell->first_read; i >= 0; i = order->read[i].next)
        ordered = ordered && order->read[i].index <= clock[order->read[i].chain];
    if (cell->contents != contents)
        cell->unread = mix(mix(cell->name, contents), (uint64_t)order->chain_of[event]);
    cell->contents = contents;
    cell->value = value;
    cell->first_read = -1;
    cell->write_chain = order->chain_of[event];
    cell->write_index = clock[cell->write_chain];
    return ordered;
}
