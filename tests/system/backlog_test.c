/* All send to rank 0, which computes meanwhile, for longer than they try to connect: more than its backlog has room
 * for. It is absent, and neither lost nor out of reach. The argument says for how many milliseconds it computes. */
#include "support/rank.h"

int main(int argc, char **argv)
{
    if (argc < 2)
        rank_fail("usage: backlog_test MILLISECONDS");
    gyre_comm *comm = rank_begin(100);
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    long ms = strtol(argv[1], NULL, 10);
    if (rank == 0) {
        nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
    } else {
        usleep((useconds_t)rank *
               50000); /* one after the other: at once the kernel begins with all of them before there is no room */
        OK(comm, gyre_send(comm, &rank, 1, GYRE_INT32, 0));
    }
    for (int from = 1, said = 0; rank == 0 && from < size; from++) {
        OK(comm, gyre_recv(comm, &said, 1, GYRE_INT32, from));
        CHECK(said == from);
    }
    OK(comm, gyre_barrier(comm));
    gyre_comm_destroy(comm);
    return 0;
}
