/* Threads within a rank: every grid of them computes what one thread computes, within rounding, and the same bits again
 * and again; each is there when it is asked for and gone afterwards; in a child of a fork the same bits come without
 * them. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <gyre/nn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAMPLES 67
#define FEATURES 70
#define MOST 40000

static double x[SAMPLES * FEATURES];
static int32_t labels[SAMPLES];

static int tasks(void)
{
    DIR *entries = opendir("/proc/self/task");
    int count = -2; /* . and .. */
    cr_assert_not_null(entries);
    while (readdir(entries))
        count++;
    closedir(entries);
    return count;
}

static size_t gradients(double *grads)
{
    static const size_t hidden[] = {150, 90};
    gyre_nn_model *model = NULL;
    double cost;
    cr_assert_eq(gyre_nn_mlp(FEATURES, hidden, 2, GYRE_NN_TANH, 10, GYRE_FLOAT64, 3, &model), GYRE_SUCCESS);
    for (size_t i = 0; i < SAMPLES * FEATURES; i++)
        x[i] = sin((double)i);
    for (size_t i = 0; i < SAMPLES; i++)
        labels[i] = (int32_t)(i % 10);
    gyre_nn_zero_grads(model);
    cr_assert_eq(gyre_nn_forward(model, x, SAMPLES, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_evaluate(model, labels, NULL, &cost, NULL), GYRE_SUCCESS);
    cr_assert_eq(gyre_nn_backward(model, NULL, NULL), GYRE_SUCCESS);
    size_t count = gyre_nn_param_count(model);
    cr_assert(count <= MOST);
    memcpy(grads, gyre_nn_grads(model), count * sizeof(double));
    gyre_nn_free(model);
    return count;
}

Test(team, every_grid_computes_the_same)
{
    static const size_t grids[][2] = {{2, 1}, {1, 2}, {2, 2}, {3, 2}, {1, 5}};
    static double alone[MOST], shared[MOST], again[MOST], child[MOST];
    gyre_nn_set_blas_threads(1);
    int before = tasks();
    size_t count = gradients(alone);
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
        size_t threads = grids[g][0] * grids[g][1];
        cr_assert_eq(gyre_nn_set_threads(grids[g][0], grids[g][1]), GYRE_SUCCESS, "%s", gyre_nn_last_error());
        cr_assert_eq(tasks(), before + (int)threads - 1, "%d threads, not %zu", tasks(), threads);
        gradients(shared);
        double largest = 0, scale = 0;
        for (size_t i = 0; i < count; i++) {
            largest = fmax(largest, fabs(shared[i] - alone[i]));
            scale = fmax(scale, fabs(alone[i]));
        }
        cr_assert(largest <= 1e-12 * scale, "%zu x %zu threads: a difference of %g", grids[g][0], grids[g][1], largest);
        for (int round = 0; round < 20; round++) {
            gradients(again);
            cr_assert_eq(memcmp(again, shared, count * sizeof(double)), 0);
        }
        pid_t pid = fork();
        if (pid == 0) {
            gradients(child);
            _exit(memcmp(child, shared, count * sizeof(double)) != 0);
        }
        int status = 1;
        waitpid(pid, &status, 0);
        cr_assert_eq(status, 0, "a child of a fork has other bits, or none");
    }
    cr_assert_eq(gyre_nn_set_threads(1, 1), GYRE_SUCCESS);
    cr_assert_eq(tasks(), before);
    gradients(again);
    cr_assert_eq(memcmp(again, alone, count * sizeof(double)), 0);
}

Test(team, refuses)
{
    cr_assert_eq(gyre_nn_set_threads(0, 1), GYRE_INVALID_ARGUMENT);
    cr_assert_eq(gyre_nn_set_threads(20, 20), GYRE_INVALID_ARGUMENT);
    cr_assert(strstr(gyre_nn_last_error(), "between 1 and 256"));
}
