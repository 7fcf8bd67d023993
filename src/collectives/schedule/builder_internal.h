/* For schedule.c and builder.c only: the builder's inside, its beginning and its end. */
#ifndef GY_COLLECTIVES_SCHEDULE_BUILDER_INTERNAL_H
#define GY_COLLECTIVES_SCHEDULE_BUILDER_INTERNAL_H

#include "collectives/schedule/builder.h"

struct gy_builder {
    struct gy_plan *plan;
    int32_t capacity;     /* steps that fit */
    bool failed;          /* out of memory on the way */
    struct gy_step spare; /* what builders write to after that */
};

gyre_status gy_builder_open(struct gy_builder *builder, const struct gy_plan_shape *shape);
/* The finished plan, owned by the caller; NULL when memory ran out on the way. */
struct gy_plan *gy_builder_close(struct gy_builder *builder);

#endif
