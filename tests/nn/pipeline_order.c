/* In which order the stages of a pipeline do forwards and backwards: gyre-run -n STAGES nn_pipeline_order MICRO. Rank 0
 * prints a line of f and b for each stage, from one step of a small MLP. The linker puts the functions below in the
 * place of the tape's (--wrap). */
#include <gyre/nn.h>
#include <stdio.h>
#include <stdlib.h>

#define STAGES 8
#define PIECES 200 /* of a stage */

gyre_status __real_gyre_nn_tape_forward(gyre_nn_tape *tape, const void *x, size_t samples, const void **y_p);
gyre_status __wrap_gyre_nn_tape_forward(gyre_nn_tape *tape, const void *x, size_t samples, const void **y_p);
gyre_status __real_gyre_nn_tape_backward(gyre_nn_tape *tape, const void *dy, const void **dx_p);
gyre_status __wrap_gyre_nn_tape_backward(gyre_nn_tape *tape, const void *dy, const void **dx_p);

static char pieces[PIECES];
static size_t count;

static void note(char piece)
{
    if (count + 1 < PIECES)
        pieces[count++] = piece;
}

gyre_status __wrap_gyre_nn_tape_forward(gyre_nn_tape *tape, const void *x, size_t samples, const void **y_p)
{
    note('f');
    return __real_gyre_nn_tape_forward(tape, x, samples, y_p);
}

gyre_status __wrap_gyre_nn_tape_backward(gyre_nn_tape *tape, const void *dy, const void **dx_p)
{
    note('b');
    return __real_gyre_nn_tape_backward(tape, dy, dx_p);
}

static void must(gyre_status status)
{
    if (status == GYRE_SUCCESS)
        return;
    fprintf(stderr, "nn_pipeline_order: %s\n", gyre_nn_last_error());
    exit(1);
}

static void take_step(gyre_comm *comm, gyre_nn_model *model, const gyre_nn_dataset *data, const char *micro)
{
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    struct gyre_nn_batch rows = {.data = data, .rows = data->train, .samples = 4 * strtoul(micro, NULL, 10), .seed = 1};
    struct gyre_nn_step step = {.number = 0, .rate = 1e-3, .global_rows = rows.samples};
    struct gyre_nn_run run;
    char settings[64];
    snprintf(settings, sizeof(settings), "micro=%.8s,balance=estimate", micro);
    must(gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find("pipeline"), settings, 0, 0, &run));
    gyre_nn_zero_grads(model);
    must(run.strategy->compute(run.self, &step, &rows));
    gyre_nn_run_close(&run);
}

int main(int argc, char **argv)
{
    static const size_t widths[] = {40, 24, 16};
    static char all[STAGES][PIECES];
    gyre_comm *comm = NULL;
    gyre_nn_model *model = NULL;
    gyre_nn_dataset *data = NULL;
    if (argc != 2 || gyre_comm_create(NULL, &comm) != GYRE_SUCCESS || gyre_comm_size(comm) > STAGES) {
        fputs("usage: gyre-run -n STAGES nn_pipeline_order MICRO\n", stderr);
        return 2;
    }
    must(gyre_nn_dataset_open("digits", &data));
    must(gyre_nn_mlp(64, widths, 3, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model));
    take_step(comm, model, data, argv[1]);
    if (gyre_all_gather(comm, pieces, all, PIECES, GYRE_UINT8) != GYRE_SUCCESS)
        return 1;
    for (int stage = 0; stage < gyre_comm_size(comm) && gyre_comm_rank(comm) == 0; stage++)
        puts(all[stage]);
    gyre_nn_free(model);
    gyre_nn_dataset_free(data);
    gyre_comm_destroy(comm);
    return 0;
}
