/* What a job may leave behind after all its processes are gone: nothing. */
#ifndef GYRE_TESTS_SYSTEM_FAULT_TRACES_H
#define GYRE_TESTS_SYSTEM_FAULT_TRACES_H

#include <stdbool.h>
#include <stddef.h>

/* A folder of our own for the meeting file. Where the system allows it (root) this process and its children also get a
 * network, a /dev/shm and a /tmp of their own, in which every trace is ours; elsewhere only new names in /dev/shm that
 * contain "gyre" count, and /tmp and sockets are not looked at. Call it before any child is started. */
void fault_traces_begin(void);
/* The meeting's folder. */
const char *fault_traces_folder(void);
/* Removes what rank 0, killed during the meeting, could not remove. */
void fault_traces_sweep(void);
/* false: something is left, named in `what`. */
bool fault_traces_none(char *what, size_t bytes);
void fault_traces_end(void);

#endif
