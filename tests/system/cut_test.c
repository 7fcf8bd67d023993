/* One rank of cut_test.sh, which cuts the network in two while all are inside all_reduces: then it tries to go on.
 * Prints "ready"; then the status of its attempt, the number of ranks that went on with it (0: it did not) and the
 * error message. When the file of the first argument is there, the network being whole again, a rank that went on
 * computes further, and one that did not tries again; then it prints the same once more. */
#include "support/rank.h"

static float data[1 << 16];

static gyre_status work(gyre_comm *comm, int calls)
{
    gyre_status status = GYRE_SUCCESS;
    for (int i = 0; status == GYRE_SUCCESS && i != calls; i++)
        status = gyre_all_reduce(comm, data, data, i % 2 ? 1 : sizeof data / sizeof *data, GYRE_FLOAT32, GYRE_SUM);
    return status;
}

static void say(gyre_status status, const gyre_comm *comm)
{
    printf("%s %d %s\n", gyre_status_name(status), status == GYRE_SUCCESS ? gyre_comm_size(comm) : 0,
           gyre_last_error(comm));
    fflush(stdout);
}

static gyre_status go_on(gyre_comm **comm)
{
    gyre_comm *next;
    gyre_status status = gyre_comm_shrink(*comm, &next);
    if (status == GYRE_SUCCESS) {
        gyre_comm_destroy(*comm);
        *comm = next;
    }
    return status;
}

int main(int argc, char **argv)
{
    gyre_comm *comm = rank_begin(120);
    gyre_status status = work(comm, 10);
    CHECK(argc == 2);
    if (status != GYRE_SUCCESS)
        rank_fail("before the cut: %s", gyre_last_error(comm));
    puts("ready");
    fflush(stdout);
    status = work(comm, -1);
    while (status != GYRE_SUCCESS) { /* what fails while they go on is a failure of the new world */
        gyre_comm_revoke(comm);
        status = go_on(&comm);
        if (status != GYRE_SUCCESS)
            break;
        status = work(comm, 200);
    }
    say(status, comm);
    while (access(argv[1], F_OK) != 0)
        usleep(20000);
    status = status == GYRE_SUCCESS ? work(comm, 20) : go_on(&comm);
    say(status, comm);
    while (access(argv[1], F_OK) == 0) /* an end would be a proof that this rank is gone */
        usleep(20000);
    gyre_comm_destroy(comm);
    return 0;
}
