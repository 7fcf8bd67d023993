/* Meeting through a framework that can talk already: ./exchange
 *
 *   rank 0   rank 1   rank 2        each has a socket to the "framework", here the parent process,
 *      \       |       /            which knows one thing: to collect a piece of every rank and
 *          framework                to give all pieces back to each
 *
 * gyre asks for nothing more than this all-gather of bytes, and uses it only while the ranks meet. A real framework
 * calls its own: MPI_Allgather, a store, an actor's mailbox. */
#include <gyre/gyre.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3

struct framework {
    int socket;
};

static int move(ssize_t (*how)(int, void *, size_t), int socket, void *data, size_t bytes)
{
    char *at = (char *)data;
    while (bytes > 0) {
        ssize_t moved = how(socket, at, bytes);
        if (moved <= 0)
            return -1;
        at += moved;
        bytes -= (size_t)moved;
    }
    return 0;
}

static ssize_t write_some(int socket, void *data, size_t bytes)
{
    return write(socket, data, bytes);
}

/* What gyre calls: `bytes` of mine, and RANKS * bytes of all ranks back, in rank order. 0 is success. */
static int exchange(void *user, const void *mine, void *all, size_t bytes)
{
    struct framework *framework = (struct framework *)user;
    if (move(write_some, framework->socket, &bytes, sizeof(bytes)) != 0 ||
        move(write_some, framework->socket, (void *)mine, bytes) != 0)
        return -1;
    return move(read, framework->socket, all, RANKS * bytes);
}

static int run_rank(int rank, int socket)
{
    struct framework framework = {socket};
    gyre_config config;
    memset(&config, 0, sizeof(config));
    config.size = sizeof(config);
    config.rank = rank;
    config.world_size = RANKS;
    config.exchange = exchange;
    config.exchange_user = &framework;

    gyre_comm *comm = NULL;
    if (gyre_comm_create(&config, &comm) != GYRE_SUCCESS) {
        fprintf(stderr, "meeting: %s\n", gyre_last_error(NULL));
        return 1;
    }
    int sum = 0;
    if (gyre_all_reduce(comm, &rank, &sum, 1, GYRE_INT32, GYRE_SUM) != GYRE_SUCCESS) {
        fprintf(stderr, "all_reduce: %s\n", gyre_last_error(comm));
        return 1;
    }
    printf("rank %d of %d: the ranks add up to %d\n", gyre_comm_rank(comm), gyre_comm_size(comm), sum);
    return gyre_comm_destroy(comm) != GYRE_SUCCESS;
}

/* The parent: rounds of collecting and giving back, until the ranks hang up. */
static int serve(const int *sockets)
{
    size_t bytes;
    while (move(read, sockets[0], &bytes, sizeof(bytes)) == 0) {
        char *all = (char *)malloc(RANKS * bytes);
        for (int r = 0; all && r < RANKS; r++)
            if ((r > 0 && move(read, sockets[r], &bytes, sizeof(bytes)) != 0) ||
                move(read, sockets[r], all + (size_t)r * bytes, bytes) != 0) {
                free(all);
                return -1;
            }
        for (int r = 0; all && r < RANKS; r++)
            if (move(write_some, sockets[r], all, RANKS * bytes) != 0)
                break; /* its end says more than this */
        free(all);
    }
    return 0;
}

int main(void)
{
    int sockets[RANKS], failed = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
            return 1;
        if (fork() == 0) {
            for (int r = 0; r < rank; r++)
                close(sockets[r]);
            close(pair[0]);
            return run_rank(rank, pair[1]);
        }
        close(pair[1]);
        sockets[rank] = pair[0];
    }
    failed |= serve(sockets) != 0;
    for (int rank = 0; rank < RANKS; rank++)
        close(sockets[rank]);
    for (int rank = 0, status; rank < RANKS; rank++)
        failed |= wait(&status) < 0 || status != 0;
    return failed;
}
