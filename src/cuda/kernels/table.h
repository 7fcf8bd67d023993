/* The list of all kernels, for C, for nvcc and for the C++ compilers of the tests.
 *
 * Each kernel of a reduction gives bits that no other kernel gives. Other types, operations and orders share a kernel
 * (gy_kernel_find):
 *
 *   signed integers   sums and products are those of unsigned integers
 *   booleans          operations are AND, OR, XOR and the pre-multiplied sum
 *   canonical order   (`tree`) has its own kernel only where results are rounded */
#ifndef GY_CUDA_KERNELS_TABLE_H
#define GY_CUDA_KERNELS_TABLE_H

#include <gyre/gyre.h>
#include <stdbool.h>

/* A kernel of kind K has one argument, the structure with the name of the kind, and the body K_run<gy_work<type,
 * operation, tree>>, with the prefix `gy_` before K. */
#define GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, operation, OPERATION) \
    REDUCTION(gy_##kind##_##type##_##operation, kind, GYRE_##TYPE, GYRE_##OPERATION, 0)
#define GY_KERNELS_BOTH(REDUCTION, kind, type, TYPE, operation, OPERATION) \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, operation, OPERATION)      \
    REDUCTION(gy_##kind##_##type##_##operation##_tree, kind, GYRE_##TYPE, GYRE_##OPERATION, 1)

#define GY_KERNELS_SIGNED(REDUCTION, kind, type, TYPE)    \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, min, MIN) \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, max, MAX) \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, average, AVERAGE)
#define GY_KERNELS_BITS(REDUCTION, kind, type, TYPE)              \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, bit_and, BIT_AND) \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, bit_or, BIT_OR)   \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, bit_xor, BIT_XOR) \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, premul_sum, PREMUL_SUM)
#define GY_KERNELS_UNSIGNED(REDUCTION, kind, type, TYPE)          \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, sum, SUM)         \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, product, PRODUCT) \
    GY_KERNELS_SIGNED(REDUCTION, kind, type, TYPE)                \
    GY_KERNELS_BITS(REDUCTION, kind, type, TYPE)
#define GY_KERNELS_FLOAT(REDUCTION, kind, type, TYPE)              \
    GY_KERNELS_BOTH(REDUCTION, kind, type, TYPE, sum, SUM)         \
    GY_KERNELS_BOTH(REDUCTION, kind, type, TYPE, product, PRODUCT) \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, min, MIN)          \
    GY_KERNELS_ONE(REDUCTION, kind, type, TYPE, max, MAX)          \
    GY_KERNELS_BOTH(REDUCTION, kind, type, TYPE, average, AVERAGE) \
    GY_KERNELS_BOTH(REDUCTION, kind, type, TYPE, premul_sum, PREMUL_SUM)

/* The reductions of a kind and a type: REDUCTION(name, kind, type, operation, tree) */
#define GY_KERNELS_OF_int8(REDUCTION, kind) GY_KERNELS_SIGNED(REDUCTION, kind, int8, INT8)
#define GY_KERNELS_OF_uint8(REDUCTION, kind) GY_KERNELS_UNSIGNED(REDUCTION, kind, uint8, UINT8)
#define GY_KERNELS_OF_int32(REDUCTION, kind) GY_KERNELS_SIGNED(REDUCTION, kind, int32, INT32)
#define GY_KERNELS_OF_uint32(REDUCTION, kind) GY_KERNELS_UNSIGNED(REDUCTION, kind, uint32, UINT32)
#define GY_KERNELS_OF_int64(REDUCTION, kind) GY_KERNELS_SIGNED(REDUCTION, kind, int64, INT64)
#define GY_KERNELS_OF_uint64(REDUCTION, kind) GY_KERNELS_UNSIGNED(REDUCTION, kind, uint64, UINT64)
#define GY_KERNELS_OF_float16(REDUCTION, kind) GY_KERNELS_FLOAT(REDUCTION, kind, float16, FLOAT16)
#define GY_KERNELS_OF_bfloat16(REDUCTION, kind) GY_KERNELS_FLOAT(REDUCTION, kind, bfloat16, BFLOAT16)
#define GY_KERNELS_OF_float32(REDUCTION, kind) GY_KERNELS_FLOAT(REDUCTION, kind, float32, FLOAT32)
#define GY_KERNELS_OF_float64(REDUCTION, kind) GY_KERNELS_FLOAT(REDUCTION, kind, float64, FLOAT64)
#define GY_KERNELS_OF_float8_e4m3(REDUCTION, kind) GY_KERNELS_FLOAT(REDUCTION, kind, float8_e4m3, FLOAT8_E4M3)
#define GY_KERNELS_OF_float8_e5m2(REDUCTION, kind) GY_KERNELS_FLOAT(REDUCTION, kind, float8_e5m2, FLOAT8_E5M2)
#define GY_KERNELS_OF_boolean(REDUCTION, kind) GY_KERNELS_BITS(REDUCTION, kind, boolean, BOOL)

#define GY_KERNELS_OF(REDUCTION, kind)                                                                            \
    GY_KERNELS_OF_int8(REDUCTION, kind) GY_KERNELS_OF_uint8(REDUCTION, kind) GY_KERNELS_OF_int32(REDUCTION, kind) \
        GY_KERNELS_OF_uint32(REDUCTION, kind) GY_KERNELS_OF_int64(REDUCTION, kind)                                \
            GY_KERNELS_OF_uint64(REDUCTION, kind) GY_KERNELS_OF_float16(REDUCTION, kind)                          \
                GY_KERNELS_OF_bfloat16(REDUCTION, kind) GY_KERNELS_OF_float32(REDUCTION, kind)                    \
                    GY_KERNELS_OF_float64(REDUCTION, kind) GY_KERNELS_OF_float8_e4m3(REDUCTION, kind)             \
                        GY_KERNELS_OF_float8_e5m2(REDUCTION, kind) GY_KERNELS_OF_boolean(REDUCTION, kind)

/* MOVE(name, kind, arguments): copies, defined in move.cuh and two_shot.cuh. */
#define GY_KERNELS_THAT_MOVE(MOVE) \
    MOVE(gy_move, move, gy_moves)  \
    MOVE(gy_two_shot_move, two_shot_move, gy_two_shot_moves)

#define GY_KERNELS(REDUCTION, MOVE)    \
    GY_KERNELS_OF(REDUCTION, fused)    \
    GY_KERNELS_OF(REDUCTION, one_shot) \
    GY_KERNELS_OF(REDUCTION, two_shot) \
    GY_KERNELS_THAT_MOVE(MOVE)

enum gy_kernel_kind {
    GY_KERNEL_fused,         /* struct gy_fused */
    GY_KERNEL_one_shot,      /* struct gy_one_shot */
    GY_KERNEL_two_shot,      /* struct gy_two_shot */
    GY_KERNEL_move,          /* struct gy_moves; no type, no operation */
    GY_KERNEL_two_shot_move, /* struct gy_two_shot_moves; no type, no operation */
    GY_KERNEL_KINDS,
};

/* The numbers of kernels, from 0 on: the prefix GY_NUMBER_ and the kernel's name. */
enum gy_kernel_number {
#define GY_KERNEL_NUMBER(name, ...) GY_NUMBER_##name,
    GY_KERNELS(GY_KERNEL_NUMBER, GY_KERNEL_NUMBER)
#undef GY_KERNEL_NUMBER
        GY_KERNEL_COUNT,
};

#if !defined(__cplusplus)
/* Returns the number of the kernel, or −1 where the operation is not defined for the type. The kinds that copy ignore
 * the other arguments. */
int gy_kernel_find(enum gy_kernel_kind kind, gyre_dtype dtype, gyre_op op, bool canonical);
/* Returns the name of a kernel; NULL for −1. */
const char *gy_kernel_name(int number);
#endif

#endif
