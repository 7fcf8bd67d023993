/* Data sets as CSV of arbitrary bytes: they are refused, or every value, label and name can be read. */
#include "data/dataset.h"
#include "fuzz/fuzz.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gy_nn_bytes text = {.data = malloc(size + 1), .size = size};
    gyre_nn_dataset *set = NULL;
    if (!text.data)
        return 0;
    memcpy(text.data, data, size);
    text.data[size] = 0;
    if (gy_nn_csv_parse(&text, "input", &set) == GYRE_SUCCESS) {
        size_t names = 0;
        while (set->names && set->names[names])
            names++;
        for (size_t i = 0; i < set->samples * set->features; i++)
            if (!isfinite(set->x[i]))
                abort();
        for (size_t i = 0; i < set->samples; i++)
            if (set->labels[i] < 0 || set->labels[i] >= GY_NN_LARGEST_CLASS ||
                (set->names && (size_t)set->labels[i] >= names))
                abort();
    }
    gyre_nn_dataset_free(set);
    free(text.data);
    return 0;
}
