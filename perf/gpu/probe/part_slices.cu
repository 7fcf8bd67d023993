/* Measures whether a stream that waits for a value, or a kernel that spins, takes time slices from another process on
 * the device. */
#include "probe.h"

#include <unistd.h>

#define BYTES ((size_t)1 << 30)
#define COPIES 20

enum load { ALONE, WAITS, SPINS, COPIES_TOO, LOADS };

static char *blocks[2];

static void copies(cudaStream_t stream, int count)
{
    int sm = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    for (int i = 0; i < count; i++)
        copy_kernel<<<sm * 4, 512, 0, stream>>>((uint4 *)blocks[0], (uint4 *)blocks[1], BYTES / 16);
}

static void occupy(enum load load, cudaStream_t stream, CUdeviceptr w)
{
    if (load == WAITS)
        CU(cuStreamWaitValue32((CUstream)stream, w, 100, CU_STREAM_WAIT_VALUE_GEQ));
    if (load == SPINS)
        spin_kernel<<<1, 1, 0, stream>>>((volatile uint32_t *)w, 100, (volatile uint32_t *)(w + 64), 1, 4000000000LL);
    if (load == WAITS || load == SPINS)
        usleep(2000);
}

void part_slices(int me)
{
    static const char *const names[LOADS] = {"alone", "waits for a value", "spins in one block", "copies too"};
    begin_device();
    CUdeviceptr w = map_words();
    volatile uint32_t *host = words;
    cudaStream_t stream = make_stream();
    for (auto &block : blocks) {
        RT(cudaMalloc(&block, BYTES));
        RT(cudaMemset(block, 1, BYTES));
    }
    copies(stream, 1); /* loads the kernels */
    spin_kernel<<<1, 1, 0, stream>>>((volatile uint32_t *)w, 0, (volatile uint32_t *)(w + 128 + 64 * (unsigned)me), 1,
                                     1000);
    RT(cudaStreamSynchronize(stream));
    for (int load = ALONE; load < LOADS; load++) {
        if (me == 0) {
            host[0] = 0;
            occupy((enum load)load, stream, w);
        }
        meet(2 * load);
        if (me == 0 && load == COPIES_TOO) {
            copies(stream, 2 * COPIES);
            RT(cudaStreamSynchronize(stream));
        }
        if (me == 1) {
            double begin = now_us();
            copies(stream, COPIES);
            RT(cudaStreamSynchronize(stream));
            say("\"the_other_process\": \"%s\", \"copy_TBs\": %.3f", names[load],
                COPIES * 2.0 * (double)BYTES / (now_us() - begin) / 1e6);
            host[0] = 100;
        }
        meet(2 * load + 1);
        if (me == 0)
            RT(cudaStreamSynchronize(stream));
    }
    meet(2 * LOADS);
}
