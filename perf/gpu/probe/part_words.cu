/* Control words in a shared memfd of the host: does CUDA register them, what does a hand-over through them cost, and
 * does a value far ahead end a stream's wait? */
#include "probe.h"

#include <unistd.h>

static void stream_waits(cudaStream_t stream, CUdeviceptr w, volatile uint32_t *host)
{
    CU(cuStreamWriteValue32((CUstream)stream, w + 64, 7, 0));
    RT(cudaStreamSynchronize(stream));
    say("\"write_value_seen_by_host\": %d", host[16] == 7);
    std::vector<double> times;
    for (uint32_t i = 1; i <= 300; i++) {
        CU(cuStreamWaitValue32((CUstream)stream, w, i, CU_STREAM_WAIT_VALUE_GEQ));
        CU(cuStreamWriteValue32((CUstream)stream, w + 64, 100 + i, 0));
        usleep(20);
        double begin = now_us();
        host[0] = i;
        if (!host_wait(&host[16], 100 + i, 1e6))
            return say("\"error\": \"a stream's wait for a host word did not end within 1 s\"");
        if (i > 20)
            times.push_back(now_us() - begin);
    }
    say("\"host_store_to_wait_to_write_to_host_us\": %.2f", median(times));
    RT(cudaStreamSynchronize(stream));
}

static void spinning_kernel(cudaStream_t stream, CUdeviceptr w, volatile uint32_t *host)
{
    std::vector<double> times;
    for (uint32_t i = 1; i <= 300; i++) {
        spin_kernel<<<1, 1, 0, stream>>>((volatile uint32_t *)w, 1000 + i, (volatile uint32_t *)(w + 64), 2000 + i,
                                         2000000000LL);
        usleep(30);
        double begin = now_us();
        host[0] = 1000 + i;
        if (!host_wait(&host[16], 2000 + i, 2e6))
            return say("\"error\": \"a kernel that spins on a host word did not end within 2 s\"");
        if (i > 20)
            times.push_back(now_us() - begin);
    }
    RT(cudaStreamSynchronize(stream));
    say("\"host_store_to_spinning_kernel_to_host_us\": %.2f", median(times));
}

static void far_ahead(cudaStream_t stream, CUdeviceptr w, volatile uint32_t *host)
{
    host[0] = 5000;
    CU(cuStreamWaitValue32((CUstream)stream, w, 6000, CU_STREAM_WAIT_VALUE_GEQ));
    empty_kernel<<<1, 1, 0, stream>>>();
    usleep(1000);
    int waited = cudaStreamQuery(stream) == cudaErrorNotReady;
    host[0] = 6000 + (1u << 30);
    double begin = now_us();
    RT(cudaStreamSynchronize(stream));
    say("\"wait_ended_by_a_value_far_ahead\": %d, \"us\": %.1f", waited, now_us() - begin);
}

void part_words(int)
{
    begin_device();
    CUresult result = cuMemHostRegister(words, WORDS_BYTES, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
    say("\"host_register_shared_memfd\": \"%s\"", driver_error(result));
    if (result != CUDA_SUCCESS)
        return;
    CUdeviceptr w;
    CU(cuMemHostGetDevicePointer(&w, words, 0));
    volatile uint32_t *host = words;
    cudaStream_t stream = make_stream();
    host[0] = host[16] = 0;
    stream_waits(stream, w, host);
    spinning_kernel(stream, w, host);
    far_ahead(stream, w, host);
}
