/* The rate at which device memory is copied, in TB/s of bytes read and written, by kernel and by copy engine; and the
 * rates between host and device, which bound what is staged. */
#include "probe.h"

#include <functional>

static double rate(double bytes, const std::function<void()> &body)
{
    cudaEvent_t begin, end;
    RT(cudaEventCreate(&begin));
    RT(cudaEventCreate(&end));
    std::vector<double> rates;
    for (int i = 0; i < 12; i++) {
        float milliseconds;
        RT(cudaEventRecord(begin));
        body();
        RT(cudaEventRecord(end));
        RT(cudaEventSynchronize(end));
        RT(cudaEventElapsedTime(&milliseconds, begin, end));
        if (i > 2)
            rates.push_back(bytes / milliseconds / 1e9);
    }
    return median(rates);
}

static void on_device(void)
{
    const size_t bytes = (size_t)2 << 30;
    char *memory[4];
    for (auto &block : memory) {
        RT(cudaMalloc(&block, bytes));
        RT(cudaMemset(block, 63, bytes));
    }
    int sm = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    double twice = 2.0 * (double)bytes;
    for (int blocks : {1, 2, 4, 8, 16}) {
        double result = rate(
            twice, [&] { copy_kernel<<<sm * blocks, 512>>>((uint4 *)memory[0], (uint4 *)memory[1], bytes / 16); });
        say("\"copy_kernel_TBs\": %.3f, \"blocks_per_sm\": %d", result, blocks);
    }
    double engine = rate(twice, [&] { RT(cudaMemcpyAsync(memory[1], memory[0], bytes, cudaMemcpyDeviceToDevice)); });
    double fused = rate(2 * twice, [&] {
        add_kernel<<<sm * 4, 512>>>((float4 *)memory[0], (float4 *)memory[1], (float4 *)memory[2], (float4 *)memory[3],
                                    bytes / 16);
    });
    say("\"copy_memcpy_TBs\": %.3f, \"all_reduce_of_2_fused_TBs\": %.3f", engine, fused);
    for (auto &block : memory)
        RT(cudaFree(block));
}

static void with_host(void)
{
    const size_t bytes = (size_t)256 << 20;
    void *host, *block;
    RT(cudaMallocHost(&host, bytes));
    RT(cudaMalloc(&block, bytes));
    double down = rate((double)bytes, [&] { RT(cudaMemcpyAsync(host, block, bytes, cudaMemcpyDeviceToHost)); });
    double up = rate((double)bytes, [&] { RT(cudaMemcpyAsync(block, host, bytes, cudaMemcpyHostToDevice)); });
    say("\"device_to_pinned_host_GBs\": %.1f, \"pinned_host_to_device_GBs\": %.1f", down * 1e3, up * 1e3);
}

void part_copy(int)
{
    begin_device();
    on_device();
    with_host();
}
