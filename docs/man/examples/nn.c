/* The examples of the manual pages of nn.h. Each function here is one example; docs/man/pages.py puts it on the page of
 * every public function that it calls, where there are several the shortest one. The test manual.examples.nn compiles this
 * file with warnings as errors and runs it: gyre-run -n 2 ./manual_nn. A comment that begins with names of functions and a
 * colon says that this is the example of theirs, however long. */
#include <gyre/nn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- examples ---- */

/* gyre_nn_input, gyre_nn_dense, gyre_nn_cost, gyre_nn_new: A chain of layers, and the model that it becomes. */
static gyre_status classifier(gyre_nn_model **model_p)
{
    gyre_nn_layer *net = gyre_nn_input(64); /* a call that fails gives NULL, and the next one takes it */
    net = gyre_nn_dense(net, 32, GYRE_NN_RELU);
    net = gyre_nn_cost(net, 10, GYRE_NN_CROSS_ENTROPY);
    return gyre_nn_new(net, GYRE_FLOAT32, /*seed*/ 1, model_p); /* frees the chain in every case */
}

static gyre_status small_lstm(gyre_nn_model **model_p)
{
    gyre_nn_layer *net = gyre_nn_input_sequence(/*steps*/ 8, /*features*/ 1);
    net = gyre_nn_embedding(net, /*symbols*/ 20, 16);
    net = gyre_nn_lstm(net, 16);
    net = gyre_nn_dropout(net, 0.1);
    net = gyre_nn_cost(net, 20, GYRE_NN_CROSS_ENTROPY);
    return gyre_nn_new(net, GYRE_FLOAT32, 1, model_p);
}

static gyre_status attention_block(gyre_nn_model **model_p)
{
    gyre_nn_layer *net = gyre_nn_input_sequence(8, 16);
    gyre_nn_layer *below = net = gyre_nn_position(net);
    net = gyre_nn_layer_norm(net);
    net = gyre_nn_attention(net, /*heads*/ 2, /*causal*/ true);
    net = gyre_nn_residual(net, below);
    net = gyre_nn_activate(net, GYRE_NN_GELU);
    net = gyre_nn_cost(net, 4, GYRE_NN_CROSS_ENTROPY);
    return gyre_nn_new(net, GYRE_FLOAT32, 1, model_p);
}

/* Two branches of one input, brought together; the second is also an autoencoder. */
static gyre_status two_branches(gyre_nn_model **model_p)
{
    gyre_nn_layer *input = gyre_nn_input(24);
    gyre_nn_layer *left = gyre_nn_slice(input, input, /*first*/ 0, /*steps*/ 2, /*features*/ 8);
    gyre_nn_layer *data = gyre_nn_slice(left, input, /*first*/ 16, /*steps*/ 1, /*features*/ 8);
    gyre_nn_layer *code = gyre_nn_dense(data, 8, GYRE_NN_TANH);
    gyre_nn_layer *again = gyre_nn_dense(code, 8, GYRE_NN_IDENTITY);
    gyre_nn_layer *net = gyre_nn_reconstruct(again, code, data);
    net = gyre_nn_join(net, left);
    net = gyre_nn_cost(net, 4, GYRE_NN_CROSS_ENTROPY);
    return gyre_nn_new(net, GYRE_FLOAT32, 1, model_p);
}

/* Gray images of 8 x 8 pixels: two convolutions, each of which halves the image. */
static gyre_status small_images(gyre_nn_model **model_p)
{
    gyre_nn_layer *net = gyre_nn_input_image(/*height*/ 8, /*width*/ 8, /*channels*/ 1);
    net = gyre_nn_conv2d(net, /*channels*/ 8, /*kernel*/ 3, /*stride*/ 1, /*padding*/ 1, /*bias*/ false);
    net = gyre_nn_activate(gyre_nn_batch_norm(net), GYRE_NN_RELU);
    net = gyre_nn_max_pool2d(net, /*kernel*/ 2, /*stride*/ 2);
    net = gyre_nn_conv2d(net, 16, 3, /*stride*/ 2, 1, /*bias*/ true);
    net = gyre_nn_flatten(net); /* 2 x 2 pixels of 16 channels */
    net = gyre_nn_cost(net, 10, GYRE_NN_CROSS_ENTROPY);
    return gyre_nn_new(net, GYRE_FLOAT32, 1, model_p);
}

