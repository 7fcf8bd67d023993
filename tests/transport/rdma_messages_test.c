/* Messages in flight over the stand-in, by the public interface: what waits for credit leaves together when that comes,
 * and credit for several messages is given back at once. Two ranks, threads of this process. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gyre/gyre.h>

#include "rdma_check.h"
#include "rdma_stand_in.h"

#define FLIGHT 16
#define BATCHES 60
#define BYTES 24

static char address[64];

/* One way FLIGHT at a time, and a short answer. */
static void batch(gyre_comm *comm, int rank, unsigned number)
{
    unsigned char data[FLIGHT][BYTES], wanted[BYTES];
    gyre_request *requests[FLIGHT];

    for (unsigned i = 0; i < FLIGHT; i++) {
        memset(data[i], rank == 0 ? (int)((number * FLIGHT + i) % 251) : 255, BYTES);
        CHECK((rank == 0 ? gyre_send_start(comm, data[i], BYTES, GYRE_UINT8, 1, &requests[i])
                         : gyre_recv_start(comm, data[i], BYTES, GYRE_UINT8, 0, &requests[i])) == GYRE_SUCCESS);
    }
    for (unsigned i = 0; i < FLIGHT; i++)
        CHECK(gyre_wait(&requests[i]) == GYRE_SUCCESS);
    for (unsigned i = 0; i < FLIGHT && rank == 1; i++) {
        memset(wanted, (int)((number * FLIGHT + i) % 251), BYTES);
        CHECK(memcmp(data[i], wanted, BYTES) == 0);
    }
    CHECK((rank == 0 ? gyre_recv(comm, data, 1, GYRE_UINT8, 1) : gyre_send(comm, data, 1, GYRE_UINT8, 0)) ==
          GYRE_SUCCESS);
}

static void *run(void *argument)
{
    int rank = argument != NULL;
    gyre_config config = {.size = sizeof(config),
                          .rank = rank,
                          .world_size = 2,
                          .address = address,
                          .secret = "the secret of the stand-in"};
    gyre_comm *comm = NULL;
    uint64_t before = 0;

    CHECK(gyre_comm_create(&config, &comm) == GYRE_SUCCESS);
    for (unsigned number = 0; number < BATCHES + 2; number++) {
        if (number == 2)
            before = stand_in_count().sends;
        batch(comm, rank, number);
    }
    uint64_t sends = stand_in_count().sends - before;
    if (rank == 0) {
        printf("%.1f requests for %d messages and an answer\n", (double)sends / BATCHES, FLIGHT);
        CHECK(sends < BATCHES * 22); /* each by itself, with credit for every other one, it would be 25 */
    }
    CHECK(gyre_barrier(comm) == GYRE_SUCCESS && gyre_comm_destroy(comm) == GYRE_SUCCESS);
    return NULL;
}

int main(void)
{
    pthread_t other;

    alarm(220);
    setenv("GYRE_TRANSPORT", "rdma", 1);
    gy_verbs_use(&stand_in_verbs);
    stand_in_reset(1);
    snprintf(address, sizeof(address), "file:///tmp/gyre-rdma-messages-%d", (int)getpid());
    CHECK(pthread_create(&other, NULL, run, address) == 0);
    run(NULL);
    CHECK(pthread_join(other, NULL) == 0);
    unlink(address + strlen("file://"));
    CHECK(stand_in_count().not_ready == 0);
    return 0;
}
