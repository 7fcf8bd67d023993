/* The GPU probe: measures what the design of gyre's GPU support depends on and no document states. One JSON object per
 * line on standard output. Each part runs in one or two processes of its own, under a time limit, so that a part that
 * fails or hangs does not stop the next one. No setting of the device is changed, and no managed memory is allocated.
 *
 * A part is a function `void part_NAME(int me)`; `me` is 0, or 0 and 1 where two processes take part. */
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>
#include <stddef.h>
#include <stdint.h>
#include <vector>

#define WORDS_BYTES 65536
#define MEETINGS 64

/* Memory that both processes of a part map. */
struct shared {
    volatile int arrived[MEETINGS]; /* counters of meet() */
    volatile double value[16];      /* numbers that one process hands to the other */
    char bytes[4096];               /* IPC handles */
};

extern const char *part;  /* the name of the part that runs */
extern struct shared *sh; /* zeroed before each part */
extern uint32_t *words;   /* WORDS_BYTES of a shared memfd, zeroed before each part */
extern CUdevice device;

/* Prints {"part": part, ...}: the arguments make the fields behind the first. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Prints the error and ends the process where a call has failed. */
void check_driver(CUresult result, const char *call);
void check_runtime(cudaError_t result, const char *call);
#define CU(call) check_driver(call, #call)
#define RT(call) check_runtime(call, #call)

const char *driver_error(CUresult result); /* its name */
double now_us(void);                       /* monotonic */
double median(std::vector<double> values); /* −1 of none */
int attribute(CUdevice_attribute which);   /* −1 where the driver does not know it */

/* Initialises CUDA on device 0 with its primary context. */
void begin_device(void);
/* Returns when both processes have called it with `number`; ends the process after 20 s. */
void meet(int number);
/* Passes a descriptor from process 0 to process 1. */
void send_fd(int fd);
int receive_fd(void);
/* Registers `words` with CUDA; returns their device address. */
CUdeviceptr map_words(void);
/* Waits on the host until `*word` has reached `value`, cyclically; false after `limit_us`. */
bool host_wait(volatile uint32_t *word, uint32_t value, double limit_us);

cudaStream_t make_stream(void); /* non-blocking */

__global__ void empty_kernel();
__global__ void copy_kernel(const uint4 *in, uint4 *out, size_t count);
/* Both outputs get a + b: an all_reduce of two ranks on one device, fused into one kernel. */
__global__ void add_kernel(const float4 *a, const float4 *b, float4 *out0, float4 *out1, size_t count);
/* Waits until `*word` has reached `want` or `limit` cycles have passed, then stores `answer_value` in `*answer`. */
__global__ void spin_kernel(volatile uint32_t *word, uint32_t want, volatile uint32_t *answer, uint32_t answer_value,
                            long long limit);
__global__ void busy_kernel(long long cycles, float *out);

void part_device(int me);
void part_launch(int me);
void part_copy(int me);
void part_words(int me);
void part_share(int me);
void part_ipc_words(int me);
void part_handover(int me);
void part_slices(int me);
