/* Runs kernels of src/cuda without a GPU: every thread of every block of every launch is a fibre, and a seed says
 * which fibre is next whenever one touches what others see. One operating-system thread at a time may call these
 * functions.
 *
 * A device holds a limited number of blocks; the blocks of a launch are queued until there is room. A plain store may
 * stay in a buffer of its thread, unseen by others: gy_sync makes it visible to the block, gy_fence to all threads.
 * So does the end of the launch, and chance at any time before. (Not under ThreadSanitizer, which finds what is not
 * ordered by itself.)
 *
 * A run ends when nothing is left to run, or when no thread can go on by itself: each one is at a barrier, or has
 * looked many times at memory that does not change. The caller may then change memory (an abort word, another launch)
 * and run on, or take the report and drop everything.
 *
 * Addresses of kernels are those of the host, or are translated by a function (emu_memory). An access that the
 * function does not allow is a fault, which ends all launches of the device. */
#ifndef GY_TESTS_GPU_EMU_H
#define GY_TESTS_GPU_EMU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

enum { EMU_DEVICES = 16, EMU_ARGUMENT_BYTES = 4096 };

struct emu_launch {
    const char *name; /* static */
    void (*kernel)(const void *arguments);
    const void *arguments; /* copied */
    size_t argument_bytes;
    int device;
    unsigned blocks, threads;
    uint64_t after; /* the launch before it in its stream; 0: none */
};

enum emu_outcome {
    EMU_IDLE,  /* no launch is left */
    EMU_STUCK, /* no thread can go on by itself */
    EMU_MORE,  /* the steps are used up */
};

void emu_seed(uint64_t seed);
/* `at` returns where the bytes of a device address lie, or NULL: a fault. NULL: addresses are those of the host. */
void emu_memory(void *(*at)(const void *address, size_t bytes, int device));
/* How many blocks a device holds; 0: any number, as at the start. */
void emu_room(int device, unsigned blocks);
/* The threads of this device run far less often than the others; −1: none does, as at the start. */
void emu_lag(int device);
/* Returns the number of the launch, from 1 on. Of the launches of a device that may begin, the first one gets room. */
uint64_t emu_submit(const struct emu_launch *launch);
bool emu_over(uint64_t launch);
enum emu_outcome emu_run(uint64_t steps);
/* Which threads wait for what, and which blocks for room; stands until the next call. */
const char *emu_report(void);
/* Ends all launches where they are. */
void emu_drop(void);
void emu_drop_device(int device);
/* Returns a device on which a fault has happened since the last call, or -1. */
int emu_fault(void);
/* A number that grows with everything that threads do for others to see. */
uint64_t emu_changes(void);
/* Barriers that threads of a block reached at different places, since the start. */
unsigned emu_divergent(void);

#if defined(__cplusplus)
}
#endif

#endif
