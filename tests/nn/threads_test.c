/* How many threads BLAS has on ranks that share a host: their part of the cores, or what somebody has asked for. The number
 * is set behind gyre's back first, to one that no sharing would give, so that it shows who has changed it. */
#include <gyre/nn.h>

#include "support/launcher.h"

#define RANKS 2
#define BEFORE 7

extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int threads) __attribute__((weak));

static const char *const variables[] = {"OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS"};

static void shares(const gyre_comm *comm, int wanted, const char *what)
{
    openblas_set_num_threads(BEFORE);
    gyre_nn_share_cores(comm);
    if (openblas_get_num_threads() != wanted)
        rank_fail("%s: BLAS has %d threads instead of %d", what, openblas_get_num_threads(), wanted);
}

/* A run, and a communicator attached to a model, share the cores by themselves. */
static void train(gyre_comm *comm)
{
    gyre_nn_dataset *data;
    gyre_nn_model *model;
    gyre_nn_sync *sync;
    size_t hidden = 8;
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.stop_after = 2;
    OK(comm, gyre_nn_dataset_open("digits", &data));
    OK(comm, gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    OK(comm, gyre_nn_train(model, data, comm, &options, NULL));
    OK(comm, gyre_nn_sync_attach(model, NULL, comm, 0, &sync));
    gyre_nn_sync_detach(sync);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
}

static void asked(int rank)
{
    (void)rank;
    gyre_comm *comm = rank_begin(60);
    shares(comm, 1, "nothing asked for");
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        setenv(variables[i], "3", 1);
        shares(comm, BEFORE, variables[i]);
        setenv(variables[i], "0", 1); /* OpenBLAS takes it for not set */
        shares(comm, 1, variables[i]);
        unsetenv(variables[i]);
    }
    OK(comm, gyre_nn_set_threads(2, 1)); /* gives BLAS one thread, and asks for none */
    OK(comm, gyre_nn_set_threads(1, 1));
    gyre_nn_set_blas_threads(0);
    shares(comm, 1, "nothing asked for yet");
    gyre_nn_set_blas_threads(3);
    train(comm);
    if (openblas_get_num_threads() != 3)
        rank_fail("3 threads were asked for, and BLAS has %d after training", openblas_get_num_threads());
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    if (!openblas_get_num_threads || !openblas_set_num_threads)
        return SKIPPED;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    setenv("LOCAL_WORLD_SIZE", "1024", 1); /* of which each has one core */
    return launch(RANKS, asked, 60, "threads that were asked for") ? 0 : 1;
}
