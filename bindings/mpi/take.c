#include "take.h"

#include "failure.h"
#include "idle.h"

int gm_take_end(struct gm_twin *twin, gyre_status started, gyre_request **request, enum gm_call call)
{
    gyre_status status = started == GYRE_SUCCESS ? gm_idle_wait(twin, request) : started;
    return gm_failure_end(twin, status, call);
}

int gm_take_end_all(struct gm_twin *twin, gyre_status started, size_t requests, enum gm_call call)
{
    gyre_status result = started;
    if (started != GYRE_SUCCESS && requests > 0)
        gyre_comm_abort(twin->comm);
    for (size_t i = 0; i < requests; i++) {
        gyre_status status = gm_idle_wait(twin, &twin->requests[i]);
        if (result == GYRE_SUCCESS)
            result = status;
    }
    return gm_failure_end(twin, result, call);
}
