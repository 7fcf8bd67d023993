/* compressed: sync with compressed gradients and error feedback (Seide et al., 2014; Karimireddy et al., 2019). Each
 * rank keeps the part of its gradient that compression removed, and adds it to the next gradient:
 *
 *     p = gradient/rows + e,   all ranks get Σ C(p),   e ← p − C(p)
 *
 * Nothing is lost: the sent part and the kept part make up the gradients. The codecs are files of their own: bf16
 * and int8 (compress_bytes.c), topk, powersgd. The exchange comes after backward; it is not overlapped. */
#include "strategies/compress.h"
#include "strategies/strategies.h"

#include <stdio.h>
#include <stdlib.h>

static const struct gy_nn_codec *const codecs[] = {
    &gy_nn_codec_bf16,
    &gy_nn_codec_int8,
    &gy_nn_codec_topk,
    &gy_nn_codec_powersgd,
};
static const char *const names[] = {"bf16", "int8", "topk", "powersgd", NULL};

static const struct gyre_nn_setting settings[] = {
    {.name = "by", .most = 3, .choices = names, .help = "how gradients are compressed"},
    {.name = "share", .value = 0.05, .least = 1e-6, .most = 1, .help = "topk: share of the elements that are sent"},
    {.name = "rank",
     .value = 4,
     .least = 1,
     .most = 64,
     .choices = gy_nn_whole,
     .help = "powersgd: rank of the approximation of a matrix"},
    {0},
};

static void close(void *user)
{
    struct gy_nn_compress *self = user;
    self->codec->close(self);
    free(self->residual.data);
    free(self);
}

/* Refuses a setting that the chosen codec does not have: it would be ignored without a message. */
static gyre_status check_settings(const struct gyre_nn_run *run)
{
    static const struct {
        int setting;
        const struct gy_nn_codec *codec;
    } owners[] = {{GY_NN_SHARE, &gy_nn_codec_topk}, {GY_NN_RANK, &gy_nn_codec_powersgd}};
    int by = (int)run->settings[GY_NN_BY];
    char text[96];
    for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
        const struct gyre_nn_setting *setting = &settings[owners[i].setting];
        if (codecs[by] == owners[i].codec || !(run->settings[owners[i].setting] != setting->value))
            continue;
        snprintf(text, sizeof(text), "strategy compressed: by=%s has no %s, which is of by=%s", names[by],
                 setting->name, i ? "powersgd" : "topk");
        return gyre_nn_fail(GYRE_INVALID_ARGUMENT, NULL, text);
    }
    return GYRE_SUCCESS;
}

/* Statistics would share scales, or the few elements that are sent, with gradients of another size. */
static gyre_status check_model(const gyre_nn_model *model)
{
    for (size_t i = 0; i < gyre_nn_tensor_count(model); i++)
        if (gyre_nn_tensor_is_statistic(model, i))
            return gyre_nn_fail(GYRE_INVALID_ARGUMENT, NULL,
                                "strategy compressed: a batch norm's running statistics travel with the gradients and "
                                "cannot be compressed with them; use another strategy");
    return GYRE_SUCCESS;
}

static gyre_status open(const struct gyre_nn_run *run, void **self_p)
{
    if (check_settings(run) != GYRE_SUCCESS || check_model(run->model) != GYRE_SUCCESS)
        return GYRE_INVALID_ARGUMENT;
    struct gy_nn_compress *self = calloc(1, sizeof(*self));
    if (!self)
        return gyre_nn_fail(GYRE_NO_MEMORY, NULL, "no memory for the strategy compressed");
    gyre_dtype dtype = gyre_nn_dtype(run->model);
    self->run = *run;
    self->count = gyre_nn_param_count(run->model);
    self->params = (struct gy_vector){dtype, gyre_nn_params(run->model)};
    self->grads = (struct gy_vector){dtype, gyre_nn_grads(run->model)};
    self->residual = (struct gy_vector){dtype, calloc(self->count, gyre_dtype_size(dtype))};
    self->codec = codecs[(int)run->settings[GY_NN_BY]];
    gyre_status status = self->residual.data ? self->codec->open(self) : GYRE_NO_MEMORY;
    if (status != GYRE_SUCCESS) {
        close(self);
        return gyre_nn_fail(status, NULL, "no memory to compress gradients");
    }
    *self_p = self;
    return GYRE_SUCCESS;
}

static gyre_status update(void *user, const struct gyre_nn_step *step)
{
    struct gy_nn_compress *self = user;
    gy_vector_add(0, self->count, 1 / (double)step->global_rows, self->grads, self->residual);
    gyre_status status = self->codec->exchange(self);
    if (status != GYRE_SUCCESS)
        return gyre_nn_fail(status, self->run.comm, "exchanging compressed gradients");
    double scale = gy_vector_clip(self->run.model, self->grads, 1, self->run.clip_norm);
    gyre_nn_optimizer_begin(self->run.optimizer);
    gyre_nn_optimizer_update(self->run.optimizer, 0, self->count, step->rate, scale);
    return GYRE_SUCCESS;
}

static gyre_status arrays(void *user, struct gyre_nn_array *arrays_p, size_t *count_p)
{
    struct gy_nn_compress *self = user;
    size_t n = 0;
    arrays_p[n++] = (struct gyre_nn_array){.name = "compressed.residual",
                                           .data = self->residual.data,
                                           .count = self->count,
                                           .dtype = self->residual.dtype,
                                           .placement = GYRE_NN_LOCAL};
    if (self->codec->arrays)
        self->codec->arrays(self, arrays_p, &n);
    *count_p = n;
    return GYRE_SUCCESS;
}

const gyre_nn_strategy gy_nn_compressed = {
    .size = sizeof(gyre_nn_strategy),
    .name = "compressed",
    .help = "sync with compressed gradients and error feedback",
    .settings = settings,
    .open = open,
    .close = close,
    .update = update,
    .arrays = arrays,
};
