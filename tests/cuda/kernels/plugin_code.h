/* The tables of reductions, one for each kind of kernel. Each kind is compiled in a file of its own. */
#ifndef GY_TESTS_CUDA_PLUGIN_CODE_H
#define GY_TESTS_CUDA_PLUGIN_CODE_H

#include "image.h"

struct code_table {
    const gy_gpu_code *code;
    unsigned count;
};
extern const code_table code_of_fused, code_of_one_shot, code_of_two_shot;

#endif
