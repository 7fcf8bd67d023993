/* The address at which the ranks of other hosts reach rank 0. */
#ifndef GYRE_TOOLS_MEETING_ADDRESS_H
#define GYRE_TOOLS_MEETING_ADDRESS_H

#include "run/remote_host.h"

/* Writes the address of the first of `count` hosts as the others see it: the one at which ssh reached it; for this host
 * itself, the one from which it reaches the first host that ssh has reached elsewhere. */
void gy_meeting_address(const struct gy_remote_host *hosts, int count, char *address, size_t bytes);

#endif
