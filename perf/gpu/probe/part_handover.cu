/* The cost of passing the turn between two processes that share one device: by stream memory operations on host words,
 * by the hosts, by events, and by kernels that spin for each other. */
#include "probe.h"

#include <string.h>

#define TURNS 200
#define HOST_TURNS 40
#define EVENT_TURNS 40
#define SPIN_TURNS 20
#define SPIN_CYCLES 400000000LL

struct side {
    int me;
    cudaStream_t stream;
    CUdeviceptr mine, other, scratch;
    volatile uint32_t *host_mine, *host_other;
};

/* Both processes go from `first` on; process 0 writes first. Returns the time of a round trip. */
static double by_value(const struct side *it, uint32_t first, bool kernels)
{
    CUstream stream = (CUstream)it->stream;
    double begin = now_us();
    for (uint32_t i = first; i < first + TURNS; i++) {
        if (it->me == 1)
            CU(cuStreamWaitValue32(stream, it->other, i, CU_STREAM_WAIT_VALUE_GEQ));
        if (kernels)
            empty_kernel<<<1, 32, 0, it->stream>>>();
        CU(cuStreamWriteValue32(stream, it->mine, i, 0));
        if (it->me == 0)
            CU(cuStreamWaitValue32(stream, it->other, i, CU_STREAM_WAIT_VALUE_GEQ));
    }
    RT(cudaStreamSynchronize(it->stream));
    return (now_us() - begin) / TURNS;
}

static double by_hosts(const struct side *it, uint32_t first)
{
    double begin = now_us();
    for (uint32_t i = first; i < first + HOST_TURNS; i++) {
        if (it->me == 1 && !host_wait(it->host_other, i, 2e6))
            return -1;
        empty_kernel<<<1, 32, 0, it->stream>>>();
        RT(cudaStreamSynchronize(it->stream));
        *it->host_mine = i;
        if (it->me == 0 && !host_wait(it->host_other, i, 2e6))
            return -1;
    }
    return (now_us() - begin) / HOST_TURNS;
}

/* Each process records an event of its own; the other's stream waits for it. An event must have been recorded before a
 * stream waits for it, so the hosts pass that news by words. */
static double by_events(const struct side *it, uint32_t first)
{
    cudaEvent_t own, remote;
    cudaIpcEventHandle_t handle;
    RT(cudaEventCreateWithFlags(&own, cudaEventInterprocess | cudaEventDisableTiming));
    RT(cudaIpcGetEventHandle(&handle, own));
    memcpy(sh->bytes + 128 * it->me, &handle, sizeof handle);
    meet(10);
    memcpy(&handle, sh->bytes + 128 * (1 - it->me), sizeof handle);
    RT(cudaIpcOpenEventHandle(&remote, handle));
    meet(11);
    double begin = now_us();
    for (uint32_t i = first; i < first + EVENT_TURNS; i++) {
        if (it->me == 1) {
            if (!host_wait(it->host_other, i, 2e6))
                return -1;
            RT(cudaStreamWaitEvent(it->stream, remote, 0));
        }
        empty_kernel<<<1, 32, 0, it->stream>>>();
        RT(cudaEventRecord(own, it->stream));
        *it->host_mine = i;
        if (it->me == 0) {
            if (!host_wait(it->host_other, i, 2e6))
                return -1;
            RT(cudaStreamWaitEvent(it->stream, remote, 0));
        }
    }
    RT(cudaStreamSynchronize(it->stream));
    return (now_us() - begin) / EVENT_TURNS;
}

static double by_spinning(const struct side *it, uint32_t first)
{
    volatile uint32_t *mine = (volatile uint32_t *)it->mine, *other = (volatile uint32_t *)it->other;
    volatile uint32_t *scratch = (volatile uint32_t *)it->scratch;
    double begin = now_us();
    for (uint32_t i = first; i < first + SPIN_TURNS; i++) {
        if (it->me == 0) {
            spin_kernel<<<1, 1, 0, it->stream>>>(mine, 0, mine, i, 0);
            spin_kernel<<<1, 1, 0, it->stream>>>(other, i, scratch, i, SPIN_CYCLES);
        } else {
            spin_kernel<<<1, 1, 0, it->stream>>>(other, i, mine, i, SPIN_CYCLES);
        }
        RT(cudaStreamSynchronize(it->stream));
    }
    return (now_us() - begin) / SPIN_TURNS;
}

void part_handover(int me)
{
    begin_device();
    CUdeviceptr w = map_words();
    struct side it = {me,
                      make_stream(),
                      w + 64 * (unsigned)me,
                      w + 64 * (unsigned)(1 - me),
                      w + 512 + 64 * (unsigned)me,
                      words + 16 * me,
                      words + 16 * (1 - me)};
    empty_kernel<<<1, 1, 0, it.stream>>>(); /* the kernels are loaded before anything waits */
    spin_kernel<<<1, 1, 0, it.stream>>>((volatile uint32_t *)w, 0, (volatile uint32_t *)it.scratch, 1, 1000);
    RT(cudaStreamSynchronize(it.stream));
    meet(0);
    double us = by_value(&it, 1, false);
    if (me == 0)
        say("\"value_operations_round_trip_us\": %.1f", us);
    meet(1);
    us = by_value(&it, 1 + TURNS, true);
    if (me == 0)
        say("\"value_operations_and_kernel_round_trip_us\": %.1f", us);
    meet(2);
    us = by_hosts(&it, 1 + 2 * TURNS);
    if (me == 0)
        say("\"host_words_and_kernel_round_trip_us\": %.1f", us);
    meet(3);
    us = by_events(&it, 1 + 3 * TURNS);
    if (me == 0)
        say("\"ipc_events_and_kernel_round_trip_us\": %.1f", us);
    meet(4);
    us = by_spinning(&it, 1 + 4 * TURNS);
    if (me == 0)
        say("\"spinning_kernels_round_trip_us\": %.1f, \"limit_per_kernel_cycles\": %lld", us, SPIN_CYCLES);
    meet(5);
}
