/* gyre-nn: small neural networks, trained in parallel over gyre.
 *
 * A complete training takes five kinds of call: input, dense, cost, new, train.
 *
 *     gyre_nn_layer *net = gyre_nn_input(64);
 *     net = gyre_nn_dense(net, 128, GYRE_NN_RELU);
 *     net = gyre_nn_cost(net, 10, GYRE_NN_CROSS_ENTROPY);
 *     gyre_nn_new(net, GYRE_FLOAT32, 1, &model);
 *     gyre_nn_train(model, data, comm, &options, &result);
 *
 * gyre_nn_train is made of public parts. A training loop of your own is a copy of nn/train.c. The parts, in this order:
 *
 *   layers and models          gyre_nn_dense and the others, gyre_nn_new, gyre_nn_forward, gyre_nn_backward,
 *                              gyre_nn_tape_create
 *   data                       gyre_nn_dataset_open, gyre_nn_dataset_gather, gyre_nn_shuffle, gyre_nn_shard
 *   optimisers and schedules   gyre_nn_optimizer_create, gyre_nn_schedule_rate
 *   data parallelism           gyre_nn_sync_attach, gyre_nn_sync_reduce
 *   strategies                 gyre_nn_strategy_find, and the table of which one is made
 *   training                   gyre_nn_train, gyre_nn_checkpoint_write, gyre_nn_run_open
 *
 * Wherever a communicator is asked for, NULL means one rank.
 *
 * Memory. A model owns one arena of parameters and one of gradients, both in layer order; tensors are views into them.
 * Matrices are row-major; a sample is a row. Counts and offsets are in elements, sizes named _bytes in bytes, times in
 * seconds. Objects made by a call (…_p) belong to the caller until the free, detach or destroy named beside it, which
 * takes NULL as well; pointers that a call returns belong to the object and live as long as it.
 *
 * Errors. A function that can fail returns a status, and gyre_nn_last_error gives the message. Output arguments are
 * written only on success. A pointer is required unless its comment allows NULL. A function without a status that is
 * given NULL, or an index or range that does not exist, changes nothing and returns 0, NULL or NaN. It sets a message,
 * too. After a status of [ranks] the model's gradients are undefined, and its parameters may be half updated; the run
 * continues from a checkpoint. A name in brackets stands for
 *
 *   [pointer]  GYRE_INVALID_ARGUMENT  a required pointer is NULL
 *   [memory]   GYRE_NO_MEMORY  there is no memory for it
 *   [file]     GYRE_SYSTEM  the system refused a file, or a read or write failed
 *   [file]     GYRE_NO_DESCRIPTORS  there is no file descriptor for it
 *   [ranks]    GYRE_FORKED  the process is a forked child of the one that made the communicator
 *   [ranks]    GYRE_PEER_DEAD  a rank died
 *   [ranks]    GYRE_PEER_UNREACHABLE  a rank cannot be reached any more
 *   [ranks]    GYRE_PEER_STALLED  a rank is inside a call and moves nothing
 *   [ranks]    GYRE_PEER_LATE  a rank did not come within GYRE_TIMEOUT
 *   [ranks]    GYRE_PEER_LEFT  a rank has destroyed the communicator
 *   [ranks]    GYRE_MISMATCH  ranks called different functions, or with different sizes
 *   [ranks]    GYRE_ABORTED  the communicator was aborted
 *   [ranks]    GYRE_REVOKED  the communicator was revoked
 *
 * Order of destruction. Each of these ends before the next one: a run (gyre_nn_run_close); a sync
 * (gyre_nn_sync_detach); a trace (detached, then freed); tapes and optimisers; the model (gyre_nn_free); the
 * communicator. Data sets are independent of models.
 *
 * "Collective": every rank of the communicator calls it, in the same order; such a call blocks. The other functions
 * are local. One thread at a time per model and what is attached to it. */
#ifndef GYRE_NN_H
#define GYRE_NN_H

#include <gyre/gyre.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(GYRE_NN_BUILDING)
#define GYRE_NN_API __attribute__((visibility("default")))
#else
#define GYRE_NN_API
#endif

/* Returns the message of this thread's last failed gyre_nn call. Never NULL; valid until the next failure in this
 * thread.
 * Errors: none. */
GYRE_NN_API const char *gyre_nn_last_error(void);

/* For user code beside gyre-nn's own, for instance a strategy. Makes the error message from `what`, which says what
 * failed, and the communicator's message (or none), and returns `status`. comm may be NULL.
 * Errors: none. The result is `status`. */
/* Makes an error message, and returns a status. */
GYRE_NN_API gyre_status gyre_nn_fail(gyre_status status, const gyre_comm *comm, const char *what);

/* ---- Layers and models ------------------------------------------------------------------------------------------- */

typedef struct gyre_nn_layer gyre_nn_layer;
typedef struct gyre_nn_model gyre_nn_model;

typedef enum gyre_nn_activation {
    GYRE_NN_IDENTITY = 0,
    GYRE_NN_RELU = 1,
    GYRE_NN_TANH = 2,
    GYRE_NN_SIGMOID = 3,
    GYRE_NN_GELU = 4, /* x·Φ(x), exact */
} gyre_nn_activation;

/* Cost of one row of outputs. cross entropy: −log softmax(output)[label]; mean squared error: mean over outputs of
 * (output − target)². */
typedef enum gyre_nn_cost_kind {
    GYRE_NN_CROSS_ENTROPY = 0,
    GYRE_NN_MEAN_SQUARED_ERROR = 1,
    GYRE_NN_RECONSTRUCTION = 2, /* mean squared error against the model's own input */
} gyre_nn_cost_kind;

/* A chain of layers, from which gyre_nn_new makes a model. A layer has between 1 and 2^24 outputs. Each call takes over
 * `below` and returns the new top. A call that fails frees the chain and returns NULL. gyre_nn_new reports that
 * failure, so only its status needs a check. gyre_nn_cost is a dense layer of `outputs` with the cost above it. A chain
 * that is not given to gyre_nn_new is freed by gyre_nn_layer_free.
 * `below`, `from`, `with`, `on` and `of` are layers of one chain. NULL there stands for a call that failed before, and
 * the result is NULL.
 * Errors: none. The status of a call that fails is that of gyre_nn_new. */
/* Frees a chain that is not given to gyre_nn_new. NULL is allowed. */
GYRE_NN_API void gyre_nn_layer_free(gyre_nn_layer *top);
/* The bottom of a chain: a sample of `features` values, or a sequence of `steps` (at most 2^16) of so many values.
 * Layers work on each step by itself. Exceptions are lstm and attention, which keep the number of steps. */
GYRE_NN_API gyre_nn_layer *gyre_nn_input(size_t features);
GYRE_NN_API gyre_nn_layer *gyre_nn_input_sequence(size_t steps, size_t features);
/* The bottom of a chain of images: a sample has height × width pixels (at most 2^16) of `channels` values, row by row,
 * the channels of a pixel together. The layers above see a sequence of pixels. Dense, activations, norms and dropout
 * keep the image. conv2d and max_pool2d need one. */
GYRE_NN_API gyre_nn_layer *gyre_nn_input_image(size_t height, size_t width, size_t channels);
/* Applies an activation to each value of the layer below. */
GYRE_NN_API gyre_nn_layer *gyre_nn_activate(gyre_nn_layer *below, gyre_nn_activation activation);
/* activation(x·Wᵀ + b), with W [outputs × inputs] and b [outputs]. */
GYRE_NN_API gyre_nn_layer *gyre_nn_dense(gyre_nn_layer *below, size_t outputs, gyre_nn_activation activation);
/* The vector of `outputs` values that belongs to a symbol. The inputs below have one feature, a number below
 * `symbols`. */
GYRE_NN_API gyre_nn_layer *gyre_nn_embedding(gyre_nn_layer *below, size_t symbols, size_t outputs);
/* Adds a learnt vector to each step. */
GYRE_NN_API gyre_nn_layer *gyre_nn_position(gyre_nn_layer *below);
/* Each step to mean 0 and deviation 1 over its features, then a learnt gain and bias (Ba et al., 2016). */
GYRE_NN_API gyre_nn_layer *gyre_nn_layer_norm(gyre_nn_layer *below);
/* Convolution with `channels` outputs per place. The window has kernel × kernel pixels and moves by `stride`; `padding`
 * pixels of zeros surround the image, fewer than `kernel`. Side of the result: (side + 2·padding − kernel)/stride + 1,
 * rounded down. Weights are [channels × kernel·kernel·inputs], in the order row, column, input channel. They begin as
 * He (2015). kernel and stride are at most 2^12. */
