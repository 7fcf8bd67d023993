/* Returns bytes per second, from the times of two long messages. The extra time of the longer one contains no fixed
 * costs. */
#ifndef GYRE_TOOLS_SLOPE_H
#define GYRE_TOOLS_SLOPE_H

struct gy_timed {
    double bytes, seconds;
};

/* On a busy machine the longer message may have taken little more time than the other, or less. The difference is
 * used only if it is at least half of the longer message's proportional share of the time. Otherwise the longer
 * message is used alone, with its fixed costs, which are a small part of it. */
static inline double gy_slope(struct gy_timed shorter, struct gy_timed longer)
{
    double bytes = longer.bytes - shorter.bytes, seconds = longer.seconds - shorter.seconds;
    double share = longer.seconds * bytes / longer.bytes;
    return seconds >= share / 2 ? bytes / seconds : longer.bytes / longer.seconds;
}

#endif
