/* A program of a user that has installed gyre: a world of one rank, one sum, and the version that the header
 * promised. */
#include <stdio.h>
#include <string.h>

#include <gyre/gyre.h>

int main(void)
{
    const gyre_config config = {.size = sizeof config, .world_size = 1, .secret = "a secret of the consumer"};
    gyre_comm *comm = NULL;
    gyre_status status = gyre_comm_create(&config, &comm);
    if (status != GYRE_SUCCESS) {
        fprintf(stderr, "consumer: %s: %s\n", gyre_status_name(status), gyre_last_error(NULL));
        return 1;
    }
    const float input[3] = {1, 2, 3};
    float output[3] = {0, 0, 0};
    status = gyre_all_reduce(comm, input, output, 3, GYRE_FLOAT32, GYRE_SUM);
    if (status != GYRE_SUCCESS || memcmp(input, output, sizeof input) != 0) {
        fprintf(stderr, "consumer: all_reduce of one rank: %s %s\n", gyre_status_name(status), gyre_last_error(comm));
        return 1;
    }
    printf("gyre %s\n", gyre_version());
    return gyre_comm_destroy(comm) != GYRE_SUCCESS;
}