GYRE_NN_API gyre_nn_layer *gyre_nn_conv2d(gyre_nn_layer *below, size_t channels, size_t kernel, size_t stride,
                                          size_t padding, bool bias);
/* The largest value of each channel in windows of kernel × kernel pixels. The gradient goes to the first of equal
 * values, row by row. NaN counts as the largest. Windows that do not fit are left out. */
GYRE_NN_API gyre_nn_layer *gyre_nn_max_pool2d(gyre_nn_layer *below, size_t kernel, size_t stride);
/* Each feature to mean 0 and deviation 1 over all samples and steps of the batch, then a learnt gain and bias (Ioffe
 * and Szegedy, 2015). In test mode it uses running statistics, of which a training step takes up a tenth. These are
 * tensors of the model ("1.running_mean", "1.running_var"), see gyre_nn_tensor_is_statistic. The batch is that of one
 * forward, and of all ranks where a sync is attached (gyre_nn_sync_attach). Forwards and backwards in train mode are
 * then collective, and a rank may have no samples. Statistics do not depend on how the ranks divide the batch, bit for
 * bit. */
GYRE_NN_API gyre_nn_layer *gyre_nn_batch_norm(gyre_nn_layer *below);
/* All steps of a sample as one, with the values in the same order. */
GYRE_NN_API gyre_nn_layer *gyre_nn_flatten(gyre_nn_layer *below);
/* In training, zeros with probability `rate` (0 to below 1), and the rest divided by 1 − rate; see
 * gyre_nn_train_mode. */
GYRE_NN_API gyre_nn_layer *gyre_nn_dropout(gyre_nn_layer *below, double rate);
/* Hidden states of all steps, from zeros; with a forget gate. */
GYRE_NN_API gyre_nn_layer *gyre_nn_lstm(gyre_nn_layer *below, size_t hidden);
/* Multi-head self-attention with its two projections; heads divide the features; causal: a step sees itself and those
 * before. */
GYRE_NN_API gyre_nn_layer *gyre_nn_attention(gyre_nn_layer *below, size_t heads, bool causal);
/* Adds the output of `from`, a layer of this chain, of the same shape. */
GYRE_NN_API gyre_nn_layer *gyre_nn_residual(gyre_nn_layer *below, const gyre_nn_layer *from);
/* The values [first, first + steps·features) of each sample of `from`, a layer of this chain, as a sequence. A chain
 * may begin a second branch with it; join or reconstruct combines the results of the two branches. */
GYRE_NN_API gyre_nn_layer *gyre_nn_slice(gyre_nn_layer *below, const gyre_nn_layer *from, size_t first, size_t steps,
                                         size_t features);
/* The steps of `below`, and after them those of `with`, a layer of this chain with as many features. */
GYRE_NN_API gyre_nn_layer *gyre_nn_join(gyre_nn_layer *below, const gyre_nn_layer *with);
/* Continues with `on`, a layer of this chain. Adds to the model's cost the mean squared error of `below` against the
 * values of `of`, which count as data. `of` is a layer of this chain with the same shape as `below`. */
GYRE_NN_API gyre_nn_layer *gyre_nn_reconstruct(gyre_nn_layer *below, const gyre_nn_layer *on, const gyre_nn_layer *of);
/* A dense layer of `outputs` with the cost above it: the top of a chain. */
GYRE_NN_API gyre_nn_layer *gyre_nn_cost(gyre_nn_layer *below, size_t outputs, gyre_nn_cost_kind cost);

/* Makes a model of the chain, and frees the chain in every case. dtype: GYRE_FLOAT32 or GYRE_FLOAT64. Weights are
 * uniform: He (2015) below relu, Glorot (2010) elsewhere, drawn from `seed`; biases are 0. `top` may be NULL, which
 * stands for a call that failed before. The model belongs to the caller until gyre_nn_free.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  a layer of the chain is wrong, or the chain has no cost at its top; dtype is no float32 or
 *                          float64 */
/* Makes a model of a chain of layers. */
GYRE_NN_API gyre_status gyre_nn_new(gyre_nn_layer *top, gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p);

/* features – hidden[0] – … – outputs, with cross entropy: a multi-layer perceptron.
 * hidden may be NULL where nhidden is 0. Sizes are in neurons.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  a size is 0 or too large; dtype is no float32 or float64 */
/* Makes a multi-layer perceptron. */
GYRE_NN_API gyre_status gyre_nn_mlp(size_t features, const size_t *hidden, size_t nhidden,
                                    gyre_nn_activation activation, size_t outputs, gyre_dtype dtype, uint64_t seed,
                                    gyre_nn_model **model_p);

/* features – hidden[0] – … – hidden[n−1] – … – hidden[0] – features, against its input; hidden[n−1] is the code.
 * hidden may not be NULL.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  a size is 0 or too large; dtype is no float32 or float64 */
/* Makes an autoencoder. */
GYRE_NN_API gyre_status gyre_nn_autoencoder(size_t features, const size_t *hidden, size_t nhidden,
                                            gyre_nn_activation activation, gyre_dtype dtype, uint64_t seed,
                                            gyre_nn_model **model_p);

/* Models of sequences of symbols, which predict at each step the next symbol. One feeds vectors of `width` into stacked
 * LSTMs. The other is a transformer of blocks with causal attention (Radford et al., 2019). dropout 0: none.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  a size is 0 or too large; heads do not divide width; dtype is no float32 or float64 */
/* Makes a model of LSTMs, which predicts at each step of a text the next symbol. */
GYRE_NN_API gyre_status gyre_nn_character_lstm(size_t steps, size_t symbols, size_t width, const size_t *hidden,
                                               size_t nhidden, double dropout, gyre_dtype dtype, uint64_t seed,
                                               gyre_nn_model **model_p);
/* Makes a transformer, which predicts at each step of a text the next symbol. */
GYRE_NN_API gyre_status gyre_nn_transformer(size_t steps, size_t symbols, size_t width, size_t heads, size_t blocks,
                                            double dropout, gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p);

/* The shape of an image. All 0: it is not known. */
struct gyre_nn_image {
    size_t height, width, channels;
};

/* A convolutional network. Each of `nblocks` blocks is a convolution of 3 × 3 pixels to channels[i] channels, a batch
 * norm, relu, and max pooling that halves the image. Then come dense layers of the sizes `hidden` with relu and dropout
 * (0: none), and cross entropy. channels and hidden may be NULL where there are none.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  a size is 0 or too large; the image cannot be halved so often; dtype is no float32 or
 *                          float64 */
/* Makes a convolutional network. */
GYRE_NN_API gyre_status gyre_nn_cnn(const struct gyre_nn_image *image, const size_t *channels, size_t nblocks,
                                    const size_t *hidden, size_t nhidden, double dropout, size_t outputs,
                                    gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p);

/* A compound model: an LSTM for `steps` items of a session, an autoencoder for sparse features, and attention, which
 * combines both into a prediction of the next item. width: size of an item's vector, of the LSTM's state and of the
 * autoencoder's code; heads divide it. hidden: size of the autoencoder's other layers. Input: the items' numbers, then
 * the features.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  a size is 0 or too large; heads do not divide width; dtype is no float32 or float64 */
/* Makes a recommender. */
GYRE_NN_API gyre_status gyre_nn_recommender(size_t steps, size_t items, size_t features, size_t width, size_t hidden,
                                            size_t heads, gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p);

/* Gives the attention of sample `sample` in the last forward: the weights with which step `step` of the model's last
 * attention layer attended to each step. The weights are means over the heads, and add up to 1. In a recommender step 0
 * is the profile, which is the query; weight 1 + t belongs to item t of the session, weight 0 to the profile itself.
 * *count_p: steps; at most `room` are written.
 * Errors: [pointer].
 *   GYRE_INVALID_ARGUMENT  the model has no attention layer; there is no such sample or step */
/* Gives the weights of the last attention layer. */
GYRE_NN_API gyre_status gyre_nn_attention_weights(const gyre_nn_model *model, size_t sample, size_t step,
                                                  double *weights, size_t room, size_t *count_p);

