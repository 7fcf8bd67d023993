/* Bytes per second from how long two messages took, a long one and a longer one: what the longer one takes beyond the other
 * has no fixed costs in it. */
#ifndef GYRE_TOOLS_SLOPE_H
#define GYRE_TOOLS_SLOPE_H

struct gy_timed {
    double bytes, seconds;
};

/* On a machine that is busy with something else the longer one may have taken little more time than the other, or less. Half of
 * its share of the time is the least that is believed; below that the longer one is taken alone, fixed costs included, for they
 * are a small part of it. */
static inline double gy_slope(struct gy_timed shorter, struct gy_timed longer)
{
    double bytes = longer.bytes - shorter.bytes, seconds = longer.seconds - shorter.seconds;
    double share = longer.seconds * bytes / longer.bytes;
    return seconds >= share / 2 ? bytes / seconds : longer.bytes / longer.seconds;
}

#endif
