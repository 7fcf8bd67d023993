/* One-sided access: gyre-run -n 4 ./window
 *
 * Each rank exposes a mailbox of one message per rank. It puts a message into its place in every other rank's mailbox
 * and signals that; the targets make no call for it. A signal arrives after everything that its sender has put before,
 * so a rank whose counter shows all signals reads a complete mailbox.
 *
 * Order of destruction: the window before its memory, the memory before the communicator. */
#include <gyre/gyre.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define WORDS 4  /* of a message */
#define MAIL 0   /* index of the signal */
#define ROUNDS 2 /* a mailbox serves again */

static void check(gyre_status status, gyre_comm *comm, const char *what)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "%s: %s\n", what, gyre_last_error(comm));
    exit(1);
}

int main(void)
{
    gyre_comm *comm = NULL;
    gyre_window *window = NULL;
    void *memory = NULL;

    check(gyre_comm_create(NULL, &comm), NULL, "meeting");
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    size_t bytes = (size_t)size * WORDS * sizeof(int32_t); /* sizes and offsets are in bytes */

    /* Any memory will do. That of gyre_mem_alloc is reached directly by the other processes of this host. */
    check(gyre_mem_alloc(comm, bytes, &memory), comm, "mem_alloc");
    check(gyre_window_create(comm, memory, bytes, &window), comm, "window_create"); /* collective */

    const int32_t(*mailbox)[WORDS] = (const int32_t(*)[WORDS])memory;
    for (int round = 1; round <= ROUNDS; round++) {
        int32_t message[WORDS];
        for (int i = 0; i < WORDS; i++)
            message[i] = 100 * round + 10 * rank + i;
        size_t offset = (size_t)rank * sizeof(message); /* of this rank's place in a mailbox */
        for (int target = 0; target < size; target++) {
            check(gyre_window_put(window, message, WORDS, GYRE_INT32, target, offset), comm, "window_put");
            check(gyre_window_signal(window, target, MAIL), comm, "window_signal");
        }
        check(gyre_window_wait(window, MAIL, (uint64_t)round * (uint64_t)size), comm, "window_wait");

        int sum = 0;
        for (int from = 0; from < size; from++)
            for (int i = 0; i < WORDS; i++)
                sum += mailbox[from][i];
        printf("rank %d of %d, round %d: the messages add up to %d\n", rank, size, round, sum);
        check(gyre_barrier(comm), comm, "barrier"); /* every mailbox is read before the next round writes there */
    }

    check(gyre_window_destroy(window), comm, "window_destroy"); /* collective: no rank touches the memory any more */
    check(gyre_mem_free(comm, memory), comm, "mem_free");
    return gyre_comm_destroy(comm) != GYRE_SUCCESS;
}
