/* A call with copies of its lists, so that it outlives the caller's arrays. */
#ifndef GY_COLLECTIVES_DEVICE_KEPT_CALL_H
#define GY_COLLECTIVES_DEVICE_KEPT_CALL_H

#include "collectives/engine/request.h"

struct gy_kept_call {
    struct gy_call call; /* its lists are below */
    size_t *lists;       /* NULL: it has none */
};

/* Copies a call of `size` ranks. A list that two fields share is copied once. Returns false if out of memory. */
bool gy_kept_call_open(struct gy_kept_call *kept, const struct gy_call *call, int size);
/* Idempotent. */
void gy_kept_call_close(struct gy_kept_call *kept);

#endif
