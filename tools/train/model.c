/* A row per kind of model: what it reads, which options it has, and how it is made; and the text that one writes. */
#include "train/model.h"

#include "common/options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const model_names[] = {"mlp", "autoencoder", "lstm", "transformer", "recommender", "cnn", NULL};

static const struct kind {
    bool text, sessions;                                           /* what it reads; else tables of numbers */
    bool hidden, activation, width, heads, blocks, dropout, image; /* its options */
    size_t default_hidden[2], default_channels[2], default_width;
} kinds[MODEL_COUNT] = {
    [MODEL_MLP] = {.hidden = true, .activation = true, .default_hidden = {128}},
    [MODEL_AUTOENCODER] = {.hidden = true, .activation = true, .default_hidden = {48, 16}},
    [MODEL_LSTM] =
        {.text = true, .hidden = true, .width = true, .dropout = true, .default_hidden = {128}, .default_width = 32},
    [MODEL_TRANSFORMER] =
        {.text = true, .width = true, .heads = true, .blocks = true, .dropout = true, .default_width = 64},
    [MODEL_RECOMMENDER] =
        {.sessions = true, .hidden = true, .width = true, .heads = true, .default_hidden = {32}, .default_width = 32},
    [MODEL_CNN] =
        {.hidden = true, .dropout = true, .image = true, .default_hidden = {128}, .default_channels = {32, 64}},
};

static void refuse_if(bool given, const char *option, const struct model_options *options)
{
    if (given)
        gy_options_refuse("%s is no option of --model %s", option, model_names[options->kind]);
}

static size_t or_default(size_t given, size_t value)
{
    return given ? given : value;
}

void model_options_settle(struct model_options *options, const char *data)
{
    const struct kind *kind = &kinds[options->kind];
    bool text = strncmp(data, "text:", 5) == 0, sessions = strncmp(data, "sessions", 8) == 0;
    if (kind->text != text)
        gy_options_refuse(text ? "--model %s does not read text; lstm and transformer do"
                               : "--model %s needs --data text:FILE",
                          model_names[options->kind]);
    if (kind->sessions != sessions)
        gy_options_refuse(sessions ? "--model %s does not read sessions; recommender does"
                                   : "--model %s needs --data sessions",
                          model_names[options->kind]);
    refuse_if(!kind->hidden && options->nhidden, "--hidden", options);
    refuse_if(!kind->activation && options->activation, "--activation", options);
    refuse_if(!kind->width && options->width, "--width", options);
    refuse_if(!kind->blocks && options->blocks, "--blocks", options);
    refuse_if(!kind->heads && options->heads, "--heads", options);
    refuse_if(!kind->dropout && options->dropout > 0, "--dropout", options);
    refuse_if(!kind->text && options->context, "--context", options);
    refuse_if(!kind->image && options->nchannels, "--channels", options);
    refuse_if(!kind->image && options->image.height, "--image", options);
    for (size_t i = 0; i < 2 && kind->default_channels[i] && options->nchannels == i; i++)
        options->channels[options->nchannels++] = kind->default_channels[i];
    for (size_t i = 0; i < 2 && kind->default_hidden[i] && options->nhidden == i; i++)
        options->hidden[options->nhidden++] = kind->default_hidden[i];
    options->activation = options->activation ? options->activation : GYRE_NN_RELU;
    options->width = or_default(options->width, kind->default_width);
    options->heads = or_default(options->heads, kind->sessions ? 2 : 4);
    options->blocks = or_default(options->blocks, 2);
    options->context = or_default(options->context, 64);
    if (kind->sessions && options->nhidden != 1)
        gy_options_refuse("--hidden: a recommender's autoencoder has one size of hidden layers");
    if (kind->heads && options->width % options->heads != 0)
        gy_options_refuse("--heads %zu do not divide --width %zu", options->heads, options->width);
}

gyre_status model_open_data(const struct model_options *options, const char *name, gyre_nn_dataset **data_p)
{
    if (kinds[options->kind].text)
        return gyre_nn_text_open(name + strlen("text:"), options->context, data_p);
    return gyre_nn_dataset_open(name, data_p);
}

