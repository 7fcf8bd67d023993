#include "take.h"

int gm_barrier(MPI_Comm comm)
{
    struct gm_twin *twin = gm_twin_find(comm, GM_BARRIER);
    if (!twin)
        return GM_PASS;
    gm_take_begin(twin);
    return gm_take_end(twin, gyre_barrier(twin->comm), GM_BARRIER);
}
