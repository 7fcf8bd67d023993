/* The version of the rules that every rank computes for itself and that must agree. They cover schedules, tiles over
 * links and over shared memory, sends without a grant, the waiting order in an eager exchange, and the RDMA writes
 * between the ends of a link. Builds with different rules would deadlock or overflow, so ranks compare this hash during
 * bootstrap. The test collectives.rules recomputes it from the library, and reports a change. The choice of algorithms
 * is not part of it: if two ranks choose different ones for a call, that is a mismatch error that names both. */
#ifndef GY_CORE_RULES_H
#define GY_CORE_RULES_H

#define GY_RULES 0x385ef860u

#endif
