/* Sizes that schedules and channels share. */
#ifndef GY_COLLECTIVES_SCHEDULE_LIMITS_H
#define GY_COLLECTIVES_SCHEDULE_LIMITS_H

#define GY_EAGER_BYTES \
    8192u /* of a frame that leaves without a grant, where another lane sends to the same peer, too */
#define GY_REGION_RANKS 1024 /* hosts with more ranks use links */

#endif
