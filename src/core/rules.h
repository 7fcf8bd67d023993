/* What no rank says and all come to alike, each for itself: plans, tiles over links and over shared memory, what leaves without a grant,
 * who waits for whom in a direct exchange, and what the ends of a link over RDMA write to each other's memory. Two builds that come to
 * something else would hang or fail with what they have no place for, so that this number of it is among what ranks compare when they
 * meet. The test collectives.rules makes it anew from the library, and says when it is another one. Where algorithms are chosen otherwise
 * the number does not tell: a call that two ranks make by different ones is a mismatch that names both. */
#ifndef GY_CORE_RULES_H
#define GY_CORE_RULES_H

#define GY_RULES 0x385ef860u

#endif
