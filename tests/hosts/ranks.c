/* A rank of a job on several hosts. "reduce": one all_reduce, and where it ran. "kill RANK": all_reduces without end,
 * until that rank kills itself, after it has printed the time. */
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/rank.h"

#define ROUNDS_BEFORE 20

static void print_place(const gyre_comm *comm)
{
    char network[64] = "", folder[512] = "";
    CHECK(readlink("/proc/self/ns/net", network, sizeof network - 1) > 0 && getcwd(folder, sizeof folder));
    printf("rank %d of %d local %s in %s at %s with %s and %s\n", gyre_comm_rank(comm), gyre_comm_size(comm),
           getenv("LOCAL_RANK"), network, folder, getenv("GYRE_MEET_TIMEOUT"), getenv("HOSTS_TEST"));
    fflush(stdout);
}

static void print_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("failed at %lld%03ld ms\n", (long long)now.tv_sec, now.tv_nsec / 1000000);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    gyre_comm *comm = NULL;
    bool ends = argc == 3 && strcmp(argv[1], "kill") == 0;
    long victim = ends ? atol(argv[2]) : -1;
    CHECK(gyre_comm_create(NULL, &comm) == GYRE_SUCCESS);
    for (int round = 0; round < (ends ? 1000000000 : 1); round++) {
        int64_t sum = gyre_comm_rank(comm) + 1, size = gyre_comm_size(comm);
        if (gyre_all_reduce(comm, &sum, &sum, 1, GYRE_INT64, GYRE_SUM) != GYRE_SUCCESS) {
            fprintf(stderr, "rank %d: %s\n", gyre_comm_rank(comm), gyre_last_error(comm));
            return 1;
        }
        CHECK(sum == size * (size + 1) / 2);
        if (gyre_comm_rank(comm) == victim && round == ROUNDS_BEFORE) {
            print_time();
            usleep(50000); /* the line is on its way */
            raise(SIGKILL);
        }
    }
    print_place(comm);
    return gyre_comm_destroy(comm) != GYRE_SUCCESS;
}
