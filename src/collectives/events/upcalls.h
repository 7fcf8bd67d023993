/* The table of what lower layers call of higher ones. */
#ifndef GY_COLLECTIVES_EVENTS_UPCALLS_H
#define GY_COLLECTIVES_EVENTS_UPCALLS_H

#include "collectives/comm/upcalls.h"

/* For every context (gy_context_create). */
extern const struct gy_upcalls gy_upcalls;

#endif
