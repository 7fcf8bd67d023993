/* One thread of a block, and what the language of kernels asks of the scheduler of emu.cc. */
#ifndef GY_TESTS_GPU_EMU_FIBRE_H
#define GY_TESTS_GPU_EMU_FIBRE_H

#include <stddef.h>
#include <stdint.h>
#include <vector>

struct emu_block;

/* A plain store that others do not see yet. */
struct emu_delayed {
    void *at;
    unsigned size;
    unsigned char bytes[16];
};

struct emu_fibre {
    unsigned thread, threads, block_index, blocks;
    size_t place; /* among all fibres */
    emu_block *block;
    void *order;         /* its launch, for ThreadSanitizer */
    void *stack_pointer; /* while it does not run */
    char *stack;
    void *sanitizer; /* its context of ThreadSanitizer, or its fake stack of AddressSanitizer */
    bool over, started, at_barrier;
    bool fenced;           /* since its last plain store */
    unsigned spins;        /* since memory changed */
    uint64_t changes_seen; /* when it last spun */
    const uint32_t *word;  /* for the report: what it spins on */
    uint32_t wanted;
    const char *what;
    std::vector<emu_delayed> delayed;
};

extern emu_fibre *emu_self;
extern const bool emu_delays; /* plain stores are delayed: not under ThreadSanitizer */

uint64_t emu_random();
/* Another fibre may run before this one's next access. */
void emu_touch();
/* Memory changed: fibres that spin may look again. */
void emu_changed();
void emu_pause(const uint32_t *word, uint32_t wanted, const char *what);
/* A barrier of the threads of the block that have not returned; whether `any` was true for any of them. */
bool emu_sync(const char *file, int line, bool any);
/* Shared memory of the block for this declaration: the same place for all threads, garbage at first. */
void *emu_shared(const char *file, int line, size_t size);
void emu_load(const void *p, unsigned size, void *value_p);
void emu_store(void *p, unsigned size, const void *value);
void emu_flush();
void emu_check_aligned(const void *p, size_t size);
/* Where the bytes of an address lie. Does not return after a fault. */
void *emu_at(const void *p, size_t size);

#endif
