/* The built-in digits: nn/data/digits.csv.gz, put into the library as it is. */
#include "data/dataset.h"

#include <stdlib.h>

__asm__(".pushsection .rodata\n"
        ".hidden gy_nn_digits_packed\n"
        ".global gy_nn_digits_packed\n"
        "gy_nn_digits_packed:\n"
        ".incbin \"" GY_NN_DIGITS_FILE "\"\n"
        ".hidden gy_nn_digits_packed_end\n"
        ".global gy_nn_digits_packed_end\n"
        "gy_nn_digits_packed_end:\n"
        ".popsection\n");
extern const uint8_t gy_nn_digits_packed[], gy_nn_digits_packed_end[];

gyre_status gy_nn_digits_open(gyre_nn_dataset **data_p)
{
    struct gy_nn_bytes text;
    gyre_nn_dataset *data;
    size_t size = (size_t)(gy_nn_digits_packed_end - gy_nn_digits_packed);
    gyre_status status = gy_nn_bytes_unpack(gy_nn_digits_packed, size, "the built-in digits", &text);
    if (status != GYRE_SUCCESS)
        return status;
    status = gy_nn_csv_parse(&text, "the built-in digits", &data);
    free(text.data);
    if (status != GYRE_SUCCESS)
        return status;
    for (size_t i = 0; i < data->samples * data->features; i++)
        data->x[i] /= 16;
    data->image = (struct gyre_nn_image){.height = 8, .width = 8, .channels = 1};
    status = gy_nn_dataset_split(data, "digits");
    if (status != GYRE_SUCCESS)
        gyre_nn_dataset_free(data);
    else
        *data_p = data;
    return status;
}