/* Makes a model of the same layers and parameters, in memory of its own. Gradients are 0; no trace and nothing else is
 * attached. The copy belongs to the caller until gyre_nn_free.
 * Errors: [pointer], [memory], [ranks]. */
/* Copies a model. */
GYRE_NN_API gyre_status gyre_nn_clone(const gyre_nn_model *model, gyre_nn_model **model_p);

/* Optimisers, syncs and tapes of the model are freed before; a trace is detached before. NULL is allowed.
 * Errors: none. */
/* Frees a model. */
GYRE_NN_API void gyre_nn_free(gyre_nn_model *model);

/* A view, with the name that it has in a checkpoint: rows × cols elements of the parameter arena and of the gradient
 * arena, at `offset` elements from their start. */
struct gyre_nn_tensor {
    char name[48]; /* "0.weight" [outputs × inputs], "0.bias" [1 × outputs] */
    int rank;      /* 2, or 1 for a vector: one row of cols */
    size_t rows, cols, offset;
};

/* The type of parameters, gradients, inputs and outputs.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
GYRE_NN_API gyre_dtype gyre_nn_dtype(const gyre_nn_model *model);

/* Values of a sample, all steps together; values of an output row; output rows of a sample: its steps, or 1.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Returns the values of a sample, all steps together. */
GYRE_NN_API size_t gyre_nn_inputs(const gyre_nn_model *model);
/* Returns the values of an output row. */
GYRE_NN_API size_t gyre_nn_outputs(const gyre_nn_model *model);
/* Returns the output rows of a sample: its steps, or 1. */
GYRE_NN_API size_t gyre_nn_output_steps(const gyre_nn_model *model);
/* Returns the kind of cost of a model. */
GYRE_NN_API gyre_nn_cost_kind gyre_nn_cost_of(const gyre_nn_model *model);

/* Elements of each arena.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Returns the number of parameters. */
GYRE_NN_API size_t gyre_nn_param_count(const gyre_nn_model *model);

/* The arenas, which may be read and written between steps. grads: at the place that gyre_nn_place_grads set.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Returns the arena of parameters. */
GYRE_NN_API void *gyre_nn_params(const gyre_nn_model *model);
/* Returns the arena of gradients. */
GYRE_NN_API void *gyre_nn_grads(const gyre_nn_model *model);

/* Views in the order of their offsets; together they cover the arena. NULL for an index that is not below the count.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Returns the number of tensors. */
GYRE_NN_API size_t gyre_nn_tensor_count(const gyre_nn_model *model);
/* Returns a tensor. */
GYRE_NN_API const struct gyre_nn_tensor *gyre_nn_tensor(const gyre_nn_model *model, size_t index);

/* Statistics of a batch norm are in the arenas like parameters, and travel with them. But they follow the data: an
 * optimiser moves them by p −= 0.1·scale·g, whatever its kind, rate and weight decay. Their gradient is the sum over
 * output rows of (p − value of the batch). A strategy that moves parameters by a rule of its own takes their mean over
 * the ranks instead.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is
 * false. */
/* Returns true if a tensor holds running statistics. */
GYRE_NN_API bool gyre_nn_tensor_is_statistic(const gyre_nn_model *model, size_t index);

/* XXH3 (64 bit) of the parameter arena: equal on every rank after every step.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Returns a hash of the parameters. */
GYRE_NN_API uint64_t gyre_nn_params_hash(const gyre_nn_model *model);

/* Moves the arena of gradients to `memory` of the caller (param_count elements, valid as long as it is used), or back
 * to the model's own with NULL. The values are not copied.
 * Errors: none. A pointer that is required and NULL changes nothing. */
/* Moves the gradients into memory of the caller, or back. */
GYRE_NN_API void gyre_nn_place_grads(gyre_nn_model *model, void *memory);

/* The parts of one training step. A batch is samples × steps × features, dense.
 * forward keeps the pointer `x` (of the model's dtype) until backward. *outputs_p (or NULL) are samples × output_steps
 * rows of outputs, valid until the next forward.
 * evaluate gives the *sum* of the cost over these rows, and prepares backward. Cross entropy takes `labels`, one per
 * row. The mean squared error takes `targets` (rows × outputs) or, if that is NULL, labels as one-hot targets. A
 * reconstruction needs neither. `correct_p` (or NULL): rows whose largest output is at the label.
 * backward *adds* the gradient of that sum to the gradients, from the last layer to the first. After each layer with
 * parameters it calls passed(user, lower): all gradients at offsets >= lower are final for this backward. It uses up
 * what forward has kept: after it, evaluate and backward are GYRE_INVALID_ARGUMENT until the next forward.
 * Errors: [pointer], [memory], [ranks].
 *   GYRE_INVALID_ARGUMENT  too many samples; a label is missing or out of range; there was no forward (or evaluate)
 *                          before */
typedef void (*gyre_nn_passed_func)(void *user, size_t lower);
/* Computes the outputs of a batch. */
GYRE_NN_API gyre_status gyre_nn_forward(gyre_nn_model *model, const void *x, size_t samples, const void **outputs_p);
/* Computes the cost of the last forward, and prepares backward. */
GYRE_NN_API gyre_status gyre_nn_evaluate(gyre_nn_model *model, const int32_t *labels, const void *targets,
                                         double *cost_p, size_t *correct_p);
/* Adds the gradient of the cost to the gradients. */
GYRE_NN_API gyre_status gyre_nn_backward(gyre_nn_model *model, gyre_nn_passed_func passed, void *user);

/* Set whether the forwards that follow are for training. In training, dropout draws from (seed, step) and from the
 * place of a sample in the global batch; `first` is the place of the first sample. A new model is in test mode.
 * Errors: none. A pointer that is required and NULL changes nothing. */
/* Sets the model to training. */
GYRE_NN_API void gyre_nn_train_mode(gyre_nn_model *model, uint64_t seed, uint64_t step, uint64_t first);
/* Sets the model to testing. */
GYRE_NN_API void gyre_nn_test_mode(gyre_nn_model *model);

/* Sets all gradients to 0: at the beginning of a step.
 * Errors: none. A pointer that is required and NULL changes nothing. */
GYRE_NN_API void gyre_nn_zero_grads(gyre_nn_model *model);

/* As gyre_nn_zero_grads, for a step whose first backward goes through the whole model. That backward writes gradients
 * instead of adding to them, which saves a pass over memory. Until then the gradients keep their old values.
 * Errors: none. A pointer that is required and NULL changes nothing. */
/* Makes the next backward write gradients instead of adding to them. */
GYRE_NN_API void gyre_nn_renew_grads(gyre_nn_model *model);

/* A part of a model: modules [first, last), which a stage of a pipeline computes. Modules are numbered from the input.
 * Place i is below module i; place 0 is at the input. Value 0 is the model's input; value i is the output of the module
 * below place i.
 * The model may be cut at place i if one branch ends there and the modules above take from that branch only value i.
 * They may also take the model's input, and the end of a branch that ended before.
 * cut_values: elements of value i in a sample; 0 where the model may not be cut.
 * cut_offset: where the parameters of the modules from place i on begin in the arena.
 * cut_work: an estimate of the arithmetic of a sample in the modules below place i.
 * cut_memory: an estimate of the elements of a sample that their forward keeps.
 * value_size: elements of a value in a sample.
 * value_used: true if one of modules [first, last) takes the value.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Returns the number of modules of a model. */
GYRE_NN_API size_t gyre_nn_module_count(const gyre_nn_model *model);
/* Returns the elements of a sample that pass a place where the model may be cut; 0: it may not. */
GYRE_NN_API size_t gyre_nn_cut_values(const gyre_nn_model *model, size_t place);
/* Returns where the parameters of the modules from a place on begin, in elements. */
GYRE_NN_API size_t gyre_nn_cut_offset(const gyre_nn_model *model, size_t place);
/* Returns an estimate of the arithmetic of a sample below a place. */
GYRE_NN_API double gyre_nn_cut_work(const gyre_nn_model *model, size_t place);
/* Returns an estimate of the elements that the forward of a sample keeps below a place. */
GYRE_NN_API double gyre_nn_cut_memory(const gyre_nn_model *model, size_t place);
/* Returns the elements of a value of a sample. */
GYRE_NN_API size_t gyre_nn_value_size(const gyre_nn_model *model, size_t value);
/* Returns true if one of the modules [first, last) takes a value. */
GYRE_NN_API bool gyre_nn_value_used(const gyre_nn_model *model, size_t value, size_t first, size_t last);

