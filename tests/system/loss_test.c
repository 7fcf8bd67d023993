/* One rank of loss_test.sh, which cuts a host off. The argument says what the rank is doing then:
 *
 *   inside   all_reduce after all_reduce: the links have data under way
 *   idle     rank LATE (second argument) computes until 7 s after the cut, which the file of the third argument tells
 *            it of, before it joins the others, whose links are idle meanwhile
 *
 * Prints "ready" when it may happen, and in the end the status, the time of day in milliseconds, and the error
 * message. */
#include "support/rank.h"

static void say(gyre_status status, const gyre_comm *comm)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    printf("%s %lld %s\n", gyre_status_name(status), (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000,
           gyre_last_error(comm));
    fflush(stdout);
}

static void ready(void)
{
    puts("ready");
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static float data[1 << 18];
    gyre_comm *comm = rank_begin(120);
    bool idle = argc > 3 && strcmp(argv[1], "idle") == 0;
    gyre_status status;

    for (int i = 0; i < 5; i++)
        OK(comm, gyre_all_reduce(comm, data, data, 1 << (4 * i), GYRE_FLOAT32, GYRE_SUM));
    OK(comm, gyre_barrier(comm));
    ready();
    if (idle && gyre_comm_rank(comm) == atoi(argv[2])) {
        while (access(argv[3], F_OK) != 0)
            usleep(10000);
        sleep(7);
    }
    do
        status = gyre_all_reduce(comm, data, data, 1 << 18, GYRE_FLOAT32, GYRE_SUM);
    while (status == GYRE_SUCCESS && !idle);
    say(status, comm);
    gyre_comm_destroy(comm);
    return 0;
}
