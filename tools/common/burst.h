/* What a shaped link lets pass at once after a pause, from how long one message took: that much of it was not slowed down. */
#ifndef GYRE_TOOLS_BURST_H
#define GYRE_TOOLS_BURST_H

#include "common/slope.h"

/* Bytes; 0 where it is too little of this message to be told from the rest of what it takes. `alone`: a message without bytes;
 * `bandwidth`: of a long one. */
static inline double gy_burst(struct gy_timed message, double alone, double bandwidth)
{
    double burst = message.bytes - bandwidth * (message.seconds - alone);
    if (burst < message.bytes / 4)
        return 0;
    return burst < message.bytes ? burst : message.bytes;
}

#endif