/* The shape that was given, or else the one that the data know. */
static gyre_status make_cnn(const struct model_options *o, const gyre_nn_dataset *data, uint64_t seed,
                            gyre_nn_model **model_p)
{
    struct gyre_nn_image image = o->image.height ? o->image : data->image;
    char text[160];
    if (image.height == 0)
        return gyre_nn_fail(GYRE_INVALID_ARGUMENT, NULL,
                            "--model cnn: these data do not tell the shape of their images: give --image HxWxC");
    if (image.height * image.width * image.channels != data->features) {
        snprintf(text, sizeof(text), "--image %zux%zux%zu has %zu values, and a sample of these data has %zu",
                 image.height, image.width, image.channels, image.height * image.width * image.channels,
                 data->features);
        return gyre_nn_fail(GYRE_INVALID_ARGUMENT, NULL, text);
    }
    return gyre_nn_cnn(&image, o->channels, o->nchannels, o->hidden, o->nhidden, o->dropout, data->classes, o->dtype,
                       seed, model_p);
}

gyre_status model_make(const struct model_options *o, const gyre_nn_dataset *data, uint64_t seed,
                       gyre_nn_model **model_p)
{
    switch (o->kind) {
    case MODEL_CNN: return make_cnn(o, data, seed, model_p);
    case MODEL_AUTOENCODER:
        return gyre_nn_autoencoder(data->features, o->hidden, o->nhidden, o->activation, o->dtype, seed, model_p);
    case MODEL_LSTM:
        return gyre_nn_character_lstm(data->steps, data->classes, o->width, o->hidden, o->nhidden, o->dropout, o->dtype,
                                      seed, model_p);
    case MODEL_RECOMMENDER: {
        struct gyre_nn_sessions how = gyre_nn_sessions_defaults();
        return gyre_nn_recommender(how.steps, data->classes, data->features - how.steps, o->width, o->hidden[0],
                                   o->heads, o->dtype, seed, model_p);
    }
    case MODEL_TRANSFORMER:
        return gyre_nn_transformer(data->steps, data->classes, o->width, o->heads, o->blocks, o->dropout, o->dtype,
                                   seed, model_p);
    default:
        return gyre_nn_mlp(data->features, o->hidden, o->nhidden, o->activation, data->classes, o->dtype, seed,
                           model_p);
    }
}

static double value_at(const gyre_nn_model *model, const void *array, size_t index)
{
    return gyre_nn_dtype(model) == GYRE_FLOAT64 ? ((const double *)array)[index]
                                                : (double)((const float *)array)[index];
}

/* The class that `drawn`, from [0, 1), falls to in the softmax of a row of outputs. */
static size_t pick(const gyre_nn_model *model, const void *outputs, size_t row, double drawn)
{
    size_t classes = gyre_nn_outputs(model), first = row * classes;
    double top = value_at(model, outputs, first), sum = 0;
    for (size_t c = 1; c < classes; c++)
        top = fmax(top, value_at(model, outputs, first + c));
    for (size_t c = 0; c < classes; c++)
        sum += exp(value_at(model, outputs, first + c) - top);
    for (size_t c = 0; c + 1 < classes; c++) {
        drawn -= exp(value_at(model, outputs, first + c) - top) / sum;
        if (drawn < 0)
            return c;
    }
    return classes - 1;
}

/* The context, which is the text so far or its end, grows in place. When it is full, its later half is kept. Values
 * behind its end have no effect, as no step of these models attends to later ones. */
gyre_status model_write_text(gyre_nn_model *model, const gyre_nn_dataset *data, size_t count, uint64_t seed)
{
    size_t steps = data->steps, length = 1;
    float *narrow = calloc(steps, sizeof(*narrow));
    double *wide = calloc(steps, sizeof(*wide));
    uint64_t mixed = (seed + 1) * UINT64_C(0x9E3779B97F4A7C15); /* the first draws of a small state are near 0 */
    unsigned short state[3] = {(unsigned short)(mixed >> 16), (unsigned short)(mixed >> 32),
                               (unsigned short)(mixed >> 48)};
    gyre_status status = narrow && wide ? GYRE_SUCCESS : GYRE_NO_MEMORY;
    gyre_nn_test_mode(model);
    if (status == GYRE_SUCCESS)
        wide[0] = narrow[0] = data->x[0];
    for (size_t i = 0; i < count && status == GYRE_SUCCESS; i++) {
        const void *outputs = NULL;
        status = gyre_nn_forward(model, gyre_nn_dtype(model) == GYRE_FLOAT64 ? (void *)wide : narrow, 1, &outputs);
        if (status != GYRE_SUCCESS)
            break;
        size_t next = pick(model, outputs, length - 1, erand48(state));
        putchar(data->alphabet[next]);
        if (length == steps) {
            length = steps / 2;
            memmove(narrow, narrow + steps - length, length * sizeof(*narrow));
            memmove(wide, wide + steps - length, length * sizeof(*wide));
        }
        wide[length] = narrow[length] = (float)next;
        length++;
    }
    putchar('\n');
    free(narrow);
    free(wide);
    return status;
}