/* The same by one call, with a dense layer; `data` know the shape of their images. */
static gyre_status convolutional(const gyre_nn_dataset *data, gyre_nn_model **model_p)
{
    const size_t channels[] = {8, 16}, hidden[] = {32};
    return gyre_nn_cnn(&data->image, channels, 2, hidden, 1, /*dropout*/ 0.1, data->classes, GYRE_FLOAT32, /*seed*/ 1,
                       model_p);
}

/* Parameters that training moves by their gradients, without the statistics of batch norms. */
static size_t count_trained(const gyre_nn_model *model)
{
    size_t count = gyre_nn_param_count(model);
    for (size_t i = 0; i < gyre_nn_tensor_count(model); i++)
        if (gyre_nn_tensor_is_statistic(model, i))
            count -= gyre_nn_tensor(model, i)->cols;
    return count;
}

static void drop_chain(void)
{
    gyre_nn_layer *net = gyre_nn_dense(gyre_nn_input(4), 2, GYRE_NN_TANH);
    gyre_nn_layer_free(net); /* of no model */
}

static gyre_status perceptron(gyre_nn_model **model_p)
{
    const size_t hidden[] = {32, 16};
    return gyre_nn_mlp(64, hidden, 2, GYRE_NN_RELU, 10, GYRE_FLOAT32, /*seed*/ 1, model_p);
}

static gyre_status autoencoder(gyre_nn_model **model_p)
{
    const size_t hidden[] = {32, 8}; /* 8 is the code */
    return gyre_nn_autoencoder(64, hidden, 2, GYRE_NN_TANH, GYRE_FLOAT32, /*seed*/ 1, model_p);
}

static gyre_status text_models(const gyre_nn_dataset *text, gyre_nn_model **lstm_p, gyre_nn_model **transformer_p)
{
    const size_t hidden[] = {32};
    gyre_status status = gyre_nn_character_lstm(text->features, text->classes, 16, hidden, 1, /*dropout*/ 0,
                                                GYRE_FLOAT32, 1, lstm_p);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_transformer(text->features, text->classes, /*width*/ 16, /*heads*/ 2, /*blocks*/ 1, 0,
                                     GYRE_FLOAT32, 1, transformer_p);
    return status;
}

static gyre_status recommender(const struct gyre_nn_sessions *how, gyre_nn_model **model_p)
{
    return gyre_nn_recommender(how->steps, how->items, how->features, /*width*/ 16, /*hidden*/ 32, /*heads*/ 2,
                               GYRE_FLOAT32, 1, model_p);
}

/* Where the recommender looked in the last forward. */
static gyre_status print_attention(const gyre_nn_model *model, size_t sample)
{
    double weights[16];
    size_t count;
    gyre_status status = gyre_nn_attention_weights(model, sample, /*step*/ 0, weights, 16, &count);
    for (size_t i = 0; status == GYRE_SUCCESS && i < count && i < 16; i++)
        printf("%.2f%c", weights[i], i + 1 < count ? ' ' : '\n');
    return status;
}

static gyre_status show(gyre_status status, const char *what)
{
    if (status != GYRE_SUCCESS)
        fprintf(stderr, "%s: %s\n", what, gyre_nn_last_error());
    return status;
}

/* In a function of one's own that stands beside gyre-nn's. */
static gyre_status vote(gyre_comm *comm, int8_t *signs, size_t count)
{
    gyre_status status = gyre_all_reduce(comm, signs, signs, count, GYRE_INT8, GYRE_SUM);
    return status == GYRE_SUCCESS ? status : gyre_nn_fail(status, comm, "the vote");
}

