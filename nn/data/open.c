/* A data set by its name: which reader opens it. */
#include "data/dataset.h"

#include "base/error.h"
#include "base/require.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_STEPS ((size_t)64)

/* "" or ":SEED" */
static gyre_status open_sessions(const char *seed, gyre_nn_dataset **data_p)
{
    struct gyre_nn_sessions how = gyre_nn_sessions_defaults();
    char *stop = NULL;
    if (*seed)
        how.seed = strtoull(seed + 1, &stop, 10);
    if (*seed && (seed[1] < '0' || seed[1] > '9' || *stop))
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "sessions:%.32s: the seed is a number", seed + 1);
    return gyre_nn_sessions_open(&how, data_p);
}

gyre_status gyre_nn_dataset_open(const char *name, gyre_nn_dataset **data_p)
{
    GY_NN_REQUIRE(name, data_p);
    if (strcmp(name, "digits") == 0)
        return gy_nn_digits_open(data_p);
    if (strncmp(name, "idx:", 4) == 0)
        return gy_nn_idx_open(name + 4, data_p);
    if (strncmp(name, "csv:", 4) == 0)
        return gy_nn_csv_open(name + 4, data_p);
    if (strncmp(name, "npy:", 4) == 0)
        return gy_nn_npy_open(name + 4, data_p);
    if (strncmp(name, "text:", 5) == 0)
        return gyre_nn_text_open(name + 5, DEFAULT_STEPS, data_p);
    if (strcmp(name, "sessions") == 0 || strncmp(name, "sessions:", 9) == 0)
        return open_sessions(name + 8, data_p);
    return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                      "there is no data \"%s\"; use digits, sessions, idx:DIR, csv:FILE, npy:FILE or text:FILE", name);
}
