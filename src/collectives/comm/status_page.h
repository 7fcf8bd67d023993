/* The status page of this rank's world, gyre/page.h: its writers.
 *
 *   made once              the head, with names and members                                status_page.c
 *   every slow iteration   heartbeat, and the ranks that operations wait for                    engine/page_waits.c
 *   every operation        its record and the counters: the flight recorder lies there     flight_recorder.c
 *
 * The flight recorder is written in any case; placing it in the page costs no extra store. Without a page (no
 * descriptor or memory), or beyond GYRE_PAGE_COMMS communicators, it lies in private memory and is not visible
 * outside. That is never an error. */
#ifndef GY_COLLECTIVES_COMM_STATUS_PAGE_H
#define GY_COLLECTIVES_COMM_STATUS_PAGE_H

#include <gyre/page.h>

#include "core/base.h"

struct gy_context;
struct gyre_comm;

void gy_page_create(struct gy_context *ctx);
void gy_page_free(struct gy_context *ctx);
void gy_page_abandon(struct gy_context *ctx); /* in a forked child: the page is the parent's */
/* Places the communicator's recorder; false: out of memory. */
bool gy_page_comm_take(struct gyre_comm *comm);
void gy_page_comm_give(struct gyre_comm *comm);
/* Returns its index in the page; −1: it has none. */
int gy_page_slot(const struct gyre_comm *comm);
void gy_page_fail(struct gy_context *ctx);

#endif
