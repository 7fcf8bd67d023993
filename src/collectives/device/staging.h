/* Pinned host memory for the operands of staged calls. Blocks are kept for reuse. A block begins with three words,
 * which streams and the CPU write:
 *
 *   ready   by the stream: the input is in the block
 *   done    by the CPU: the output is in the block
 *   freed   by the stream: the output has been copied from the block, which is free
 *
 * A word contains the number of the block's use. Numbers are compared modulo 2^32, as cuStreamWaitValue32 does. */
#ifndef GY_COLLECTIVES_DEVICE_STAGING_H
#define GY_COLLECTIVES_DEVICE_STAGING_H

#include <stdatomic.h>

#include "cuda/device.h"

struct gy_staging_words {
    _Atomic uint32_t ready, done, freed;
};

struct gy_staging_block {
    struct gy_staging_block *next;
    struct gy_staging_words *words;
    gy_cu_address device; /* device address of the words */
    unsigned char *data;
    size_t bytes;
    uint32_t use;
};

struct gy_staging {
    struct gy_device *device;
    struct gy_staging_block *blocks;
};

/* Takes a block of at least `bytes` bytes. The device's context is current. Returns an error of the driver. */
gy_cu_result gy_staging_take(struct gy_staging *staging, size_t bytes, struct gy_staging_block **block_p);
/* Frees a block that no stream uses. */
void gy_staging_give(struct gy_staging_block *block);
/* True if the word has reached the block's use. */
bool gy_staging_reached(const struct gy_staging_block *block, const _Atomic uint32_t *word);
/* Unblocks all streams that wait for the block, in this use and in later ones. */
void gy_staging_release(struct gy_staging_block *block);
/* Stream operations: the stream writes `word`, or waits until the CPU has written `done`. */
gy_cu_result gy_staging_write(const struct gy_staging *staging, const struct gy_staging_block *block,
                              const _Atomic uint32_t *word, gy_cu_stream stream);
gy_cu_result gy_staging_wait_done(const struct gy_staging *staging, const struct gy_staging_block *block,
                                  gy_cu_stream stream);
/* Frees all blocks; the device's context is current. Streams that wait are unblocked first. A block whose stream does
 * not write `freed` within 200 ms stays allocated, since the stream may still write to it. */
void gy_staging_close(struct gy_staging *staging);

#endif
