/* The page of this rank's world, gyre/page.h: who makes it and who writes what.
 *
 *   made once              the head, with names and members                                status_page.c
 *   every slow turn        beat, and whom the operations under way miss                    engine/page_waits.c
 *   every operation        its record and the counters: the flight recorder lies there     flight_recorder.c
 *
 * The flight recorder is written anyway; that it lies in the page costs no store. Without a page, for want of a descriptor or
 * of memory, or beyond GYRE_PAGE_COMMS communicators, it lies in private memory and nobody sees it: never an error. */
#ifndef GY_COLLECTIVES_COMM_STATUS_PAGE_H
#define GY_COLLECTIVES_COMM_STATUS_PAGE_H

#include <gyre/page.h>

#include "core/base.h"

struct gy_context;
struct gyre_comm;

void gy_page_create(struct gy_context *ctx);
void gy_page_free(struct gy_context *ctx);
void gy_page_abandon(struct gy_context *ctx); /* in a forked child: the page is the parent's */
/* Gives the communicator's recorder its place; false: out of memory. */
bool gy_page_comm_take(struct gyre_comm *comm);
void gy_page_comm_give(struct gyre_comm *comm);
/* Its place on the page; −1: it has none. */
int gy_page_slot(const struct gyre_comm *comm);
void gy_page_fail(struct gy_context *ctx);

#endif
