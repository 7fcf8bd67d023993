/* For schedule.c and builder.c only: the builder's state, its opening and closing. */
#ifndef GY_COLLECTIVES_SCHEDULE_BUILDER_INTERNAL_H
#define GY_COLLECTIVES_SCHEDULE_BUILDER_INTERNAL_H

#include "collectives/schedule/builder.h"

struct gy_builder {
    struct gy_schedule *schedule;
    int32_t capacity;     /* steps that fit */
    bool failed;          /* an allocation failed */
    struct gy_step spare; /* target of writes after that */
};

gyre_status gy_builder_open(struct gy_builder *builder, const struct gy_schedule_shape *shape);
/* Returns the finished schedule, owned by the caller; NULL if an allocation failed. */
struct gy_schedule *gy_builder_close(struct gy_builder *builder);

#endif