/* A tape holds what a forward of a stage leaves for its backward; each micro-batch in flight needs its own. first and
 * last are places at which the model may be cut.
 * forward, evaluate and backward are those of the whole model, for the stage. x and *y_p are the values at its places;
 * x stays the caller's until backward. The stage that ends the model calls evaluate, with labels as for a whole model,
 * right before its backward, where dy is NULL. In other stages dy is the gradient of y. Each forward needs one
 * backward. *dx_p is the gradient of x, valid until the next call; NULL at the model's input.
 * A tape belongs to the caller, and is freed before its model.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  the model may not be cut at first or last; too many samples; there was no forward before */
typedef struct gyre_nn_tape gyre_nn_tape;
/* Makes a tape of a stage: modules [first, last). */
GYRE_NN_API gyre_status gyre_nn_tape_create(gyre_nn_model *model, size_t first, size_t last, gyre_nn_tape **tape_p);
/* Frees a tape, before its model. */
GYRE_NN_API void gyre_nn_tape_free(gyre_nn_tape *tape); /* NULL is allowed */
/* Computes the forward of a stage. */
GYRE_NN_API gyre_status gyre_nn_tape_forward(gyre_nn_tape *tape, const void *x, size_t samples, const void **y_p);
/* Computes the cost, in the stage that ends the model. */
GYRE_NN_API gyre_status gyre_nn_tape_evaluate(gyre_nn_tape *tape, const int32_t *labels, const void *targets,
                                              double *cost_p);
/* Computes the backward of a stage. */
GYRE_NN_API gyre_status gyre_nn_tape_backward(gyre_nn_tape *tape, const void *dy, const void **dx_p);

/* For a stage that takes or gives more values than the one at its places.
 * set_input: `x` is value `value`, at or below `first`, for the forwards that follow. The argument x of forward is then
 * NULL. `x` stays the caller's.
 * output: a value that the last forward made.
 * add_gradient: adds to the gradient of a value that this stage made. Called before backward, which then has dy NULL.
 * input_gradient: the gradient of a value that this stage took. Called after backward; valid until the next call.
 * side_cost: the cost that gyre_nn_reconstruct added in the last forward, a sum over the samples. evaluate of the last
 * stage does not know this cost of the other stages.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Gives a stage a value that is made below it. */
GYRE_NN_API void gyre_nn_tape_set_input(gyre_nn_tape *tape, size_t value, const void *x);
/* Returns a value that the last forward of a stage made. */
GYRE_NN_API const void *gyre_nn_tape_output(const gyre_nn_tape *tape, size_t value);
/* Adds to the gradient of a value that this stage made. */
GYRE_NN_API void gyre_nn_tape_add_gradient(gyre_nn_tape *tape, size_t value, const void *dy);
/* Returns the gradient of a value that this stage took. */
GYRE_NN_API const void *gyre_nn_tape_input_gradient(const gyre_nn_tape *tape, size_t value);
/* Returns what gyre_nn_reconstruct added to the cost in the last forward. */
GYRE_NN_API double gyre_nn_tape_side_cost(const gyre_nn_tape *tape);

/* gyre_nn_set_blas_threads sets the threads (at least 1) of the BLAS library in this process, where it is OpenBLAS;
 * otherwise it has no effect. gyre_nn_share_cores divides the host's cores: the threads are the cores in this process's
 * affinity mask, divided by the ranks of `comm` on this host whose mask overlaps it. LOCAL_WORLD_SIZE replaces that
 * number of ranks where it is larger. So a rank that is bound to cores of its own has all of these. Training and
 * gyre_nn_sync_attach call gyre_nn_share_cores.
 * gyre_nn_share_cores changes nothing where there is one rank, or where the number was set before: by
 * gyre_nn_set_blas_threads, or in the environment by OPENBLAS_NUM_THREADS, GOTO_NUM_THREADS or OMP_NUM_THREADS (which
 * torchrun sets to 1). The strategy deterministic sets 1 thread. comm may be NULL.
 * Errors: none. */
/* Sets the threads of the BLAS library. */
GYRE_NN_API void gyre_nn_set_blas_threads(int threads);
/* Divides the cores of this host among the BLAS threads of its ranks. */
GYRE_NN_API void gyre_nn_share_cores(const gyre_comm *comm);

/* Two levels of parallelism: ranks, and threads inside each rank. samples·neurons threads, the caller included, divide
 * each matrix product of this process: its rows (a layer's samples) into `samples` parts and its columns (neurons) into
 * `neurons` parts. BLAS then has one thread in each of them. The setting is for all models of the process. Results
 * depend on the two numbers and never on time.
 * The threads start in this call, and end with the next one, which waits for a product under way. 1 and 1: no threads,
 * as in the beginning; BLAS's own threads must then be set again. At most 256 threads.
 * Errors: [memory].
 *   GYRE_INVALID_ARGUMENT  a number is 0, or their product is above 256
 *   GYRE_SYSTEM            a thread cannot be started */
/* Divides each matrix product among threads of this process. */
GYRE_NN_API gyre_status gyre_nn_set_threads(size_t samples, size_t neurons);

/* ---- Data -------------------------------------------------------------------------------------------------------- */

/* samples × features; for each sample `steps` labels 0 … classes−1 (1, or one per step of a sequence); and which
 * samples are for training and for testing. */
typedef struct gyre_nn_dataset {
    size_t samples, features, classes, steps;
    float *x;
    int32_t *labels;
    char *alphabet;         /* of text: the byte of each class; else NULL */
    uint32_t *train, *test; /* sample numbers */
    size_t ntrain, ntest;
    char **names; /* of csv with labels that are text: the name of each class, and a NULL behind them; else NULL */
    struct gyre_nn_image image; /* where samples are images of known shape */
} gyre_nn_dataset;

/* "digits"    the 1,797 8×8 digits of the UCI optical recognition set, pixels / 16
 * "idx:DIR"   train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-… of DIR, also with .gz, pixels / 255. Where there
 *             are none: images-idx3-ubyte and labels-idx1-ubyte, which are split
 * "csv:FILE"  as RFC 4180 describes it: numbers, and in the last column the label, an integer >= 0 or a text. Texts
 *             become classes in the order of their bytes. Separated by commas, semicolons or tabs: the one that is
 *             most frequent in the first line. Fields may be quoted; a header is optional; lines that begin with # are
 *             skipped; also .gz. Columns are standardised by the mean and deviation of the training samples
 * digits, csv and idx without t10k-… are split 80/20 by gyre's fixed stratified split: in each class, the samples are
 * shuffled by splitmix64 seeded with 0x67797265 ("gyre") + class, and the first fifth (rounded) is for testing. */
/* "npy:FILE"  a NumPy array of two dimensions of float32, float64, uint8, int32 or int64, C order, as csv
 * "text:FILE" bytes, cut into samples of 64 (gyre_nn_text_open: of `steps`); the label of each is the byte after it.
 *             Classes are the bytes that occur, in their order. The last tenth is for testing.
 * INVALID_ARGUMENT where a file is damaged or does not hold what it should, with its name and line.
 * The data set belongs to the caller until gyre_nn_dataset_free.
 * Errors: [pointer], [memory], [file].
 *   GYRE_INVALID_ARGUMENT  the name is not understood; a file is damaged, or does not hold what it should */
/* Opens a data set by its name. */
GYRE_NN_API gyre_status gyre_nn_dataset_open(const char *name, gyre_nn_dataset **data_p);
/* Opens a text, cut into samples of `steps` bytes. */
GYRE_NN_API gyre_status gyre_nn_text_open(const char *path, size_t steps, gyre_nn_dataset **data_p);

/* "sessions", "sessions:SEED": drawn from a seed, with a planted structure. Items have 4 categories. The user's
 * features tell a favourite category, and a session has one item of it. The next item of the session is the successor
 * of that item, except in 2 % of the sessions. A sample is steps + features values; a label is the number of an item.
 * The last fifth is for testing. cause: the place of the item that a sample's answer should rest on; `steps` if there
 * is none.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  a number is 0, or too large */
