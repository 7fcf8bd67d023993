/* Shared by the parts of the conformance suite: conformance_test.c (which bodies there are, and those of frames that
 * come and go), conformance_exchange.c (frames to and from all peers); conformance_ends.c (how links end),
 * conformance_sockets.c (what tcp does on its sockets), conformance_pool.c (payloads past the caches). A body is what
 * one rank does. */
#ifndef GY_TESTS_TRANSPORT_CONFORMANCE_H
#define GY_TESTS_TRANSPORT_CONFORMANCE_H

#include "ranks.h"

#define CONFORMANCE_POOL 64

/* conformance_exchange.c. With every rank whose link is whole: sends `count` frames of size(i) bytes, `most` at most,
 * with at most CONFORMANCE_POOL (8 of a megabyte, where there are many ranks) under way, until all left and as many
 * arrived. */
void conformance_exchange(struct rank *rank, uint64_t count, uint32_t (*size)(uint64_t), uint32_t most, bool sleep);
uint32_t conformance_small(uint64_t i);   /* below 500 bytes */
uint32_t conformance_mixed(uint64_t i);   /* below 300, and some below 300,000 */
void conformance_pause(int milliseconds); /* less than a second */

/* conformance_ends.c */
void conformance_stop(struct rank *rank);
void conformance_close(struct rank *rank);
void conformance_broken(struct rank *rank);
void conformance_forked(struct rank *rank);
void conformance_rubbish(struct rank *rank);

/* conformance_sockets.c */
void conformance_overtake(struct rank *rank);
void conformance_sleeper(struct rank *rank);
void conformance_short(struct rank *rank);
void conformance_trip(struct rank *rank);
void conformance_doze(struct rank *rank);
void conformance_whole(struct rank *rank);
void conformance_quiet(struct rank *rank);
void conformance_unreadable(struct rank *rank);

/* conformance_pool.c */
void conformance_pool(struct rank *rank);
void conformance_pool_under_way(struct rank *rank);
void conformance_pool_short(struct rank *rank);
void conformance_pool_of_others(struct rank *rank);
void conformance_pool_signal(struct rank *rank);

#endif
