/* Argument checks, shared by the public functions. A wrong argument leaves the communicator as it was. If there is
 * no communicator to keep the error message, the thread keeps it: gyre_last_error(NULL) returns it. */
#ifndef GY_API_CHECK_H
#define GY_API_CHECK_H

#include "collectives/engine/request.h"

/* The thread's own last error. */
struct gy_error *gy_check_own_error(void);
/* Sets it; returns GYRE_INVALID_ARGUMENT. */
gyre_status gy_check_none(const char *format, ...) GY_PRINTF(1, 2);
/* True if the handle is a communicator (a window). False: it is NULL, was destroyed, or never was one, and the
 * thread's error says so. */
bool gy_check_lives(const struct gyre_comm *comm, const char *function);
bool gy_check_window(const struct gyre_window *window, const char *function);
/* Returns false in a group if this call waits for other ranks: this thread may have to start their part after it. */
bool gy_check_ungrouped(struct gyre_comm *comm, const char *function);
/* Returns SUCCESS if the communicator belongs to this process, and not to its parent. */
gyre_status gy_check_owner(struct gyre_comm *comm);
/* Returns SUCCESS if this process may use the communicator, and its world has not failed. */
gyre_status gy_check_comm(struct gyre_comm *comm);
/* The world failed before this call began: the message says, once, which call was refused. Returns `status`. */
gyre_status gy_check_refused(struct gyre_comm *comm, const struct gy_call *call, gyre_status status);
/* The same for a communicator that has ended in a world that continues: each call gets the message. */
gyre_status gy_check_ended(struct gyre_comm *comm, const struct gy_call *call);
gyre_status gy_check_call(struct gyre_comm *comm, const struct gy_call *call);
/* Returns SUCCESS if the call may be made: of the communicator, its world and the call's arguments. blocks: the caller
 * waits for its end. */
gyre_status gy_check_entry(struct gyre_comm *comm, const struct gy_call *call, bool blocks);
/* True, with a message, if the memory lies on a GPU that the communicator is attached to: the function cannot take
 * it. */
bool gy_check_device_memory(struct gyre_comm *comm, const char *function, const void *memory);
/* Checks a send and a receive at once, each of them checked before. */
gyre_status gy_check_apart(struct gyre_comm *comm, const struct gy_call *sends, const struct gy_call *receives);
/* The message of a wrong call replaces the last one. For failures of the world the first one stays. */
gyre_status gy_check_fail(struct gyre_comm *comm, gyre_status status, const char *format, ...) GY_PRINTF(3, 4);

#endif
