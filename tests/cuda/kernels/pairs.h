/* Every type with every operation that is defined for it, for templates. */
#ifndef GY_TESTS_CUDA_PAIRS_H
#define GY_TESTS_CUDA_PAIRS_H

#include "cuda/element.h"

/* True if the kernels of a type are compiled. A build with a sanitizer, which is slow, has one type of each size and
 * kind; mistakes.sh has two types. */
constexpr bool is_compiled(int type)
{
#if defined(GYRE_TWO_TYPES)
    return type == GYRE_BFLOAT16 || type == GYRE_FLOAT32;
#elif defined(GYRE_SANITIZED)
    return type == GYRE_INT8 || type == GYRE_UINT64 || type == GYRE_BFLOAT16 || type == GYRE_FLOAT32;
#else
    return type <= GYRE_BOOL;
#endif
}

/* Calls visit.template pair<type, op>() for each pair. */
template <int type, int op, typename visitor> void for_ops(visitor &visit)
{
    if constexpr (op <= GYRE_PREMUL_SUM) {
        if constexpr (gy_op_defined(type, op))
            visit.template pair<type, op>();
        for_ops<type, op + 1>(visit);
    }
}
template <int type = 0, typename visitor> void for_pairs(visitor &visit)
{
    if constexpr (type <= GYRE_BOOL) {
        if constexpr (is_compiled(type))
            for_ops<type, 0>(visit);
        for_pairs<type + 1>(visit);
    }
}

#endif
