/* Costs on the host and in a stream: a launch, a graph's replay, and the join and fork of streams by events. */
#include "probe.h"

#define WARM 50
#define RUNS 300

static float elapsed_us(cudaEvent_t begin, cudaEvent_t end)
{
    float milliseconds;
    RT(cudaEventSynchronize(end));
    RT(cudaEventElapsedTime(&milliseconds, begin, end));
    return milliseconds * 1000;
}

static void launches(cudaStream_t stream, cudaEvent_t begin, cudaEvent_t end)
{
    std::vector<double> whole, host;
    for (int i = 0; i < RUNS; i++) {
        double start = now_us();
        empty_kernel<<<1, 32, 0, stream>>>();
        double launched = now_us();
        RT(cudaStreamSynchronize(stream));
        if (i >= WARM) {
            whole.push_back(now_us() - start);
            host.push_back(launched - start);
        }
    }
    RT(cudaEventRecord(begin, stream));
    for (int i = 0; i < 1000; i++)
        empty_kernel<<<1, 32, 0, stream>>>();
    RT(cudaEventRecord(end, stream));
    say("\"empty_launch_and_sync_us\": %.2f, \"host_part_us\": %.2f, \"back_to_back_us\": %.2f", median(whole),
        median(host), elapsed_us(begin, end) / 1000);
}

static void graph(cudaStream_t stream, cudaEvent_t begin, cudaEvent_t end)
{
    cudaGraph_t captured;
    cudaGraphExec_t ready;
    RT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    for (int i = 0; i < 100; i++)
        empty_kernel<<<1, 32, 0, stream>>>();
    RT(cudaStreamEndCapture(stream, &captured));
    RT(cudaGraphInstantiate(&ready, captured, 0));
    std::vector<double> times, host;
    for (int i = 0; i < WARM; i++) {
        RT(cudaEventRecord(begin, stream));
        double start = now_us();
        RT(cudaGraphLaunch(ready, stream));
        double launched = now_us();
        RT(cudaEventRecord(end, stream));
        float us = elapsed_us(begin, end);
        if (i >= 10) {
            times.push_back(us / 100);
            host.push_back(launched - start);
        }
    }
    say("\"graph_us_per_empty_kernel\": %.2f, \"graph_launch_host_us\": %.2f", median(times), median(host));
}

/* A kernel that n streams wait for and that waits for n streams, as a fused operation of n ranks needs it. */
static void join_and_fork(cudaStream_t *streams, int count, cudaEvent_t begin, cudaEvent_t end)
{
    cudaEvent_t fork, join[8];
    RT(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    for (int k = 1; k < count; k++)
        RT(cudaEventCreateWithFlags(&join[k], cudaEventDisableTiming));
    std::vector<double> times;
    for (int i = 0; i < RUNS; i++) {
        RT(cudaEventRecord(begin, streams[0]));
        for (int k = 1; k < count; k++) {
            RT(cudaEventRecord(join[k], streams[k]));
            RT(cudaStreamWaitEvent(streams[0], join[k], 0));
        }
        empty_kernel<<<1, 32, 0, streams[0]>>>();
        RT(cudaEventRecord(fork, streams[0]));
        for (int k = 1; k < count; k++)
            RT(cudaStreamWaitEvent(streams[k], fork, 0));
        RT(cudaEventRecord(end, streams[count - 1]));
        float us = elapsed_us(begin, end);
        if (i >= WARM)
            times.push_back(us);
    }
    say("\"streams\": %d, \"join_kernel_fork_us\": %.2f", count, median(times));
}

void part_launch(int)
{
    begin_device();
    cudaStream_t streams[8];
    for (auto &stream : streams)
        stream = make_stream();
    cudaEvent_t begin, end;
    RT(cudaEventCreate(&begin));
    RT(cudaEventCreate(&end));
    launches(streams[0], begin, end);
    graph(streams[0], begin, end);
    for (int count = 2; count <= 8; count *= 2)
        join_and_fork(streams, count, begin, end);
}
