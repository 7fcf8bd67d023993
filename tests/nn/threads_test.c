/* How many threads BLAS has on ranks that share a host: their part of the cores, or the number that was asked for.
 * The number is first set without gyre, to one that no sharing would give, so that every change shows. */
#include <gyre/nn.h>
#include <sched.h>
#include <sys/syscall.h>

#include "support/launcher.h"

#define RANKS 2
#define BEFORE 7

extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int threads) __attribute__((weak));

/* What the library learns of the cores on which a process may run: those of a machine that is not there, where
 * `machine` knows the process. */
static struct cores {
    pid_t process;
    cpu_set_t cores;
} * machine;

__attribute__((visibility("default"))) int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t *cores_p)
{
    pid_t wanted = process ? process : getpid();
    memset(cores_p, 0, bytes);
    for (int i = 0; machine && i < RANKS; i++)
        if (machine[i].process == wanted) {
            memcpy(cores_p, &machine[i].cores, bytes < sizeof machine->cores ? bytes : sizeof machine->cores);
            return 0;
        }
    return syscall(SYS_sched_getaffinity, process, bytes, cores_p) < 0 ? -1 : 0;
}

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

/* Two ranks, each of which has a host of its own, as it were; LOCAL_WORLD_SIZE may count ranks of other
 * communicators. */
static void hosts(int rank)
{
    unsetenv("LOCAL_WORLD_SIZE");
    launch_set_number("GYRE_HOST_ID", 1000 + rank);
    gyre_comm *comm = rank_begin(60);
    shares(comm, BEFORE, "a rank that is alone on its host");
    setenv("LOCAL_WORLD_SIZE", "1024", 1);
    shares(comm, 1, "a communicator of one rank of a host's 1024");
    OK(comm, gyre_comm_destroy(comm));
}

/* A machine of 8 cores, of which rank r has [from, to). */
static void have(gyre_comm *comm, int rank, size_t from, size_t to)
{
    OK(comm, gyre_barrier(comm)); /* no rank reads what is changed */
    CPU_ZERO(&machine[rank].cores);
    for (size_t i = from; i < to; i++)
        CPU_SET(i, &machine[rank].cores);
    machine[rank].process = getpid();
    OK(comm, gyre_barrier(comm));
}

static void bound(int rank)
{
    size_t first = 4 * (size_t)rank;
    gyre_comm *comm = rank_begin(60);
    for (int launcher = 0; launcher < 2; launcher++) {
        unsetenv("LOCAL_WORLD_SIZE");
        if (launcher)
            launch_set_number("LOCAL_WORLD_SIZE", RANKS);
        have(comm, rank, 0, 8);
        shares(comm, 4, "ranks that have all cores");
        have(comm, rank, first, first + 4);
        shares(comm, 4, "a rank that is bound to half of the cores");
        have(comm, rank, first, 8);
        shares(comm, rank == 0 ? 4 : 2, "ranks of which one is bound to cores of the other");
        have(comm, rank, 3, 4);
        shares(comm, 1, "ranks on one core");
    }
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_destroy(comm));
}

int main(void)
{
    if (!openblas_get_num_threads || !openblas_set_num_threads)
        return SKIPPED;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++)
        unsetenv(variables[i]);
    setenv("LOCAL_WORLD_SIZE", "1024", 1); /* of which each has one core */
    bool good = launch(RANKS, asked, 60, "threads that were asked for");
    good = launch(RANKS, hosts, 60, "hosts of one rank") && good;
    machine = launch_share(RANKS * sizeof *machine);
    good = launch(RANKS, bound, 60, "ranks that are bound") && good;
    return good ? 0 : 1;
}
