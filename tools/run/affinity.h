/* The cores that this process may use, and keeping it on one of them. */
#ifndef GYRE_TOOLS_CORES_H
#define GYRE_TOOLS_CORES_H

/* Returns the number of cores; at least 1. */
int gy_cores_count(void);
/* Binds this process to core `turn` modulo the number of cores. Where the system refuses, nothing changes. */
void gy_cores_bind(int turn);

#endif