static void print_model(const gyre_nn_model *model)
{
    printf("%zu inputs, %zu outputs at %zu steps, %zu parameters of %s%s\n", gyre_nn_inputs(model),
           gyre_nn_outputs(model), gyre_nn_output_steps(model), gyre_nn_param_count(model),
           gyre_dtype_name(gyre_nn_dtype(model)),
           gyre_nn_cost_of(model) == GYRE_NN_RECONSTRUCTION ? ", autoencoder" : "");
    for (size_t i = 0; i < gyre_nn_tensor_count(model); i++) {
        const struct gyre_nn_tensor *tensor = gyre_nn_tensor(model, i);
        printf("  %s: %zu x %zu at %zu\n", tensor->name, tensor->rows, tensor->cols, tensor->offset);
    }
}

static float largest_gradient(const gyre_nn_model *model)
{
    const float *params = gyre_nn_params(model), *grads = gyre_nn_grads(model); /* a model of float32 */
    float most = 0;
    for (size_t i = 0; i < gyre_nn_param_count(model); i++)
        most = fmaxf(most, fabsf(grads[i]) / (1 + fabsf(params[i])));
    return most;
}

static bool same_model(const gyre_nn_model *one, const gyre_nn_model *other)
{
    return gyre_nn_params_hash(one) == gyre_nn_params_hash(other);
}

static gyre_status try_on_copy(const gyre_nn_model *model, gyre_status (*use)(gyre_nn_model *))
{
    gyre_nn_model *copy;
    gyre_status status = gyre_nn_clone(model, &copy);
    if (status != GYRE_SUCCESS)
        return status;
    status = use(copy);
    gyre_nn_free(copy); /* after its optimisers and syncs */
    return status;
}

static void *gradients_of_own(gyre_nn_model *model)
{
    void *memory = malloc(gyre_nn_param_count(model) * sizeof(float)); /* outlives its use */
    if (memory)
        gyre_nn_place_grads(model, memory);
    return memory;
}

/* gyre_nn_forward, gyre_nn_evaluate, gyre_nn_backward, gyre_nn_train_mode, gyre_nn_zero_grads: A step by hand. */
static gyre_status step_by_hand(gyre_nn_model *model, const float *x, const int32_t *labels, size_t samples,
                                double *cost_p)
{
    gyre_nn_train_mode(model, /*seed*/ 1, /*step*/ 0, /*first*/ 0);
    gyre_nn_zero_grads(model);
    gyre_status status = gyre_nn_forward(model, x, samples, NULL); /* x is read until backward */
    if (status == GYRE_SUCCESS)
        status = gyre_nn_evaluate(model, labels, NULL, cost_p, NULL);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_backward(model, NULL, NULL); /* adds to gyre_nn_grads */
    return status;
}

static gyre_status right_answers(gyre_nn_model *model, const float *x, const int32_t *labels, size_t samples,
                                 size_t *correct_p)
{
    double cost;
    gyre_nn_test_mode(model);
    gyre_status status = gyre_nn_forward(model, x, samples, NULL);
    return status == GYRE_SUCCESS ? gyre_nn_evaluate(model, labels, NULL, &cost, correct_p) : status;
}

/* As gyre_nn_zero_grads before a backward through the whole model, and cheaper. */
static gyre_status first_backward(gyre_nn_model *model)
{
    gyre_nn_renew_grads(model);
    return gyre_nn_backward(model, NULL, NULL);
}

/* The place that halves the work of a model. */
static size_t middle(const gyre_nn_model *model)
{
    size_t last = gyre_nn_module_count(model), best = last;
    double half = gyre_nn_cut_work(model, last) / 2, least = half;
    for (size_t place = 1; place < last; place++) {
        double distance = fabs(gyre_nn_cut_work(model, place) - half);
        if (gyre_nn_cut_values(model, place) > 0 && distance < least) { /* 0: it may not be cut there */
            best = place;
            least = distance;
        }
    }
    return best;
}

static void print_cut(const gyre_nn_model *model, size_t place)
{
    printf("below %zu: %zu parameters, %g elements kept, %zu values of %zu elements cross%s\n", place,
           gyre_nn_cut_offset(model, place), gyre_nn_cut_memory(model, place), gyre_nn_cut_values(model, place),
           gyre_nn_value_size(model, place),
           gyre_nn_value_used(model, 0, place, gyre_nn_module_count(model)) ? ", and the input is used above" : "");
}

