/* Communication behind computation: gyre-run -n 4 ./overlap
 *
 * A gradient is computed piece by piece, the last piece first. As soon as a piece is ready its all_reduce starts; while
 * the next one is computed, gyre_progress moves those that are under way. With GYRE_PROGRESS_THREAD=1 they move by
 * themselves, and gyre_progress is not needed. The requests are waited for just before their results are. */
#include <gyre/gyre.h>
#include <stdio.h>
#include <stdlib.h>

#define PIECES 8
#define PIECE 50000

static void check(gyre_status status, gyre_comm *comm, const char *what)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, gyre_last_error(comm));
    exit(1);
}

/* Something that takes a while. */
static void compute(float *piece, int which, int rank, gyre_comm *comm)
{
    for (int i = 0; i < PIECE; i++) {
        piece[i] = (float)(which + rank + i % 10);
        if (i % 5000 == 0)
            check(gyre_progress(comm), comm, "progress");
    }
}

int main(void)
{
    static float gradient[PIECES][PIECE];
    gyre_request *requests[PIECES];
    gyre_comm *comm = NULL;

    check(gyre_comm_create(NULL, &comm), NULL, "meeting");
    for (int p = PIECES - 1; p >= 0; p--) {
        compute(gradient[p], p, gyre_comm_rank(comm), comm);
        check(gyre_all_reduce_start(comm, gradient[p], gradient[p], PIECE, GYRE_FLOAT32, GYRE_AVERAGE, &requests[p]),
              comm, "all_reduce_start");
    }
    check(gyre_wait_all(requests, PIECES), comm, "wait_all");

    double sum = 0;
    for (int p = 0; p < PIECES; p++)
        for (int i = 0; i < PIECE; i++)
            sum += gradient[p][i];
    printf("rank %d of %d: average of a gradient's elements %g\n", gyre_comm_rank(comm), gyre_comm_size(comm),
           sum / PIECES / PIECE);
    return gyre_comm_destroy(comm) != GYRE_SUCCESS;
}
