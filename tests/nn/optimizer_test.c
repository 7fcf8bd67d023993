/* Each optimiser's formula, written out once more in scalar form, over several steps; and the schedules' values. */
#include <criterion/criterion.h>
#include <gyre/nn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gyre_nn_model *tiny(void)
{
    gyre_nn_model *model = NULL;
    cr_assert_eq(gyre_nn_mlp(2, NULL, 0, GYRE_NN_RELU, 2, GYRE_FLOAT64, 3, &model), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_param_count(model), 6);
    return model;
}

struct reference {
    double p, m, v;
};

static void reference_step(const struct gyre_nn_optimizer_config *c, struct reference *r, double g, double rate, int t)
{
    if (c->kind == GYRE_NN_ADAMW)
        r->p -= rate * c->weight_decay * r->p;
    else
        g += c->weight_decay * r->p;
    switch (c->kind) {
    case GYRE_NN_SGD: r->p -= rate * g; break;
    case GYRE_NN_MOMENTUM:
        r->m = c->momentum * r->m + g;
        r->p -= rate * r->m;
        break;
    case GYRE_NN_NESTEROV:
        r->m = c->momentum * r->m + g;
        r->p -= rate * (g + c->momentum * r->m);
        break;
    default:
        r->m = c->beta1 * r->m + (1 - c->beta1) * g;
        r->v = c->beta2 * r->v + (1 - c->beta2) * g * g;
        double m = r->m / (1 - pow(c->beta1, t)), v = r->v / (1 - pow(c->beta2, t));
        r->p -= rate * m / (sqrt(v) + c->epsilon);
    }
}

static void check(gyre_nn_optimizer_kind kind)
{
    gyre_nn_model *model = tiny();
    gyre_nn_optimizer *optimizer = NULL;
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(kind);
    config.weight_decay = 0.05;
    cr_assert_eq(gyre_nn_optimizer_create(model, &config, &optimizer), GYRE_SUCCESS);
    double *params = gyre_nn_params(model), *grads = gyre_nn_grads(model);
    struct reference reference[6] = {0};
    for (int i = 0; i < 6; i++)
        reference[i].p = params[i];
    for (int t = 1; t <= 5; t++) {
        double rate = 0.1 / t;
        for (int i = 0; i < 6; i++) {
            grads[i] = 4 * sin(t + 2.5 * i); /* the sum over 4 samples */
            reference_step(&config, &reference[i], grads[i] / 4, rate, t);
        }
        gyre_nn_optimizer_begin(optimizer);
        gyre_nn_optimizer_update(optimizer, 4, 2, rate, 0.25); /* slices, last first, as buckets come */
        gyre_nn_optimizer_update(optimizer, 0, 4, rate, 0.25);
        for (int i = 0; i < 6; i++)
            cr_assert_float_eq(params[i], reference[i].p, 1e-12, "step %d, parameter %d: %.15g, not %.15g", t, i,
                               params[i], reference[i].p);
    }
    gyre_nn_optimizer_free(optimizer);
    gyre_nn_free(model);
}

Test(optimizer, sgd)
{
    check(GYRE_NN_SGD);
}
Test(optimizer, momentum)
{
    check(GYRE_NN_MOMENTUM);
}
Test(optimizer, nesterov)
{
    check(GYRE_NN_NESTEROV);
}
Test(optimizer, adam)
{
    check(GYRE_NN_ADAM);
}
Test(optimizer, adamw)
{
    check(GYRE_NN_ADAMW);
}

Test(optimizer, clipping_bounds_the_norm_of_the_mean_gradient)
{
    gyre_nn_model *model = tiny();
    gyre_nn_optimizer *optimizer = NULL;
    gyre_nn_sync *sync = NULL;
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    cr_assert_eq(gyre_nn_optimizer_create(model, &config, &optimizer), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_sync_attach(model, optimizer, NULL, 16, &sync), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_sync_bucket_count(sync), 3);
    double *params = gyre_nn_params(model), *grads = gyre_nn_grads(model), before[6], moved = 0;
    for (int i = 0; i < 6; i++) {
        before[i] = params[i];
        grads[i] = 10.0 * (i + 1);
    }
    gyre_nn_sync_begin(sync);
    cr_assert_eq(gyre_nn_sync_finish(sync, 1, 2, 0.5), GYRE_SUCCESS);
    for (int i = 0; i < 6; i++)
        moved += (params[i] - before[i]) * (params[i] - before[i]);
    cr_assert_float_eq(sqrt(moved), 0.5, 1e-12);
    gyre_nn_sync_detach(sync);
    gyre_nn_optimizer_free(optimizer);
    gyre_nn_free(model);
}