/* gyre_nn_tape_create, gyre_nn_tape_forward, gyre_nn_tape_evaluate, gyre_nn_tape_backward, gyre_nn_tape_free: Two stages
 * of a model, one after the other. */
static gyre_status two_stages(gyre_nn_model *model, size_t cut, const float *x, const int32_t *labels, size_t samples)
{
    gyre_nn_tape *lower = NULL, *upper = NULL;
    const void *y, *dy;
    gyre_status status = gyre_nn_tape_create(model, 0, cut, &lower);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_tape_create(model, cut, gyre_nn_module_count(model), &upper);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_tape_forward(lower, x, samples, &y);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_tape_forward(upper, y, samples, NULL);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_tape_evaluate(upper, labels, NULL, NULL);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_tape_backward(upper, NULL, &dy);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_tape_backward(lower, dy, NULL);
    gyre_nn_tape_free(lower);
    gyre_nn_tape_free(upper); /* before the model */
    return status;
}

/* A stage whose values are named by number: x is value `first`, y value `last`, dy its gradient. */
static gyre_status stage_by_values(gyre_nn_tape *tape, size_t first, size_t last, const void *x, size_t samples,
                                   const void *dy, const void **dx_p)
{
    gyre_nn_tape_set_input(tape, first, x); /* forward's own x is NULL then */
    gyre_status status = gyre_nn_tape_forward(tape, NULL, samples, NULL);
    if (status != GYRE_SUCCESS)
        return status;
    printf("value %zu: %s, side cost %g\n", last, gyre_nn_tape_output(tape, last) ? "there" : "not made here",
           gyre_nn_tape_side_cost(tape));
    gyre_nn_tape_add_gradient(tape, last, dy);
    status = gyre_nn_tape_backward(tape, NULL, NULL);
    *dx_p = gyre_nn_tape_input_gradient(tape, first); /* NULL of the model's input */
    return status;
}

static gyre_status use_cores(const gyre_comm *comm, bool two_levels)
{
    gyre_nn_share_cores(comm); /* BLAS: the ranks of this host divide its cores */
    if (!two_levels)
        return GYRE_SUCCESS;
    gyre_nn_set_blas_threads(1);
    return gyre_nn_set_threads(/*samples*/ 2, /*neurons*/ 1); /* 1 and 1: none again */
}

static gyre_status print_size(const char *name)
{
    gyre_nn_dataset *data;
    gyre_status status = gyre_nn_dataset_open(name, &data); /* "digits", "csv:FILE", ... */
    if (status != GYRE_SUCCESS)
        return status;
    printf("%s: %zu samples of %zu values, %zu classes\n", name, data->samples, data->features, data->classes);
    gyre_nn_dataset_free(data);
    return GYRE_SUCCESS;
}

static gyre_status open_text(const char *path, gyre_nn_dataset **data_p)
{
    return gyre_nn_text_open(path, /*steps*/ 16, data_p);
}

static gyre_status draw_sessions(gyre_nn_dataset **data_p)
{
    struct gyre_nn_sessions how = gyre_nn_sessions_defaults();
    how.samples = 200;
    how.seed = 2;
    gyre_status status = gyre_nn_sessions_open(&how, data_p);
    if (status == GYRE_SUCCESS)
        printf("the answer of sample 0 rests on item %zu\n", gyre_nn_sessions_cause(&how, (*data_p)->x));
    return status;
}

/* This rank's part of the first batch of an epoch. */
static size_t part_of_batch(const gyre_nn_dataset *data, const gyre_comm *comm, size_t batch, float *x, int32_t *labels)
{
    size_t first, count;
    uint32_t *order = malloc(data->ntrain * sizeof(*order)), *rows = malloc(batch * sizeof(*rows));
    if (!order || !rows)
        abort();
    gyre_nn_shuffle(/*seed*/ 1, /*epoch*/ 0, order, data->ntrain); /* the same on every rank */
    gyre_nn_shard(batch, gyre_comm_rank(comm), gyre_comm_size(comm), &first, &count);
    for (size_t i = 0; i < count; i++)
        rows[i] = data->train[order[first + i]];
    gyre_nn_dataset_gather(data, rows, count, GYRE_FLOAT32, x, labels);
    free(order);
    free(rows);
    return count;
}

