/* The safetensors decoder on arbitrary bytes: it refuses or every tensor it gives can be read to its end. */
#include "fuzz/fuzz.h"
#include "io/safetensors.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gy_st_file file;
    volatile uint8_t sink = 0;
    if (gy_st_decode(data, size, "input", &file) != GYRE_SUCCESS)
        return 0;
    for (size_t i = 0; i < file.ntensors; i++) {
        const uint8_t *bytes = file.tensors[i].data;
        size_t length = file.tensors[i].count * (file.tensors[i].dtype == GYRE_FLOAT64 ? 8 : 4);
        for (size_t b = 0; b < length; b++)
            sink = (uint8_t)(sink ^ bytes[b]);
        if (gy_st_find(&file, file.tensors[i].name) == NULL)
            abort();
    }
    gy_st_metadata(&file, "format");
    gy_st_free(&file);
    return 0;
}
