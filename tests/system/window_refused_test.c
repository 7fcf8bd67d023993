/* A window whose collective destruction is refused is still there: no rank has gone on without the others, some of
 * which may still be at work in it. It is used on, and destroyed afterwards.
 *
 * No call of a program's causes that, so that the collective is refused from within; linked with the library's
 * objects. */
#include "collectives/engine/request.h"
#include "support/rank.h"

#define LATE 100000 /* microseconds, each rank later than the one before */

gyre_status __real_gy_run_own(struct gyre_comm *comm, const struct gy_call *call);
gyre_status __wrap_gy_run_own(struct gyre_comm *comm, const struct gy_call *call);

static bool refuses;

gyre_status __wrap_gy_run_own(struct gyre_comm *comm, const struct gy_call *call)
{
    if (!refuses || call->collective != GY_BARRIER)
        return __real_gy_run_own(comm, call);
    refuses = false;
    return gy_error_set(&comm->error, GYRE_UNSUPPORTED, -1, "no barrier, says the test");
}

int main(void)
{
    gyre_comm *comm = rank_begin(40);
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm), next = (rank + 1) % size;
    int32_t memory[4] = {0}, value = 10 + rank, sum;
    gyre_window *window;
    OK(comm, gyre_window_create(comm, memory, sizeof memory, &window));
    OK(comm, gyre_window_put(window, &value, 1, GYRE_INT32, next, 0));
    refuses = true;
    usleep((useconds_t)rank * LATE);
    GIVES(GYRE_UNSUPPORTED, comm, gyre_window_destroy(window));
    CHECK(strstr(gyre_last_error(comm), "says the test") != NULL);
    OK(comm, gyre_window_put(window, &value, 1, GYRE_INT32, next, sizeof(int32_t)));
    OK(comm, gyre_window_flush(window, -1));
    OK(comm, gyre_barrier(comm));
    CHECK(memory[0] == 10 + (rank + size - 1) % size && memory[1] == memory[0]);
    OK(comm, gyre_window_destroy(window));
    OK(comm, gyre_all_reduce(comm, &value, &sum, 1, GYRE_INT32, GYRE_SUM));
    CHECK(sum == 10 * size + size * (size - 1) / 2);
    OK(comm, gyre_comm_destroy(comm));
    return 0;
}