static gyre_status move_all(gyre_nn_model *model, double rate, size_t samples)
{
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_ADAM);
    gyre_nn_optimizer *optimizer;
    gyre_status status = gyre_nn_optimizer_create(model, &config, &optimizer);
    if (status != GYRE_SUCCESS)
        return status;
    gyre_nn_optimizer_begin(optimizer); /* one step */
    gyre_nn_optimizer_update(optimizer, 0, gyre_nn_param_count(model), rate, 1.0 / (double)samples);
    gyre_nn_optimizer_free(optimizer); /* before the model */
    return GYRE_SUCCESS;
}

/* Of the parameters of one rank, whose number and first one gyre_nn_shard gives. */
static gyre_status optimizer_of_shard(gyre_nn_model *model, const gyre_comm *comm, gyre_nn_optimizer **optimizer_p)
{
    size_t first, count;
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_MOMENTUM);
    gyre_nn_shard(gyre_nn_param_count(model), gyre_comm_rank(comm), gyre_comm_size(comm), &first, &count);
    return gyre_nn_optimizer_create_part(model, &config, first, count, optimizer_p);
}

static void copy_state(gyre_nn_optimizer *to, const gyre_nn_optimizer *from, size_t count)
{
    if (gyre_nn_optimizer_get_kind(to) != gyre_nn_optimizer_get_kind(from))
        return;
    for (int slot = 0; slot < 2; slot++)
        if (gyre_nn_optimizer_state(from, slot)) /* NULL: it has none */
            memcpy(gyre_nn_optimizer_state(to, slot), gyre_nn_optimizer_state(from, slot), count * sizeof(float));
    gyre_nn_optimizer_set_steps(to, gyre_nn_optimizer_steps(from));
}

static double rate_of(uint64_t step)
{
    struct gyre_nn_schedule schedule = {.kind = GYRE_NN_COSINE, .rate = 1e-3, .warmup = 10, .total = 1000};
    return gyre_nn_schedule_rate(&schedule, step);
}

/* gyre_nn_sync_attach, gyre_nn_sync_begin, gyre_nn_sync_passed, gyre_nn_sync_finish, gyre_nn_sync_detach: A step of data
 * parallelism by hand: buckets leave during backward. */
static gyre_status parallel_step(gyre_nn_model *model, gyre_nn_optimizer *optimizer, gyre_comm *comm, const float *x,
                                 const int32_t *labels, size_t mine, size_t batch)
{
    gyre_nn_sync *sync;
    gyre_status status = gyre_nn_sync_attach(model, optimizer, comm, /*bucket_bytes*/ 4096, &sync); /* collective */
    if (status != GYRE_SUCCESS)
        return status;
    gyre_nn_sync_begin(sync);
    gyre_nn_zero_grads(model);
    status = gyre_nn_forward(model, x, mine, NULL);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_evaluate(model, labels, NULL, NULL, NULL);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_backward(model, gyre_nn_sync_passed, sync);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_sync_finish(sync, /*rate*/ 1e-3, batch, /*clip_norm*/ 0); /* waits, and moves the parameters */
    gyre_nn_sync_detach(sync); /* before the optimiser, the model and the communicator */
    return status;
}

/* A step's communication behind the forward of the next one. */
static gyre_status forward_ahead(gyre_nn_sync *sync, gyre_nn_model *model, const float *x, size_t mine, size_t batch)
{
    gyre_nn_sync_ahead(sync, true);
    gyre_status status = gyre_nn_sync_finish(sync, 1e-3, batch, 0); /* does not wait now */
    if (status == GYRE_SUCCESS)
        status = gyre_nn_forward(model, x, mine, NULL); /* each layer waits for its own parameters */
    return status == GYRE_SUCCESS ? gyre_nn_settle(model) : status;
}

