/* Text as a task: guess the next byte. The text is cut into samples of `steps` bytes; the labels are the same bytes one
 * place further, so every byte but the first is guessed once.
 *
 *     text    h e l l o _ w o r l d        steps 4
 *     x       h e l l|o _ w o              labels   e l l o|_ w o r
 *
 * Classes are the bytes that occur. The last tenth of the samples is for testing: a later part of the text. */
#include "base/error.h"
#include "base/require.h"
#include "data/dataset.h"

#include <stdlib.h>

static size_t list_alphabet(const struct gy_nn_bytes *text, int32_t class_of[256], char alphabet[256])
{
    size_t classes = 0;
    bool seen[256] = {false};
    for (size_t i = 0; i < text->size; i++)
        seen[text->data[i]] = true;
    for (int b = 0; b < 256; b++)
        if (seen[b]) {
            class_of[b] = (int32_t)classes;
            alphabet[classes++] = (char)b;
        }
    return classes;
}

static gyre_status parse(const struct gy_nn_bytes *text, const char *path, size_t steps, gyre_nn_dataset **data_p)
{
    int32_t class_of[256];
    gyre_nn_dataset *data;
    size_t samples = text->size > 0 ? (text->size - 1) / steps : 0;
    if (samples < 2)
        return gy_nn_fail(
            GYRE_INVALID_ARGUMENT,
            "%s has %zu bytes, too few for two samples of %zu steps and the byte behind them: more text or "
            "a shorter context is needed",
            path, text->size, steps);
    gyre_status status = gy_nn_dataset_alloc(samples, steps, steps, &data);
    if (status != GYRE_SUCCESS)
        return status;
    data->alphabet = calloc(256, 1);
    if (!data->alphabet) {
        gyre_nn_dataset_free(data);
        return gy_nn_fail(GYRE_NO_MEMORY, "no memory for an alphabet");
    }
    size_t classes = list_alphabet(text, class_of, data->alphabet);
    for (size_t i = 0; i < samples * steps; i++) {
        data->x[i] = (float)class_of[text->data[i]];
        data->labels[i] = class_of[text->data[i + 1]];
    }
    status = gy_nn_dataset_split_at(data, samples - (samples + 9) / 10);
    data->classes = classes; /* a byte that occurs in the remainder alone counts as well */
    *data_p = data;
    return status;
}

gyre_status gyre_nn_text_open(const char *path, size_t steps, gyre_nn_dataset **data_p)
{
    GY_NN_REQUIRE(path, data_p);
    struct gy_nn_bytes text;
    if (steps == 0 || steps > 65536)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "samples of %zu bytes; between 1 and 65536 are allowed", steps);
    gyre_status status = gy_nn_bytes_read(path, &text, NULL);
    if (status != GYRE_SUCCESS)
        return status;
    status = parse(&text, path, steps, data_p);
    free(text.data);
    return status;
}
