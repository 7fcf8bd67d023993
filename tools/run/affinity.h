/* The cores that this process may use, and keeping it on one of them. */
#ifndef GYRE_TOOLS_CORES_H
#define GYRE_TOOLS_CORES_H

/* How many there are; at least 1. */
int gy_cores_count(void);
/* Keeps this process on the `turn`-th of them, counted round. Where the system refuses, nothing changes. */
void gy_cores_bind(int turn);

#endif
