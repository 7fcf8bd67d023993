/* N ranks with batch B/N train the model of one rank with batch B, within rounding, unequal shards included; and all
 * ranks hold the same bits. Ranks are forked before anything of gyre or BLAS runs; each meets through a file, and
 * leaves its result in shared memory. */
#include <gyre/nn.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_RANKS 4
#define MOST_PARAMS 4096

struct shared {
    struct gyre_nn_train_result result[MOST_RANKS];
    double params[MOST_RANKS][MOST_PARAMS];
    size_t count;
};

struct trial {
    int ranks;
    size_t batch, accumulate;
    double clip;
    gyre_nn_optimizer_kind kind;
};

/* 61 is divided by no world size here, 3 leaves a rank of four without samples; buckets of 1 KiB cut layers apart. */
static const struct trial trials[] = {
    {2, 64, 1, 0, GYRE_NN_MOMENTUM}, {3, 61, 1, 0, GYRE_NN_MOMENTUM}, {4, 61, 1, 0.5, GYRE_NN_ADAM},
    {4, 3, 1, 0, GYRE_NN_SGD},       {3, 64, 4, 0, GYRE_NN_ADAMW},
};

static gyre_status train(const struct trial *trial, gyre_comm *comm, uint64_t seed, struct shared *shared, int slot)
{
    gyre_nn_model *model = NULL;
    gyre_nn_dataset *data = NULL;
    size_t hidden = 32;
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    options.epochs = 2;
    options.batch = trial->batch;
    options.accumulate = trial->accumulate;
    options.clip_norm = trial->clip;
    options.optimizer = gyre_nn_optimizer_defaults(trial->kind);
    options.bucket_bytes = 1024;
    options.stop_after = 40;
    gyre_status status = gyre_nn_dataset_open("digits", &data);
    status = status ? status : gyre_nn_mlp(64, &hidden, 1, GYRE_NN_TANH, 10, GYRE_FLOAT64, seed, &model);
    status = status ? status : gyre_nn_train(model, data, comm, &options, &shared->result[slot]);
    if (status == GYRE_SUCCESS) {
        shared->count = gyre_nn_param_count(model);
        memcpy(shared->params[slot], gyre_nn_params(model), shared->count * sizeof(double));
    } else {
        fprintf(stderr, "rank %d: %s\n", slot, gyre_nn_last_error());
    }
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    return status;
}

/* Only rank 0 draws from the right seed: the others must get its parameters by the broadcast. */
static int run_rank(const struct trial *trial, int rank, const char *address, struct shared *shared)
{
    gyre_comm *comm = NULL;
    struct gyre_config config = {.size = sizeof(config), .rank = rank, .world_size = trial->ranks, .address = address};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(120);
    if (gyre_comm_create(&config, &comm) != GYRE_SUCCESS) {
        fprintf(stderr, "rank %d: %s\n", rank, gyre_last_error(NULL));
        return 1;
    }
    gyre_status status = train(trial, comm, rank == 0 ? 1 : 99, shared, rank);
    gyre_comm_destroy(comm);
    return status != GYRE_SUCCESS;
}

static bool wait_ranks(const pid_t *pids, int n)
{
    bool ok = true;
    for (int i = 0; i < n; i++) {
        int status = 0;
        ok = waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status) && WEXITSTATUS(status) == 0 && ok;
    }
    return ok;
}

static bool check(const struct trial *trial, const struct shared *many, const struct shared *one)
{
    double largest = 0;
    for (size_t i = 0; i < one->count; i++)
        largest = fmax(largest, fabs(many->params[0][i] - one->params[0][i]));
    bool same = many->count == one->count && one->count > 0;
    for (int r = 1; r < trial->ranks; r++)
        same = same && memcmp(many->params[r], many->params[0], many->count * sizeof(double)) == 0;
    printf("%d ranks, batch %zu, %zu pieces: largest difference to one rank %.3g, loss %.9f and %.9f, ranks %s\n",
           trial->ranks, trial->batch, trial->accumulate, largest, many->result[0].loss, one->result[0].loss,
           same ? "agree" : "DIFFER");
    return same && largest < 1e-9 && many->result[0].steps == one->result[0].steps;
}

static bool run_trial(const struct trial *trial, struct shared *shared)
{
    char folder[] = "/tmp/gyre_nn_sync_XXXXXX", address[64];
    pid_t pids[MOST_RANKS + 1];
    if (!mkdtemp(folder))
        return false;
    snprintf(address, sizeof(address), "file://%s/meet", folder);
    memset(shared, 0, 2 * sizeof(*shared));
    for (int r = 0; r < trial->ranks; r++)
        if ((pids[r] = fork()) == 0)
            _exit(run_rank(trial, r, address, &shared[0]));
    if ((pids[trial->ranks] = fork()) == 0) {
        alarm(120);
        _exit(train(trial, NULL, 1, &shared[1], 0) != GYRE_SUCCESS);
    }
    bool ok = wait_ranks(pids, trial->ranks + 1) && check(trial, &shared[0], &shared[1]);
    unlink(address + strlen("file://"));
    rmdir(folder);
    return ok;
}

int main(void)
{
    bool ok = true;
    struct shared *shared = mmap(NULL, 2 * sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof(trials) / sizeof(trials[0]); i++)
        ok = run_trial(&trials[i], shared) && ok;
    return ok ? 0 : 1;
}