struct gyre_nn_sessions {
    size_t samples, steps, items, features;
    uint64_t seed;
};
/* Returns the usual sessions. */
GYRE_NN_API struct gyre_nn_sessions gyre_nn_sessions_defaults(void); /* 4,000 of 10 items of 32, 32 features, seed 1 */
/* Draws a data set of sessions. */
GYRE_NN_API gyre_status gyre_nn_sessions_open(const struct gyre_nn_sessions *how, gyre_nn_dataset **data_p);
/* Returns the place of the item that the answer of a sample should rest on. */
GYRE_NN_API size_t gyre_nn_sessions_cause(const struct gyre_nn_sessions *how, const float *x);
/* Frees a data set. NULL is allowed.
 * Errors: none. */
GYRE_NN_API void gyre_nn_dataset_free(gyre_nn_dataset *data);

/* Copies the `count` samples whose numbers are in `rows`. x gets count × features values of dtype; labels gets count ×
 * steps labels.
 * Errors: none. A pointer that is required and NULL changes nothing. */
/* Copies samples and their labels. */
GYRE_NN_API void gyre_nn_dataset_gather(const gyre_nn_dataset *data, const uint32_t *rows, size_t count,
                                        gyre_dtype dtype, void *x, int32_t *labels);

/* order[0 … count−1] becomes a permutation: Fisher–Yates by splitmix64 of (seed, epoch). The same on every rank and
 * machine.
 * Errors: none. A pointer that is required and NULL changes nothing. */
/* Shuffles numbers, the same way on every rank. */
GYRE_NN_API void gyre_nn_shuffle(uint64_t seed, uint64_t epoch, uint32_t *order, size_t count);

/* The part [first, first + count) of rank `rank` of `rows` rows. Parts differ by at most one row and cover all rows.
 * Errors: none. A pointer that is required and NULL changes nothing. */
/* Gives the part of a rank of a number of rows. */
GYRE_NN_API void gyre_nn_shard(size_t rows, int rank, int ranks, size_t *first_p, size_t *count_p);

/* ---- Optimisers and schedules ------------------------------------------------------------------------------------ */

typedef enum gyre_nn_optimizer_kind {
    GYRE_NN_SGD = 0,
    GYRE_NN_MOMENTUM = 1,
    GYRE_NN_NESTEROV = 2,
    GYRE_NN_ADAM = 3,
    GYRE_NN_ADAMW = 4,
} gyre_nn_optimizer_kind;

/* With g the gradient (plus weight_decay·p, except AdamW):
 *   sgd       p −= rate·g
 *   momentum  m = momentum·m + g;  p −= rate·m
 *   nesterov  m = momentum·m + g;  p −= rate·(g + momentum·m)
 *   adam      Kingma and Ba (2015), bias-corrected
 *   adamw     Loshchilov and Hutter (2019): adam, with p −= rate·weight_decay·p before */
struct gyre_nn_optimizer_config {
    gyre_nn_optimizer_kind kind;
    double momentum, beta1, beta2, epsilon, weight_decay; /* three from 0 to below 1, two at least 0 */
};

typedef struct gyre_nn_optimizer gyre_nn_optimizer;

/* momentum 0.9, beta1 0.9, beta2 0.999, epsilon 1e-8, weight_decay 0 (adamw: 0.01).
 * Errors: none. */
/* Returns the usual configuration of a kind of optimiser. */
GYRE_NN_API struct gyre_nn_optimizer_config gyre_nn_optimizer_defaults(gyre_nn_optimizer_kind kind);

/* Makes an optimiser with state of zeros. It updates the model's parameters. config is copied. The optimiser belongs to
 * the caller, and is freed before the model.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  a number of the configuration is out of its range */
/* Makes an optimiser of all parameters of a model. */
GYRE_NN_API gyre_status gyre_nn_optimizer_create(gyre_nn_model *model, const struct gyre_nn_optimizer_config *config,
                                                 gyre_nn_optimizer **optimizer_p);

/* The same for parameters [first, first + count) alone. The state has memory for these, and no other parameter may be
 * updated. gyre_nn_sync_attach, …_checkpoint_write and …_checkpoint_read need an optimiser of all parameters, and
 * return GYRE_INVALID_ARGUMENT otherwise.
 * Errors: [pointer], [memory].
 *   GYRE_INVALID_ARGUMENT  a number of the configuration is out of its range; the range is not one of parameters */
/* Makes an optimiser of a range of parameters. */
GYRE_NN_API gyre_status gyre_nn_optimizer_create_part(gyre_nn_model *model,
                                                      const struct gyre_nn_optimizer_config *config, size_t first,
                                                      size_t count, gyre_nn_optimizer **optimizer_p);
/* Frees an optimiser, after its sync is detached and before its model. NULL is allowed.
 * Errors: none. */
GYRE_NN_API void gyre_nn_optimizer_free(gyre_nn_optimizer *optimizer);

/* begin counts one step, for adam's bias correction. update then moves parameters [first, first+count) by their
 * gradient times `scale`. In a step every parameter belongs to one update, in any order.
 * Errors: none. A pointer that is required and NULL changes nothing. */
/* Begins a step of the optimiser. */
GYRE_NN_API void gyre_nn_optimizer_begin(gyre_nn_optimizer *optimizer);
/* Moves a range of parameters by their gradients. */
GYRE_NN_API void gyre_nn_optimizer_update(gyre_nn_optimizer *optimizer, size_t first, size_t count, double rate,
                                          double scale);

/* State arrays, one element for each parameter of the optimiser: slot 0 and 1; NULL where the optimiser has none.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Returns an array of an optimiser's state. */
GYRE_NN_API void *gyre_nn_optimizer_state(const gyre_nn_optimizer *optimizer, int slot);

/* The number of steps begun. set_steps, together with writing to the state arrays, restores an optimiser.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Returns the steps begun. */
GYRE_NN_API uint64_t gyre_nn_optimizer_steps(const gyre_nn_optimizer *optimizer);
/* Sets the number of the steps begun. */
GYRE_NN_API void gyre_nn_optimizer_set_steps(gyre_nn_optimizer *optimizer, uint64_t steps);
/* Returns the kind of an optimiser. */
GYRE_NN_API gyre_nn_optimizer_kind gyre_nn_optimizer_get_kind(const gyre_nn_optimizer *optimizer);

typedef enum gyre_nn_schedule_kind {
    GYRE_NN_CONSTANT = 0,
    GYRE_NN_STEP = 1,
    GYRE_NN_COSINE = 2,
} gyre_nn_schedule_kind;

/* Step s counts from 0. Warm-up: rate·(s+1)/warmup while s < warmup. Then, with t = s − warmup:
 * constant: rate; step: rate·factor^(t / every, whole); cosine: from rate to floor over total − warmup steps.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
struct gyre_nn_schedule {
    gyre_nn_schedule_kind kind;
    double rate, factor, floor;
    uint64_t warmup, every, total;
};
/* Returns the rate of a step. */
GYRE_NN_API double gyre_nn_schedule_rate(const struct gyre_nn_schedule *schedule, uint64_t step);

/* ---- Data parallelism -------------------------------------------------------------------------------------------- */

/* attach is collective. It attaches a communicator to a model and its optimiser, and sends rank 0's parameters and
 * optimiser state to all ranks. Then, per step: begin; backward with gyre_nn_sync_passed; finish, which waits for each
 * bucket just before its slice is updated. Gradients are sums over samples. finish divides by the global number of
 * samples (of output rows, where a sample has several), so unequal shards have the right weights.
 * bucket_bytes: size of a bucket; 0 for a single one. clip_norm: the largest norm of the mean gradient; 0: no clipping.
 * optimizer NULL: only begin, passed and reduce may be used. With comm NULL or of one rank nothing is communicated, and
 * all works the same.
 * Until detach, batch norms take their statistics over the batch of all ranks.
 * Where gyre has memory that the ranks of a host share, the gradients are moved there until detach. Several ranks of a
 * host divide its cores among their BLAS threads. `comm` stays the caller's, and has no other use from begin to finish.
 * detach comes before the communicator, the optimiser and the model end.
 * Errors: [pointer], [memory], [ranks].
 *   GYRE_INVALID_ARGUMENT  the optimiser is of another model, or not of all parameters */
