/* DLPack: how array libraries describe a tensor to each other. The layout is that of dlpack.h, versions 0.8 to 1.1. */
#ifndef GYRE_PYTHON_DLPACK_H
#define GYRE_PYTHON_DLPACK_H

#include <stdint.h>

enum { DLPACK_CPU = 1, DLPACK_CUDA_HOST = 3, DLPACK_ROCM_HOST = 11 };
enum { DLPACK_MAJOR = 1 }; /* of versioned capsules whose layout is the one below */

enum {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6,
    DLPACK_FLOAT8_E4M3FN = 10,
    DLPACK_FLOAT8_E5M2 = 12,
};

#define DLPACK_READ_ONLY 1u
#define DLPACK_IS_COPIED 2u

struct dlpack_tensor {
    void *data;
    int32_t device, device_number;
    int32_t dimensions;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: C order */
    uint64_t offset;
};

/* What the capsule "dltensor" holds. */
struct dlpack_managed {
    struct dlpack_tensor tensor;
    void *context;
    void (*release)(struct dlpack_managed *self);
};

/* What the capsule "dltensor_versioned" holds, from version 1 on. */
struct dlpack_versioned {
    uint32_t major, minor;
    void *context;
    void (*release)(struct dlpack_versioned *self);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

#endif
