/* Ctrl-C while the main thread waits inside libgyre: the world is aborted, so that the wait ends and the other ranks
 * are told, and the caller raises KeyboardInterrupt.
 *
 * Python runs handlers of signals in the main thread, which is inside gyre_wait and comes back only when the wait is
 * over. So a guarded wait puts a handler of its own before Python's: it calls that one, which notes the signal, and
 * wakes a thread, which aborts the communicators that are being waited for. Where the program has a handler of its own
 * for SIGINT nothing is guarded, since only that handler knows what is to happen: it runs when the wait is over. */
#ifndef GYRE_PYTHON_INTERRUPT_H
#define GYRE_PYTHON_INTERRUPT_H

#include "python.h"

#include <gyre/gyre.h>

/* The most communicators that one wait is guarded for; of a longer list the first ones, which abort their worlds. */
#define GYPY_GUARD_MOST 64

/* To be called before and after a wait, with Python's lock held. enter gives 1 where the wait is guarded, 0 where it is
 * not, for example in another thread, and −1 with an exception where a signal has come before. */
int gypy_guard_enter(gyre_comm *const *comms, size_t count);
void gypy_guard_leave(void);

#endif
