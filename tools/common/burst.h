/* The burst of a shaped link: the bytes that pass at once after a pause. Derived from the time of one message: the
 * burst is the part of the message that was not slowed down. */
#ifndef GYRE_TOOLS_BURST_H
#define GYRE_TOOLS_BURST_H

#include "common/slope.h"

/* Returns the burst in bytes; 0 where it is too small a part of this message to be distinguished. `alone`: time of a
 * message without bytes. `bandwidth`: of a long message. */
static inline double gy_burst(struct gy_timed message, double alone, double bandwidth)
{
    double burst = message.bytes - bandwidth * (message.seconds - alone);
    if (burst < message.bytes / 4)
        return 0;
    return burst < message.bytes ? burst : message.bytes;
}

#endif