typedef struct gyre_nn_sync gyre_nn_sync;
typedef struct gyre_nn_trace gyre_nn_trace;
/* Attaches a communicator to a model and its optimiser. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_sync_attach(gyre_nn_model *model, gyre_nn_optimizer *optimizer, gyre_comm *comm,
                                            size_t bucket_bytes, gyre_nn_sync **sync_p);
/* Detaches it. */
GYRE_NN_API void gyre_nn_sync_detach(gyre_nn_sync *sync); /* before the communicator is destroyed; NULL is allowed */
/* Begins a step: the gradients are ready to be computed. */
GYRE_NN_API void gyre_nn_sync_begin(gyre_nn_sync *sync);
/* Starts the buckets that are final, from backward: a gyre_nn_passed_func. */
GYRE_NN_API void gyre_nn_sync_passed(void *sync, size_t lower);
/* Ends a step: waits for the buckets and moves the parameters. Collective. */
GYRE_NN_API gyre_status gyre_nn_sync_finish(gyre_nn_sync *sync, double rate, size_t global_rows, double clip_norm);
/* Adds up all gradients over the ranks. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_sync_reduce(gyre_nn_sync *sync); /* communication only: all buckets, blocking */

/* ahead: from now on finish returns without waiting, where clip_norm is 0 and there are several ranks. The parameters
 * of a bucket move once its gradients have arrived, at the latest when the next forward comes to a module that has some
 * of them. All have moved when that forward returns. So communication hides behind the forward too. Buckets leave in an
 * order that suits it: some are held back until backward is over. The bits are the same.
 * Functions that read the parameters or gradients settle first: gyre_nn_params, …_grads, …_params_hash,
 * …_optimizer_state, …_clone, …_checkpoint_write, …_zero_grads, …_place_grads, …_sync_passed, …_finish and …_reduce.
 * Pointers obtained before may be used only after gyre_nn_settle has returned. It waits for all buckets and moves their
 * parameters; it returns GYRE_SUCCESS at once where nothing is under way. A failure (GYRE_PEER_DEAD, …) is returned by
 * the first of these functions that has a status, or by the forward.
 * Every rank does the same. Other collectives of the communicator may come between, in the same order on every rank.
 * One sync of a model may be ahead. Detach it before the optimiser is freed.
 * Errors: [pointer], [ranks]. */
/* Lets the communication of a step overlap the next forward. */
GYRE_NN_API void gyre_nn_sync_ahead(gyre_nn_sync *sync, bool ahead);
/* Waits for the communication under way, and moves the parameters. */
GYRE_NN_API gyre_status gyre_nn_settle(const gyre_nn_model *model);

/* Bucket 0 is the arena's last range; it leaves first, except with gyre_nn_sync_ahead. [first, first + count) is the
 * range of bucket `index`, which is below the count.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Returns the number of buckets. */
GYRE_NN_API size_t gyre_nn_sync_bucket_count(const gyre_nn_sync *sync);
/* Gives the range of parameters of a bucket. */
GYRE_NN_API void gyre_nn_sync_bucket(const gyre_nn_sync *sync, size_t index, size_t *first_p, size_t *count_p);

/* A timeline in the Chrome trace format. It collects the last `capacity` spans of the model to which it is attached. A
 * model has one trace at a time. Detach the trace, with NULL, before it is freed. write is collective: rank 0 writes
 * the file `path`, and every rank returns the status of that write. comm NULL: one rank.
 * Errors: [pointer], [memory], [ranks], [file]. */
/* Makes a trace of the last `capacity` spans. */
GYRE_NN_API gyre_status gyre_nn_trace_create(size_t capacity, gyre_nn_trace **trace_p);
/* Attaches a trace to a model, or detaches it. */
GYRE_NN_API void gyre_nn_trace_attach(gyre_nn_model *model, gyre_nn_trace *trace); /* NULL: off */
/* Writes the spans of all ranks to a file. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_trace_write(gyre_nn_trace *trace, gyre_comm *comm, const char *path);
/* Frees a trace that is detached. NULL is allowed. */
GYRE_NN_API void gyre_nn_trace_free(gyre_nn_trace *trace);

/* ---- Strategies -------------------------------------------------------------------------------------------------- */

/* How the ranks of a run share the work. A strategy is a table of hooks, which gyre_nn_train calls. docs/training.md
 * explains the strategies of this library. examples/strategy.c is a user's strategy. */

/* Where state lies. Replicated: the same bits on every rank. Local: each rank has its own. Sharded: rank r holds the
 * part that gyre_nn_shard(count, r, ranks) gives. */
typedef enum gyre_nn_placement {
    GYRE_NN_REPLICATED = 0,
    GYRE_NN_LOCAL = 1,
    GYRE_NN_SHARDED = 2,
} gyre_nn_placement;

/* State that a run needs to continue. Checkpoints contain it under its name, as [count], or [ranks × count] where it
 * is local. dtype: GYRE_FLOAT32 or GYRE_FLOAT64. */
struct gyre_nn_array {
    char name[32];
    void *data;   /* of this rank */
    size_t count; /* elements; of a sharded array, of all ranks */
    gyre_dtype dtype;
    gyre_nn_placement placement;
};
#define GYRE_NN_MOST_ARRAYS 24

/* A number that the user may set: "name=value". choices: names for 0, 1, …; ends with NULL. A list without any name
 * stands for a whole number. */
struct gyre_nn_setting {
    const char *name, *help;
    double value, least, most; /* value: the default */
    const char *const *choices;
};
#define GYRE_NN_MOST_SETTINGS 16

typedef struct gyre_nn_strategy gyre_nn_strategy;

/* A global batch: numbers of samples of the data, in their order. */
struct gyre_nn_batch {
    const gyre_nn_dataset *data;
    const uint32_t *rows;
    size_t samples;
    uint64_t seed; /* of the run: for gyre_nn_train_mode */
};

/* What a strategy and a training loop work on. `settings` has a value for each of the strategy's settings, in their
 * order; `self` is what open gave. */
struct gyre_nn_run {
    gyre_nn_model *model;
    gyre_nn_optimizer *optimizer;
    gyre_comm *comm; /* NULL: one rank */
    int rank, ranks;
    size_t bucket_bytes;
    double clip_norm;
    const gyre_nn_strategy *strategy;
    double settings[GYRE_NN_MOST_SETTINGS];
    void *self;
    void *shown; /* this rank's own parameters, while the model shows the consensus */
};

/* Rows are rows of outputs. */
struct gyre_nn_step {
    uint64_t number; /* of the run, from 0 */
    double rate;
    size_t rows, global_rows; /* of this rank's part of the batch; of the batch */
    double cost;              /* of this rank's rows; known after backward */
};

/* Hooks marked * may be NULL. A hook that fails ends the run; its message is that of gyre_nn_fail. All hooks except
 * `close` and `piece` may communicate, in the same order on every rank.
 *   open          makes the strategy's state. The parameters are rank 0's on every rank; nothing is resumed yet
 *   close         frees it, in whatever state things are; self may be what a failed open left: NULL
 *   before_step*  gradients are 0; backward adds to what the hook writes there
 *   piece*        the index-th piece of a batch of `rows` samples that this rank computes; false: there is none. NULL:
 *                 the rank's shard, in as many pieces as the run accumulates
 *   compute*      does forward and backward of the whole batch itself, and adds its rows and their cost to the step;
 *                 piece, passed and after_backward are not called then
 *   passed*       a gyre_nn_passed_func, in the backward of the step's last piece, or of each if there is `piece`
 *   after_backward* after each piece's backward; gradients add up from piece to piece unless it zeroes them
 *   update        all pieces are done: moves the parameters
 *   arrays*       lists at most GYRE_NN_MOST_ARRAYS arrays; ends what is under way in them. Always the same names and
 *                 counts. The parameters and the optimiser's state are not among them
 *   consensus*    writes the parameters that the run would give if it ended now, with the same bits on every rank.
 *                 Changes nothing else. For strategies whose parameters are local
 *   common*       called after update and after open. True if the run can continue from here on any number of ranks,
 *                 from what all ranks have alike: the replicated arrays and the parameters that the hook writes to
 *                 `params`. All local state then begins anew, also the optimiser's. `params` NULL: only the answer
 *                 is needed. The answer is the same on every rank; the hook is not collective. For strategies with
 *                 local state that can be elastic (gyre_nn_train_elastic); there it is true after each exchange */