Test(optimizer, buckets_tile_the_arena_from_its_end)
{
    gyre_nn_model *model = tiny();
    gyre_nn_optimizer *optimizer = NULL;
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_SGD);
    gyre_nn_optimizer_create(model, &config, &optimizer);
    for (size_t bytes = 0; bytes < 64; bytes += 8) {
        gyre_nn_sync *sync = NULL;
        cr_assert_eq(gyre_nn_sync_attach(model, optimizer, NULL, bytes, &sync), GYRE_SUCCESS);
        size_t edge = 6, first, count;
        for (size_t i = 0; i < gyre_nn_sync_bucket_count(sync); i++) {
            gyre_nn_sync_bucket(sync, i, &first, &count);
            cr_assert_eq(first + count, edge);
            cr_assert_gt(count, 0);
            edge = first;
        }
        cr_assert_eq(edge, 0);
        gyre_nn_sync_detach(sync);
    }
    gyre_nn_optimizer_free(optimizer);
    gyre_nn_free(model);
}

/* Its arrays are shorter than what a checkpoint has, or what attach sends. */
Test(optimizer, of_a_part_is_refused_where_the_whole_is_needed)
{
    char path[] = "/tmp/gyre_nn_XXXXXX", nowhere[80];
    size_t hidden = 64;
    gyre_nn_model *model = NULL;
    gyre_nn_optimizer *whole = NULL, *part = NULL;
    gyre_nn_sync *sync = NULL;
    struct gyre_nn_position position = {0};
    struct gyre_nn_optimizer_config config = gyre_nn_optimizer_defaults(GYRE_NN_ADAM);
    cr_assert_neq(close(mkstemp(path)), -1);
    snprintf(nowhere, sizeof(nowhere), "%s.part", path);
    cr_assert_eq(gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 1, &model), GYRE_SUCCESS);
    size_t count = gyre_nn_param_count(model);
    cr_assert_eq(gyre_nn_optimizer_create_part(model, &config, 0, count, &whole), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_checkpoint_write(path, model, whole, &position), GYRE_SUCCESS);
    for (size_t first = 0; first < 32; first += 16) {
        cr_assert_eq(gyre_nn_optimizer_create_part(model, &config, first, 16, &part), GYRE_SUCCESS);
        cr_assert_eq(gyre_nn_checkpoint_write(nowhere, model, part, &position), GYRE_INVALID_ARGUMENT);
        cr_assert(strstr(gyre_nn_last_error(), "a checkpoint needs the optimiser of a whole model"), "%s",
                  gyre_nn_last_error());
        cr_assert_eq(access(nowhere, F_OK), -1);
        cr_assert_eq(gyre_nn_checkpoint_read(path, model, part, &position), GYRE_INVALID_ARGUMENT);
        cr_assert_eq(gyre_nn_checkpoint_read_arrays(path, model, part, &position, "sync", 1, NULL, 0),
                     GYRE_INVALID_ARGUMENT);
        cr_assert_eq(gyre_nn_sync_attach(model, part, NULL, 0, &sync), GYRE_INVALID_ARGUMENT);
        cr_assert(strstr(gyre_nn_last_error(), "and this one is of 16"), "%s", gyre_nn_last_error());
        gyre_nn_optimizer_free(part);
    }
    cr_assert_eq(gyre_nn_checkpoint_read(path, model, whole, &position), GYRE_SUCCESS, "%s", gyre_nn_last_error());
    remove(path);
    gyre_nn_optimizer_free(whole);
    gyre_nn_free(model);
}

Test(schedule, values)
{
    struct gyre_nn_schedule s = {
        .kind = GYRE_NN_CONSTANT, .rate = 0.4, .factor = 0.5, .warmup = 4, .every = 10, .total = 104};
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 0), 0.1, 1e-15);
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 3), 0.4, 1e-15);
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 1000), 0.4, 1e-15);
    s.kind = GYRE_NN_STEP;
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 13), 0.4, 1e-15);
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 14), 0.2, 1e-15);
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 35), 0.05, 1e-15);
    s.kind = GYRE_NN_COSINE;
    s.floor = 0.02;
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 4), 0.4, 1e-15);
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 54), 0.21, 1e-12);
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 104), 0.02, 1e-15);
    cr_assert_float_eq(gyre_nn_schedule_rate(&s, 5000), 0.02, 1e-15);
}
