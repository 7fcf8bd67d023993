/* A part of the kernels, compiled by nvcc: the reductions of the type PART, or the copies (PART=move).
 * cmake/GyreCuda.cmake compiles each part to PTX and joins the parts, so no two parts may define the same name. */
#define GY_PART_move 1
#define GY_PART_IS(part) GY_PART_IS_(part)
#define GY_PART_IS_(part) GY_PART_##part
#if GY_PART_IS(PART) != 1
#define GY_REDUCTIONS_ONLY
#endif

#include "cuda/kernels/one_shot.cuh"
#include "cuda/kernels/table.h"

#if defined(GY_REDUCTIONS_ONLY)
#define BODY(name, kind, type, operation, tree)             \
    GY_KERNEL(name, gy_##kind)                              \
    {                                                       \
        gy_##kind##_run<gy_work<type, operation, tree>>(a); \
    }
#define KIND(kind) KIND_OF(kind, PART)
#define KIND_OF(kind, part) KIND_OF_(kind, part)
#define KIND_OF_(kind, part) GY_KERNELS_OF_##part(BODY, kind)
KIND(fused)
KIND(one_shot)
KIND(two_shot)
#endif