struct gyre_nn_strategy {
    size_t size; /* sizeof(gyre_nn_strategy) */
    const char *name, *help;
    const struct gyre_nn_setting *settings; /* * ends with a name of NULL */
    gyre_nn_placement params, optimizer;    /* params: replicated or local */
    gyre_status (*open)(const struct gyre_nn_run *run, void **self_p);
    void (*close)(void *self);
    gyre_status (*before_step)(void *self, const struct gyre_nn_step *step);
    bool (*piece)(void *self, size_t rows, size_t index, size_t *first_p, size_t *count_p);
    gyre_status (*compute)(void *self, struct gyre_nn_step *step, const struct gyre_nn_batch *batch);
    gyre_nn_passed_func passed;
    gyre_status (*after_backward)(void *self, size_t index);
    gyre_status (*update)(void *self, const struct gyre_nn_step *step);
    gyre_status (*arrays)(void *self, struct gyre_nn_array *arrays, size_t *count_p);
    gyre_status (*consensus)(void *self, void *params);
    bool apart; /* no rank waits for another between reports and checkpoints: there is nothing to compare then */
    bool (*common)(void *self, void *params);
};

/* The strategies of this library. find looks one up by name; NULL if there is none. at returns them one by one; NULL at
 * the end.
 * Errors: none. A pointer that is required and NULL, or an index that there is not, changes nothing; the result is 0,
 * NULL or NaN. */
/* Finds a strategy of this library by its name; NULL: there is none. */
GYRE_NN_API const gyre_nn_strategy *gyre_nn_strategy_find(const char *name);
/* Returns the strategies of this library one by one; NULL at the end. */
GYRE_NN_API const gyre_nn_strategy *gyre_nn_strategy_at(size_t index);

/* Fills values (one for each setting) from the defaults and from `text`, "name=value,name=value" or NULL.
 * Errors: [pointer].
 *   GYRE_INVALID_ARGUMENT  a name is not known; a value is no number, or out of its range */
/* Reads the settings of a strategy. */
GYRE_NN_API gyre_status gyre_nn_strategy_parse(const gyre_nn_strategy *strategy, const char *text,
                                               double values[GYRE_NN_MOST_SETTINGS]);

/* ---- Training ---------------------------------------------------------------------------------------------------- */

/* The position of a run. The generator's state is (seed, epoch): the shuffle is a pure function of both. */
struct gyre_nn_position {
    uint64_t seed, epoch, sample, step; /* sample: training samples of this epoch already used; step: of the run */
    double cost;                        /* sum of the training cost of these samples, over all ranks */
    double best;     /* test loss so far, where a run has patience; 0: none yet. A loss of 0 is DBL_MIN here */
    uint64_t waited; /* epochs since */
};

/* Safetensors files, readable by any reader of that format. They hold the parameters by their names in the model's
 * type, and "optimizer.0" and "optimizer.1". Metadata are the optimiser's kind and the position. For a model that
 * gyre_nn_train has trained on text, the metadata also hold the byte of each class, in hexadecimal ("alphabet").
 * write goes to path.new, which is flushed and renamed: whatever happens, `path` is the old file or the new one. A
 * device or a pipe there is GYRE_INVALID_ARGUMENT. read checks names, types, shapes, the kind of optimiser, and the
 * alphabet where both have one, before it changes anything. A model without an alphabet then gets the file's. optimizer
 * NULL: parameters alone. Not collective.
 * Errors: [pointer], [memory], [file].
 *   GYRE_INVALID_ARGUMENT  the file is damaged, or of another model, optimiser or alphabet; it is a device or a pipe */
/* Writes the parameters, the optimiser's state and the position to a file. */
GYRE_NN_API gyre_status gyre_nn_checkpoint_write(const char *path, const gyre_nn_model *model,
                                                 const gyre_nn_optimizer *optimizer,
                                                 const struct gyre_nn_position *position);
/* Reads a checkpoint into a model and its optimiser. */
GYRE_NN_API gyre_status gyre_nn_checkpoint_read(const char *path, gyre_nn_model *model, gyre_nn_optimizer *optimizer,
                                                struct gyre_nn_position *position_p);

/* The same with the whole state of a strategy: `data` of a local array has ranks × count elements. read refuses a file
 * of another strategy, and one whose arrays have other shapes. optimizer NULL: the optimiser's state is among the
 * arrays.
 * Errors: [pointer], [memory], [file].
 *   GYRE_INVALID_ARGUMENT  the file is of another strategy or number of ranks, or its arrays have other shapes */
/* Writes a checkpoint with the state of a strategy. */
GYRE_NN_API gyre_status gyre_nn_checkpoint_write_arrays(const char *path, const gyre_nn_model *model,
                                                        const gyre_nn_optimizer *optimizer,
                                                        const struct gyre_nn_position *position, const char *strategy,
                                                        int ranks, const struct gyre_nn_array *arrays, size_t narrays);
/* Reads a checkpoint with the state of a strategy. */
GYRE_NN_API gyre_status gyre_nn_checkpoint_read_arrays(const char *path, gyre_nn_model *model,
                                                       gyre_nn_optimizer *optimizer,
                                                       struct gyre_nn_position *position_p, const char *strategy,
                                                       int ranks, const struct gyre_nn_array *arrays, size_t narrays);

/* The parts of gyre_nn_train. All are collective except close and hide. `run` must not move between open and close.
 * open makes the optimiser and the strategy's state (strategy NULL: sync), and sends rank 0's parameters to all ranks.
 * close frees both; the communicator and the model stay. close comes before the communicator and the model end.
 * save writes a checkpoint by rank 0, with the arrays of all ranks. resume continues from one, which needs the same
 * strategy, kind of optimiser and number of ranks.
 * show puts the consensus into the model; hide puts this rank's own parameters back. Both do nothing where parameters
 * are replicated.
 * compare checks that the state that should be equal on every rank is equal. Otherwise it returns GYRE_MISMATCH, and
 * the message names the ranks that differ from most others.
 * Errors: [pointer], [memory], [ranks], [file].
 *   GYRE_INVALID_ARGUMENT  settings are not understood; the checkpoint does not fit
 *   GYRE_MISMATCH          what should be equal on every rank is not */
/* Makes the optimiser and the strategy's state of a run. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_run_open(gyre_nn_model *model, gyre_comm *comm,
                                         const struct gyre_nn_optimizer_config *optimizer,
                                         const gyre_nn_strategy *strategy, const char *settings, size_t bucket_bytes,
                                         double clip_norm, struct gyre_nn_run *run);
/* Frees what gyre_nn_run_open made. */
GYRE_NN_API void gyre_nn_run_close(struct gyre_nn_run *run);
/* Writes a checkpoint of a run. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_run_save(struct gyre_nn_run *run, const char *path,
                                         const struct gyre_nn_position *position);
/* Continues a run from a checkpoint. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_run_resume(struct gyre_nn_run *run, const char *path,
                                           struct gyre_nn_position *position_p);
/* Puts the consensus of the ranks into the model. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_run_show(struct gyre_nn_run *run);
/* Puts this rank's own parameters back. */
GYRE_NN_API void gyre_nn_run_hide(struct gyre_nn_run *run);
/* Checks that what should be equal on every rank is. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_run_compare(struct gyre_nn_run *run);

/* Histogram of staleness: how many steps old the values were that a rank mixed in or applied: 0, 1, …, 14, 15 and
 * more. It comes from a strategy's array named "staleness", of so many float64. Counts are 0 where there is no such
 * array. */
#define GYRE_NN_STALENESS_BINS 16

struct gyre_nn_report {           /* one per epoch */
    uint64_t epoch, epochs, step; /* epochs ended, of so many; steps of the run */
    double loss;                  /* mean training loss of the epoch */
    double test_loss, accuracy;   /* on the test samples; accuracy 0 to 1, or NaN for a reconstruction */
    double rate, seconds;         /* of the last step; spent in training since gyre_nn_train began */
};
/* `report` is the callee's to read until it returns. */
typedef void (*gyre_nn_report_func)(void *user, const struct gyre_nn_report *report);

struct gyre_nn_train_options {
    size_t size;               /* sizeof(struct gyre_nn_train_options) */
    size_t batch;              /* global batch */
    size_t epochs, accumulate; /* accumulate: a batch is computed in so many pieces, and communicated once */
    uint64_t seed;
    struct gyre_nn_optimizer_config optimizer;
    struct gyre_nn_schedule schedule; /* total 0: the steps of this run */
    double clip_norm;                 /* 0: no clipping */
    size_t bucket_bytes;
    const gyre_nn_strategy *strategy; /* NULL: sync */
    const char *settings;             /* of the strategy, "name=value,…", or NULL */
    uint64_t check_every;             /* steps between comparisons of the ranks' state; and at the end; 0: never */
    const char *checkpoint, *resume;  /* files or NULL; rank 0 writes and reads */
    uint64_t checkpoint_every;        /* steps; 0: at the end of each epoch */
    uint64_t stop_after;              /* steps of the whole run, 0: all epochs */
    gyre_nn_trace *trace;             /* or NULL */
    gyre_nn_report_func report;       /* or NULL; called on every rank */
    void *report_user;
    size_t patience;   /* epochs without a lower test loss, after which the run ends, with the model of the lowest; 0:
                        * never */
    double *staleness; /* or NULL: GYRE_NN_STALENESS_BINS counts to fill in, of all ranks */
};

