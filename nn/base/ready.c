/* Ranks tell each other whether a stage has failed in which one rank alone may fail. */
#include "base/ready.h"

#include "base/error.h"

#include <gyre/nn.h>
#include <stdio.h>

struct failure {
    int32_t status;
    char sentence[508]; /* bounded, and the same size on every rank */
};

/* Without memory of its own, for that may be what has failed. */
gyre_status gy_nn_agree_ready(gyre_comm *comm, gyre_status status)
{
    int ranks = comm ? gyre_comm_size(comm) : 1;
    if (ranks == 1)
        return status;
    struct failure failure = {.status = (int32_t)status};
    int32_t first = status == GYRE_SUCCESS ? ranks : gyre_comm_rank(comm);
    if (status != GYRE_SUCCESS)
        snprintf(failure.sentence, sizeof(failure.sentence), "%s", gyre_nn_last_error());
    gyre_status sent = gyre_all_reduce(comm, &first, &first, 1, GYRE_INT32, GYRE_MIN);
    if (sent == GYRE_SUCCESS && first == ranks)
        return GYRE_SUCCESS;
    if (sent == GYRE_SUCCESS)
        sent = gyre_broadcast(comm, &failure, &failure, sizeof(failure), GYRE_UINT8, first);
    if (status != GYRE_SUCCESS)
        return status;
    if (sent != GYRE_SUCCESS)
        return gy_nn_fail_comm(sent, comm, "asking whether every rank can go on");
    failure.sentence[sizeof(failure.sentence) - 1] = 0;
    return gy_nn_fail((gyre_status)failure.status, "rank %d: %s", (int)first, failure.sentence);
}
