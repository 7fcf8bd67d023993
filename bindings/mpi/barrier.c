#include "take.h"

int gm_barrier(MPI_Comm comm)
{
    struct gm_twin *twin = gm_twin_find(comm, GM_BARRIER);
    gyre_request *request;
    if (!twin)
        return GM_PASS;
    return gm_take_end(twin, gyre_barrier_start(twin->comm, &request), &request, GM_BARRIER);
}