struct gyre_nn_train_result {
    double accuracy, loss; /* on the test samples: share of right answers (NaN: reconstruction), mean cost */
    double seconds, samples_per_second; /* of training alone, since gyre_nn_train began; of all ranks together */
    uint64_t steps, params_xxh3;        /* of the whole run; gyre_nn_params_hash */
    int ranks;
};

/* Options that suit small classifiers: 30 epochs of batch 64, Adam, a cosine from 3e-3 to 0, seed 1, buckets of 256
 * KiB, strategy sync, ranks compared every 100 steps.
 * Errors: none. */
/* Returns the usual options of a training. */
GYRE_NN_API struct gyre_nn_train_options gyre_nn_train_defaults(void);

/* Trains to the end of `epochs` or `stop_after`. Collective. Every rank passes a model of the same modules, the same
 * options, and the same data, all of them. The parameters become those of rank 0. Every rank ends with the same
 * parameters, bit for bit.
 * Before the first step the ranks compare their modules, options and data, for which each rank reads its data once. A
 * difference is GYRE_MISMATCH on every rank, and the message says what differs. File names are not compared, nor labels
 * where the model learns without them.
 * Rank 0 reads `resume`, whose seed and position replace those of the options. A resumed run with the same options,
 * data and number of ranks ends with the same bits as an uninterrupted one. comm and result_p may be NULL.
 * Errors: [pointer], [memory], [ranks], [file].
 *   GYRE_INVALID_ARGUMENT  an option is out of its range; the data do not fit the model; `resume` does not fit
 *   GYRE_MISMATCH          the ranks have different models, options or data, or results that differ */
/* Trains a model. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_train(gyre_nn_model *model, const gyre_nn_dataset *data, gyre_comm *comm,
                                      const struct gyre_nn_train_options *options,
                                      struct gyre_nn_train_result *result_p);
/* Of an elastic run: how many ranks there are from which step on. */
struct gyre_nn_membership {
    uint64_t step; /* of the run: from this step on */
    int ranks;     /* so many ranks */
};
/* Called on every rank that takes part, at the beginning and after each change, with the communicator of these ranks
 * (NULL: one rank). step: the next one to be computed. If further ranks fail during a change, another call follows,
 * with the same step or the one before. It replaces the earlier call. */
typedef void (*gyre_nn_membership_func)(void *user, const gyre_comm *comm, const struct gyre_nn_membership *now);
/* What an elastic run is to do beside training. */
struct gyre_nn_elastic {
    size_t size;                             /* sizeof(struct gyre_nn_elastic) */
    int least;                               /* ranks, below which the run ends; 0 is 1 */
    gyre_nn_membership_func changed;         /* or NULL */
    void *user;                              /* first argument of `changed` */
    const struct gyre_nn_membership *replay; /* or NULL: of increasing steps */
    size_t replays;                          /* their number; a failure then ends the run */
    double grow; /* seconds between two checks for joining processes, by the clock of rank 0; 0: no process may join */
};

/* Training that continues without failed ranks, and lets processes join. A rank fails when it dies, stalls or is out of
 * reach (see gyre_comm_shrink). Its failure costs the step in flight and nothing else. The ranks that are left shrink
 * to a new communicator, and return to the state before that step, with the same bits on all of them. They divide the
 * remaining samples of the epoch among themselves and go on. No sample is lost or used twice: the others compute again
 * what the failed rank had computed of the step.
 * *comm is the caller's before and after. Afterwards it is the communicator of the ranks that are left; the one before
 * was destroyed. Every rank passes the same options, data and `elastic`.
 * Elastic training works with strategies without state of their own, whose parameters and optimiser are replicated:
 * sync and deterministic. It also works with strategies with the hook `common`, with delay=0: average, bmuf, slowmo,
 * diloco, easgd and admm. There a failure costs the steps since the last exchange. With each change of the ranks, every
 * rank begins its local state anew, above all the optimiser's state. Other strategies are GYRE_UNSUPPORTED.
 *
 * A process that joins (its communicator was made with GYRE_JOIN=1, see gyre_comm_grow) calls this function as the
 * others did, with the same options and data. It gets the state from its peers, whatever state it had itself. It takes
 * part from the next step on, and reports from there. The ranks check for joining processes every `grow` seconds. If a
 * rank has too little memory or too few descriptors for the check, no process joins, and nothing else is lost.
 *
 * With GYRE_ORDER=canonical the result is, bit for bit, that of a run whose ranks changed in the same way without any
 * failure. `replay` makes such a run. Its world has at least as many ranks as its largest membership, and all of them
 * end with the result. This holds only if matrix products use the same number of threads. The number of ranks that
 * share a host's cores may change with the ranks, so set a fixed number with gyre_nn_set_blas_threads. With
 * deterministic the result is that of any undisturbed run.
 *
 * Costs: a copy of parameters and optimiser state after each step (or exchange), in time and in memory; a sum of three
 * numbers per step (or exchange); an agreement per epoch and per check for joining processes. An epoch may be reported
 * twice, when a rank fails in it.
 * Errors: [pointer], [memory], [ranks], [file].
 *   GYRE_INVALID_ARGUMENT  a pointer or an option is wrong
 *   GYRE_UNSUPPORTED       the strategy cannot be elastic
 *   GYRE_PARTITIONED       fewer than `least` ranks, or none that has the state, are left
 *   GYRE_EXCLUDED          the other ranks took this one for failed */
/* Trains a model, without the ranks that fail and with those that join. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_train_elastic(gyre_nn_model *model, const gyre_nn_dataset *data, gyre_comm **comm,
                                              const struct gyre_nn_train_options *options,
                                              const struct gyre_nn_elastic *elastic,
                                              struct gyre_nn_train_result *result_p);

/* Gives the mean cost and the share of right answers on the samples numbered in `rows`, which the ranks divide.
 * Collective; every rank passes the same rows and has the same result. comm may be NULL.
 * Errors: [pointer], [memory], [ranks].
 *   GYRE_INVALID_ARGUMENT  a number in rows is beyond the samples; the data do not fit the model */
/* Tests a model. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_test(gyre_nn_model *model, const gyre_nn_dataset *data, const uint32_t *rows,
                                     size_t count, gyre_comm *comm, double *loss_p, double *accuracy_p);

/* hidden: the share of communication that is hidden, (serial − overlapped) / communication, from `rounds` interleaved
 * steps of each kind on a copy of the model. Median and quartiles over the rounds, not clamped. A value below 0 or
 * above 1 means that the machine's speed changed meanwhile, or that moving the bytes takes the cores that compute.
 * The share of what could be hidden is (serial − overlapped) / min(communication, serial − communication).
 * Communication hides behind backward, the update and the next forward, which are all of a serial step except its
 * communication.
 * overlapped: per step of some consecutive steps, as in training, where a step's communication goes on behind the next
 * forward (gyre_nn_sync_ahead). Times are in seconds: per step that of the slowest rank, medians over the rounds. With
 * one rank there is nothing to hide: NaN. Collective. comm may be NULL.
 * Errors: [pointer], [memory], [ranks].
 *   GYRE_INVALID_ARGUMENT  rounds is 0; an option is out of its range; the data do not fit the model */
struct gyre_nn_overlap {
    double hidden, hidden_low, hidden_high;
    double compute, backward, communication, serial, overlapped;
    size_t rounds, buckets;
};
/* Measures how much of the communication is hidden. Collective; blocking. */
GYRE_NN_API gyre_status gyre_nn_measure_overlap(const gyre_nn_model *model, const gyre_nn_dataset *data,
                                                gyre_comm *comm, const struct gyre_nn_train_options *options,
                                                size_t rounds, struct gyre_nn_overlap *overlap_p);

#ifdef __cplusplus
}
#endif
#endif