static gyre_status add_up_gradients(gyre_nn_sync *sync)
{
    for (size_t i = 0; i < gyre_nn_sync_bucket_count(sync); i++) {
        size_t first, count;
        gyre_nn_sync_bucket(sync, i, &first, &count);
        printf("bucket %zu: parameters %zu to %zu\n", i, first, first + count);
    }
    gyre_nn_sync_begin(sync);
    return gyre_nn_sync_reduce(sync); /* without an optimiser: sums stay in gyre_nn_grads */
}

/* gyre_nn_trace_create, gyre_nn_trace_attach, gyre_nn_trace_write, gyre_nn_trace_free: A timeline for chrome://tracing. */
static gyre_status trace_of(gyre_nn_model *model, gyre_comm *comm, gyre_status (*use)(gyre_nn_model *),
                            const char *path)
{
    gyre_nn_trace *trace;
    gyre_status status = gyre_nn_trace_create(/*spans*/ 10000, &trace);
    if (status != GYRE_SUCCESS)
        return status;
    gyre_nn_trace_attach(model, trace);
    status = use(model);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_trace_write(trace, comm, path); /* collective; rank 0 writes */
    gyre_nn_trace_attach(model, NULL);
    gyre_nn_trace_free(trace);
    return status;
}

static void print_strategies(void)
{
    const gyre_nn_strategy *strategy;
    for (size_t i = 0; (strategy = gyre_nn_strategy_at(i)); i++)
        printf("%s: %s\n", strategy->name, strategy->help);
}

static gyre_status settings_of(const char *name, const char *text, double values[GYRE_NN_MOST_SETTINGS])
{
    const gyre_nn_strategy *strategy = gyre_nn_strategy_find(name); /* NULL: there is none of that name */
    return gyre_nn_strategy_parse(strategy, text, values);
}

static gyre_status write_and_read(const char *path, gyre_nn_model *model, gyre_nn_optimizer *optimizer)
{
    struct gyre_nn_position position = {.seed = 1, .step = 10};
    gyre_status status = gyre_nn_checkpoint_write(path, model, optimizer, &position); /* path is whole at any time */
    return status == GYRE_SUCCESS ? gyre_nn_checkpoint_read(path, model, optimizer, &position) : status;
}

/* The state of a strategy as well: here one array, of this rank alone. */
static gyre_status write_and_read_own(const char *path, gyre_nn_model *model, float *momentum, size_t count)
{
    struct gyre_nn_position position = {.seed = 1, .step = 10};
    struct gyre_nn_array array = {"votes.momentum", momentum, count, GYRE_FLOAT32, GYRE_NN_LOCAL};
    gyre_status status = gyre_nn_checkpoint_write_arrays(path, model, NULL, &position, "votes", /*ranks*/ 1, &array, 1);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_checkpoint_read_arrays(path, model, NULL, &position, "votes", 1, &array, 1);
    return status;
}

/* The frame of a training loop of one's own; nn/train/train.c is the whole. */
static gyre_status run_by_hand(gyre_nn_model *model, gyre_comm *comm, const char *path)
{
    struct gyre_nn_run run;
    struct gyre_nn_position position = {.seed = 1};
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_ADAM);
    gyre_status status = gyre_nn_run_open(model, comm, &config, gyre_nn_strategy_find("average"), NULL, 0, 0, &run);
    if (status != GYRE_SUCCESS)
        return status;
    /* ... steps: run.strategy's hooks ... */
    status = gyre_nn_run_save(&run, path, &position); /* collective; rank 0 writes */
    if (status == GYRE_SUCCESS)
        status = gyre_barrier(comm);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_run_resume(&run, path, &position);
    if (status == GYRE_SUCCESS)
        status = gyre_nn_run_compare(&run); /* GYRE_MISMATCH: ranks differ */
    if (status == GYRE_SUCCESS)
        status = gyre_nn_run_show(&run); /* the consensus is in the model ... */
    gyre_nn_run_hide(&run);              /* ... and this rank's own parameters again */
    gyre_nn_run_close(&run);             /* before the model and the communicator */
    return status;
}

