/* Argument checks, shared by the public functions. A wrong argument leaves the communicator as it was. What has no
 * communicator to keep its sentence leaves it with the thread: gyre_last_error(NULL) gives it. */
#ifndef GY_API_CHECK_H
#define GY_API_CHECK_H

#include "collectives/engine/request.h"

/* The thread's own last error. */
struct gy_error *gy_check_own_error(void);
/* Sets it; returns GYRE_INVALID_ARGUMENT. */
gyre_status gy_check_none(const char *format, ...) GY_PRINTF(1, 2);
/* Is it a communicator, a window? False: it is NULL, was destroyed, or never was one, and the thread's error says so. */
bool gy_check_lives(const struct gyre_comm *comm, const char *function);
bool gy_check_window(const struct gyre_window *window, const char *function);
/* False: this call waits for other ranks, in a group, where this thread may have to start their part after it. */
bool gy_check_ungrouped(struct gyre_comm *comm, const char *function);
/* Does the communicator belong to this process, and not to its parent? */
gyre_status gy_check_owner(struct gyre_comm *comm);
/* Is the communicator usable by this process, and its world whole? */
gyre_status gy_check_comm(struct gyre_comm *comm);
/* The world was broken before this call began: the sentence says which call met it, once. Returns `status`. */
gyre_status gy_check_refused(struct gyre_comm *comm, const struct gy_call *call, gyre_status status);
/* The same of a communicator that has ended in a world that goes on: each call is met by the sentence. */
gyre_status gy_check_ended(struct gyre_comm *comm, const struct gy_call *call);
gyre_status gy_check_call(struct gyre_comm *comm, const struct gy_call *call);
/* Of a send and a receive at once, each of them checked. */
gyre_status gy_check_apart(struct gyre_comm *comm, const struct gy_call *sends, const struct gy_call *receives);
/* The sentence of a wrong call replaces the last one: unlike failures of the world, it is not the first that counts. */
gyre_status gy_check_fail(struct gyre_comm *comm, gyre_status status, const char *format, ...) GY_PRINTF(3, 4);

#endif
