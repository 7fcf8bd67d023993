/* The plug-in for the stand-in driver: libgyre-cuda.so.N with an image of C++ code (image.h). */
#include "cuda/kernels/plugin.h"
#include "cuda/kernels/two_shot.cuh"
#include "plugin_code.h"

namespace
{
#define CODE(name, kind, arguments) {#name, sizeof(arguments), name},
const gy_gpu_code moves[] = {GY_KERNELS_THAT_MOVE(CODE)};

const gy_gpu_executor fibres = {emu_memory, emu_room,        emu_submit, emu_over,
                                emu_run,    emu_drop_device, emu_fault,  emu_changes};

/* Filled in when the file is loaded, since the tables are defined in other files. */
struct filled_image : gy_gpu_image {
    filled_image()
        : gy_gpu_image{GY_GPU_IMAGE_MAGIC,
                       &fibres,
                       4,
                       {{code_of_fused.code, code_of_fused.count},
                        {code_of_one_shot.code, code_of_one_shot.count},
                        {code_of_two_shot.code, code_of_two_shot.count},
                        {moves, sizeof(moves) / sizeof(moves[0])}}}
    {
    }
};
const filled_image image;
} // namespace

extern "C" const gy_cuda_kernels gy_cuda_kernels = {GY_KERNELS_MAGIC, GY_KERNELS_VERSION, GY_KERNELS_LAYOUT, &image,
                                                    sizeof(gy_gpu_image)};
