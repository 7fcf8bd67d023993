/* Point to point in groups: gyre-run -n 4 ./neighbours
 *
 * A rod is cut into one piece per rank, and warmth flows along it. In every step each rank needs one cell of either
 * neighbour:
 *
 *      rank 0              rank 1              rank 2
 *   [ . . . . ]|g|     |g|[ . . . . ]|g|     |g|[ . . . . ]     g: ghost cells, received
 *           └──────────▶│    │ └──────────────▶│
 *             │◀──────────────┘
 *
 * Two sends and two receives stand in a group: they match in any order, so the order of the sends does
 * not matter. */
#include <gyre/gyre.h>
#include <stdio.h>
#include <stdlib.h>

#define CELLS 4
#define STEPS 50

static void check(gyre_status status, gyre_comm *comm, const char *what)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, gyre_last_error(comm));
    exit(1);
}

/* cell[0] and cell[CELLS + 1] are the ghosts. */
static void exchange(gyre_comm *comm, double *cell)
{
    int left = gyre_comm_rank(comm) - 1, right = gyre_comm_rank(comm) + 1;
    check(gyre_group_begin(), comm, "group_begin");
    if (left >= 0) {
        check(gyre_send(comm, &cell[1], 1, GYRE_FLOAT64, left), comm, "send");
        check(gyre_recv(comm, &cell[0], 1, GYRE_FLOAT64, left), comm, "recv");
    }
    if (right < gyre_comm_size(comm)) {
        check(gyre_send(comm, &cell[CELLS], 1, GYRE_FLOAT64, right), comm, "send");
        check(gyre_recv(comm, &cell[CELLS + 1], 1, GYRE_FLOAT64, right), comm, "recv");
    }
    check(gyre_group_end(), comm, "group_end"); /* waits for all four */
}

static void step(double *cell)
{
    double before = cell[0];
    for (int i = 1; i <= CELLS; i++) {
        double here = cell[i];
        cell[i] = (before + 2 * here + cell[i + 1]) / 4;
        before = here;
    }
}

int main(void)
{
    gyre_comm *comm = NULL;
    check(gyre_comm_create(NULL, &comm), NULL, "meeting");
    int rank = gyre_comm_rank(comm), last = gyre_comm_size(comm) - 1;

    double cell[CELLS + 2] = {0};
    if (rank == 0)
        cell[1] = 1024; /* one end is hot at first */
    for (int i = 0; i < STEPS; i++) {
        if (rank == 0)
            cell[0] = cell[1]; /* the ends lose nothing */
        if (rank == last)
            cell[CELLS + 1] = cell[CELLS];
        exchange(comm, cell);
        step(cell);
    }
    printf("rank %d of %d: %.3f %.3f %.3f %.3f\n", rank, last + 1, cell[1], cell[2], cell[3], cell[4]);
    return gyre_comm_destroy(comm) != GYRE_SUCCESS;
}