static gyre_status train(gyre_nn_model *model, const gyre_nn_dataset *data, gyre_comm *comm)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result;
    options.epochs = 5;
    gyre_status status = gyre_nn_train(model, data, comm, &options, &result); /* comm NULL: one rank */
    if (status == GYRE_SUCCESS)
        printf("accuracy %.3f after %d steps\n", result.accuracy, (int)result.steps);
    return status;
}

static gyre_status accuracy_of(gyre_nn_model *model, const gyre_nn_dataset *data, gyre_comm *comm, double *accuracy_p)
{
    double loss;
    return gyre_nn_test(model, data, data->test, data->ntest, comm, &loss, accuracy_p);
}

/* Goes on without the ranks that die; *comm is then the communicator of those that are left. */
static gyre_status train_elastic(gyre_nn_model *model, const gyre_nn_dataset *data, gyre_comm **comm)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_elastic elastic = {.size = sizeof(elastic), .least = 1};
    options.epochs = 1;
    return gyre_nn_train_elastic(model, data, comm, &options, &elastic, NULL);
}

static gyre_status print_overlap(const gyre_nn_model *model, const gyre_nn_dataset *data, gyre_comm *comm)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_overlap overlap;
    gyre_status status = gyre_nn_measure_overlap(model, data, comm, &options, /*rounds*/ 3, &overlap);
    if (status == GYRE_SUCCESS)
        printf("%.2f of the communication is hidden\n", overlap.hidden);
    return status;
}

/* ---- the test ---- */

#define BATCH 32

static int failures;
static gyre_nn_dataset *digits;
static float x[BATCH * 64];
static int32_t labels[BATCH];

