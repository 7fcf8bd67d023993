/* Four ranks that get stuck, for top_test.sh, which diagnoses and ends them.
 *
 *   stop     rank 2 stops itself; the others are in an all_reduce
 *   sleep    rank 2 sleeps outside of gyre
 *   away     rank 2 has started the all_reduce and does not come back to it
 *   chain    0 waits for a message of 1, 1 for one of 2, 2 for one of 3, which sleeps
 *   circle   each waits for a message of the next one
 *   window   rank 2 sleeps outside of gyre; the others get from its part of a window
 *   busy     no rank is stuck
 *
 * The second argument is a folder in which each leaves its process number. */
#include <signal.h>

#include "support/rank.h"

#define ELEMENTS 4000000 /* more tiles than one turn moves */

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    const char *what = argv[1];
    char path[256];
    gyre_comm *comm = rank_begin(220);
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    snprintf(path, sizeof path, "%s/%d", argv[2], rank);
    FILE *file = fopen(path, "w");
    CHECK(file && fprintf(file, "%d\n", (int)getpid()) > 0 && fclose(file) == 0);
    float *x = calloc(ELEMENTS, sizeof *x);
    gyre_request *request = NULL;
    CHECK(x && size == 4);
    OK(comm, gyre_comm_set(comm, "name", "gradients"));
    for (int i = 0; i < 5; i++)
        OK(comm, gyre_all_reduce(comm, x, x, 10, GYRE_FLOAT32, GYRE_SUM));
    if (strcmp(what, "busy") == 0)
        for (;;)
            OK(comm, gyre_all_reduce(comm, x, x, ELEMENTS, GYRE_FLOAT32, GYRE_SUM));
    if (strcmp(what, "window") == 0) {
        gyre_window *window;
        OK(comm, gyre_window_create(comm, x, 4096, &window));
        while (rank == 2)
            sleep(80);
        float got[10];
        for (;;) /* the first may be answered while rank 2 is still in gyre_window_create */
            OK(comm, gyre_window_get(window, got, 10, GYRE_FLOAT32, 2, 0));
    }
    if (strcmp(what, "chain") == 0 || strcmp(what, "circle") == 0) {
        while (strcmp(what, "chain") == 0 && rank == 3)
            sleep(80);
        OK(comm, gyre_recv(comm, x, 10, GYRE_FLOAT32, (rank + 1) % size));
        return 0;
    }
    if (rank == 2 && strcmp(what, "away") == 0)
        OK(comm, gyre_all_reduce_start(comm, x, x, ELEMENTS, GYRE_FLOAT32, GYRE_SUM, &request));
    if (rank == 2 && strcmp(what, "stop") == 0)
        raise(SIGSTOP);
    while (rank == 2)
        sleep(80);
    OK(comm, gyre_all_reduce(comm, x, x, ELEMENTS, GYRE_FLOAT32, GYRE_SUM));
    return 0;
}
