/* The reductions of each kind, compiled in files of their own, and the kernels that move. */
#ifndef GY_TESTS_CUDA_PLUGIN_CODE_H
#define GY_TESTS_CUDA_PLUGIN_CODE_H

#include "image.h"

struct code_table {
    const gy_gpu_code *code;
    unsigned count;
};
extern const code_table code_of_fused, code_of_one_shot, code_of_two_shot;

#endif
