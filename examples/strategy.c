/* A training strategy of one's own: gyre-run -n 4 ./strategy
 *
 * The majority's signs (signSGD with majority vote; Bernstein et al., 2018): each rank keeps a momentum of its
 * gradients and sends its signs alone, a byte for each parameter; all ranks move each parameter by the rate, the way
 * that most of them point. A strategy is a table of functions that gyre_nn_train calls; from what it says about its
 * state, the training loop makes checkpoints, resumes, and compares the ranks. Here are all parts that one needs:
 * settings, open, close, update, arrays. docs/training.md has the others. */
#include <gyre/nn.h>
#include <stdio.h>
#include <stdlib.h>

struct votes {
    struct gyre_nn_run run;
    size_t count;
    float *momentum; /* of this rank: it differs from rank to rank, so it is "local" in arrays */
    int8_t *signs;
};

static void votes_close(void *self)
{
    struct votes *votes = (struct votes *)self;
    free(votes->momentum);
    free(votes->signs);
    free(votes);
}

/* Before the first step. The parameters are rank 0's on every rank already. */
static gyre_status votes_open(const struct gyre_nn_run *run, void **self_p)
{
    struct votes *votes = (struct votes *)calloc(1, sizeof(struct votes));
    if (!votes)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the votes");
    votes->run = *run;
    votes->count = gyre_nn_param_count(run->model);
    votes->momentum = (float *)calloc(votes->count, sizeof(float));
    votes->signs = (int8_t *)calloc(votes->count, 1);
    if (!votes->momentum || !votes->signs) {
        votes_close(votes);
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the votes");
    }
    *self_p = votes;
    return GYRE_SUCCESS;
}

/* After the backward of each step: the model's gradients are sums over this rank's rows. */
static gyre_status votes_update(void *self, const struct gyre_nn_step *step)
{
    struct votes *votes = (struct votes *)self;
    const float *grads = (const float *)gyre_nn_grads(votes->run.model);
    float *params = (float *)gyre_nn_params(votes->run.model), keep = (float)votes->run.settings[0];
    for (size_t i = 0; i < votes->count; i++) {
        votes->momentum[i] = keep * votes->momentum[i] + grads[i];
        votes->signs[i] = (int8_t)((votes->momentum[i] > 0) - (votes->momentum[i] < 0));
    }
    if (votes->run.comm) { /* NULL: one rank */
        gyre_status status = gyre_all_reduce(votes->run.comm, votes->signs, votes->signs, votes->count, GYRE_INT8,
                                             GYRE_SUM);
        if (status != GYRE_SUCCESS)
            return gyre_nn_fail(status, votes->run.comm, "the vote");
    }
    for (size_t i = 0; i < votes->count; i++)
        params[i] -= (float)step->rate * (float)((votes->signs[i] > 0) - (votes->signs[i] < 0));
    return GYRE_SUCCESS;
}

/* What a run that is resumed needs, beside the parameters. */
static gyre_status votes_arrays(void *self, struct gyre_nn_array *arrays, size_t *count_p)
{
    struct votes *votes = (struct votes *)self;
    snprintf(arrays[0].name, sizeof(arrays[0].name), "votes.momentum");
    arrays[0].data = votes->momentum;
    arrays[0].count = votes->count;
    arrays[0].dtype = GYRE_FLOAT32;
    arrays[0].placement = GYRE_NN_LOCAL;
    *count_p = 1;
    return GYRE_SUCCESS;
}

static void check(gyre_status status, const char *text)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "%s\n", text);
    exit(1);
}

int main(void)
{
    static struct gyre_nn_setting settings[2]; /* the list ends with a name of NULL */
    settings[0].name = "keep";
    settings[0].help = "share of the momentum that stays";
    settings[0].value = 0.9;
    settings[0].most = 1;

    static gyre_nn_strategy strategy;
    strategy.size = sizeof(strategy);
    strategy.name = "votes";
    strategy.help = "the majority's signs";
    strategy.settings = settings;
    strategy.open = votes_open;
    strategy.close = votes_close;
    strategy.update = votes_update;
    strategy.arrays = votes_arrays;

    gyre_comm *comm = NULL;
    gyre_nn_dataset *data = NULL;
    gyre_nn_model *model = NULL;
    size_t hidden = 64;
    check(gyre_comm_create(NULL, &comm), gyre_last_error(NULL));
    check(gyre_nn_dataset_open("digits", &data), gyre_nn_last_error());
    check(gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model), gyre_nn_last_error());

    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result;
    options.strategy = &strategy;
    options.settings = "keep=0.8";
    options.epochs = 10;
    options.schedule.rate = 5e-3;
    gyre_status status = gyre_nn_train(model, data, comm, &options, &result);
    check(status, gyre_nn_last_error());
    if (gyre_comm_rank(comm) == 0)
        printf("%d ranks voted in %d steps: %s 93 %% of the test digits are right\n", result.ranks, (int)result.steps,
               result.accuracy > 0.93 ? "more than" : "less than");

    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    gyre_comm_destroy(comm);
    return 0;
}
