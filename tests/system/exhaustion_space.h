/* Shared memory that runs out for one rank, in the best way that the machine offers. */
#ifndef GYRE_TESTS_SYSTEM_EXHAUSTION_SPACE_H
#define GYRE_TESTS_SYSTEM_EXHAUSTION_SPACE_H

#include <stddef.h>

/* The launcher: before anything else. `round` is shared and changes with each round. */
void space_begin(const volatile int *round);
/* The launcher: before each round, and after the last. */
void space_reset(void);
void space_end(void);
/* The victim: from now on there is room for `bytes` more; until it leaves. */
void space_join(size_t bytes);
void space_leave(void);
/* Every rank, when its world is gone: was everything reserved that was touched? */
void space_check(void);

#endif