#define RUN(call)                                \
    do {                                         \
        if (show((call), #call) != GYRE_SUCCESS) \
            failures++;                          \
    } while (0)
#define EXPECT(condition)                                \
    do {                                                 \
        if (!(condition)) {                              \
            failures++;                                  \
            fprintf(stderr, "not so: %s\n", #condition); \
        }                                                \
    } while (0)

static gyre_status one_step(gyre_nn_model *model)
{
    double cost;
    return step_by_hand(model, x, labels, BATCH / 2, &cost);
}

static void run_models(gyre_comm *comm)
{
    gyre_nn_model *model[10] = {NULL};
    gyre_nn_dataset *text = NULL, *sessions = NULL;
    struct gyre_nn_sessions how = gyre_nn_sessions_defaults();
    char path[] = "/tmp/gyre-manual-XXXXXX";
    int file = mkstemp(path);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream)
        abort();
    for (int i = 0; i < 400; i++)
        fputs("abracadabra ", stream);
    fclose(stream);
    RUN(small_lstm(&model[0]));
    RUN(attention_block(&model[1]));
    RUN(two_branches(&model[2]));
    drop_chain();
    RUN(perceptron(&model[3]));
    RUN(autoencoder(&model[4]));
    RUN(open_text(path, &text));
    RUN(text_models(text, &model[5], &model[6]));
    RUN(draw_sessions(&sessions));
    RUN(recommender(&how, &model[7]));
    RUN(gyre_nn_forward(model[7], sessions->x, 2, NULL));
    RUN(print_attention(model[7], 1));
    RUN(small_images(&model[8]));
    RUN(convolutional(digits, &model[9]));
    EXPECT(count_trained(model[9]) == gyre_nn_param_count(model[9]) - 2 * (8 + 16));
    for (int i = 0; i < 10; i++) {
        print_model(model[i]);
        gyre_nn_free(model[i]);
    }
    gyre_nn_dataset_free(text);
    gyre_nn_dataset_free(sessions);
    remove(path);
    int8_t signs[1] = {1};
    RUN(vote(comm, signs, 1));
    EXPECT(signs[0] == 2);
}

static void run_steps(gyre_nn_model *model)
{
    double cost;
    size_t correct = BATCH + 1;
    const void *dx;
    RUN(step_by_hand(model, x, labels, BATCH / 2, &cost));
    EXPECT(cost > 0 && largest_gradient(model) > 0);
    RUN(right_answers(model, x, labels, BATCH / 2, &correct));
    EXPECT(correct <= BATCH / 2);
    RUN(first_backward(model));
    RUN(try_on_copy(model, one_step));
    EXPECT(same_model(model, model));
    void *memory = gradients_of_own(model);
    EXPECT(memory && gyre_nn_grads(model) == memory);
    gyre_nn_place_grads(model, NULL);
    free(memory);
    size_t cut = middle(model);
    print_cut(model, cut);
    EXPECT(cut > 0 && cut < gyre_nn_module_count(model));
    RUN(two_stages(model, cut, x, labels, BATCH / 2));
    gyre_nn_tape *tape = NULL;
    RUN(gyre_nn_tape_create(model, 0, cut, &tape));
    float *dy = calloc(BATCH / 2 * gyre_nn_value_size(model, cut), sizeof(float));
    RUN(stage_by_values(tape, 0, cut, x, BATCH / 2, dy, &dx));
    free(dy);
    gyre_nn_tape_free(tape);
}

static void run_sync(gyre_nn_model *model, gyre_comm *comm)
{
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_ADAM);
    gyre_nn_optimizer *optimizer = NULL, *other = NULL, *shard = NULL;
    gyre_nn_sync *sync = NULL;
    RUN(move_all(model, 1e-3, BATCH));
    RUN(gyre_nn_optimizer_create(model, &config, &optimizer));
    RUN(gyre_nn_optimizer_create(model, &config, &other));
    RUN(optimizer_of_shard(model, comm, &shard));
    gyre_nn_optimizer_begin(optimizer);
    copy_state(other, optimizer, gyre_nn_param_count(model));
    EXPECT(gyre_nn_optimizer_steps(other) == 1);
    EXPECT(rate_of(0) > 0 && rate_of(0) < rate_of(9));
    RUN(parallel_step(model, optimizer, comm, x, labels, BATCH / 2, BATCH));
    RUN(gyre_nn_sync_attach(model, optimizer, comm, 4096, &sync));
    RUN(add_up_gradients(sync));
    gyre_nn_sync_begin(sync);
    RUN(one_step(model));
    RUN(forward_ahead(sync, model, x, BATCH / 2, BATCH));
    gyre_nn_sync_detach(sync);
    char path[64];
    snprintf(path, sizeof(path), "/tmp/gyre-manual-%d.safetensors", gyre_comm_rank(comm));
    RUN(write_and_read(path, model, optimizer));
    float momentum[2] = {1, 2};
    RUN(write_and_read_own(path, model, momentum, 2));
    EXPECT(momentum[1] == 2);
    remove(path);
    gyre_nn_optimizer_free(shard);
    gyre_nn_optimizer_free(other);
    gyre_nn_optimizer_free(optimizer);
}

int main(int argc, char **argv)
{
    gyre_comm *comm = NULL;
    gyre_nn_model *model = NULL;
    double values[GYRE_NN_MOST_SETTINGS], accuracy = 0;
    if (argc != 2 || gyre_comm_create(NULL, &comm) != GYRE_SUCCESS || gyre_comm_size(comm) != 2)
        return 1;
    char path[4096];
    snprintf(path, sizeof(path), "%s.trace", argv[1]);
    RUN(print_size("digits"));
    RUN(gyre_nn_dataset_open("digits", &digits));
    RUN(use_cores(comm, true));
    RUN(gyre_nn_set_threads(1, 1));
    EXPECT(part_of_batch(digits, comm, BATCH, x, labels) == BATCH / 2);
    run_models(comm);
    RUN(classifier(&model));
    run_steps(model);
    run_sync(model, comm);
    RUN(trace_of(model, comm, one_step, path));
    print_strategies();
    RUN(settings_of("average", "every=4", values));
    RUN(run_by_hand(model, comm, argv[1]));
    RUN(train(model, digits, comm));
    RUN(train_elastic(model, digits, &comm));
    RUN(accuracy_of(model, digits, comm, &accuracy));
    EXPECT(accuracy > 0.8);
    RUN(print_overlap(model, digits, comm));
    gyre_nn_free(model);
    gyre_nn_dataset_free(digits);
    gyre_comm_destroy(comm);
    return failures > 0;
}
