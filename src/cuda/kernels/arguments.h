/* The arguments of the kernels, for C, for nvcc and for the C++ compilers of the tests. Each kernel has one argument, a
 * structure of this file, which cuLaunchKernel copies. All addresses must be valid on the GPU that runs the kernel.
 *
 * A change to the size of a structure changes GY_KERNELS_LAYOUT (plugin.h). A change of meaning alone needs a new
 * GY_KERNELS_VERSION. */
#ifndef GY_CUDA_KERNELS_ARGUMENTS_H
#define GY_CUDA_KERNELS_ARGUMENTS_H

#include <stdint.h>

enum {
    GY_BLOCK_THREADS = 512, /* the largest number of threads of a block */
    GY_INLINE_OPERANDS = 8, /* sources, and destinations, whose addresses fit into the argument */
    GY_GROUP_MOST = 64,     /* the largest number of sources, and of destinations */
    GY_PEERS_MOST = 8,      /* the largest number of ranks that wait for each other in kernels */
    GY_PIECES_MOST = 14,    /* of a launch; the argument is smaller than 4 KB */
    GY_MOVES_MOST = 120,    /* of a launch; the argument is smaller than 4 KB */
};

/* A line of the one-shot protocol, as NCCL's LL protocol has it: each 4-byte word of data lies beside a flag, which
 * holds the step in which the word was stored. */
struct gy_line {
    uint32_t data1, flag1, data2, flag2;
} __attribute__((aligned(16)));

/* ---- Reductions that wait for no other GPU: fused.cuh ------------------------------------------------------------ */

/* Elements [first, count) of the sources are reduced in the order of the sources. The result is stored in each
 * destination. */
struct gy_kernel_piece {
    uint64_t first, count; /* elements */
    uint16_t nsrc, ndst;   /* 1 to GY_GROUP_MOST */
    int32_t divisor;       /* the number that an average is divided by; 0: no division */
    const void *src[GY_INLINE_OPERANDS];
    void *dst[GY_INLINE_OPERANDS];
    const void *scalar[GY_INLINE_OPERANDS]; /* of a pre-multiplied sum: the scalar of each source */
    /* Arrays in memory that the GPU reads. They are used in place of the three above if nsrc or ndst exceeds
     * GY_INLINE_OPERANDS. */
    const void *const *indirect_src;
    void *const *indirect_dst;
    const void *const *indirect_scalar;
};

struct gy_fused {
    const uint32_t *abort; /* if the word is not 0, the kernel does nothing */
    uint32_t pieces;
    struct gy_kernel_piece piece[GY_PIECES_MOST];
};

/* ---- Copies: move.cuh -------------------------------------------------------------------------------------------- */

struct gy_one_move {
    char *dst;
    char *src;      /* also written by an exchange */
    uint64_t bytes; /* the highest bit is the flag GY_EXCHANGE */
};
#define GY_EXCHANGE ((uint64_t)1 << 63)

struct gy_moves {
    const uint32_t *abort; /* as above */
    uint32_t moves;
    struct gy_one_move move[GY_MOVES_MOST];
};

/* ---- Kernels that wait for kernels of other GPUs: two_shot.cuh, one_shot.cuh ------------------------------------- */

/* State with which the kernels of several ranks synchronise. All words are 0 before the first launch. In each step
 * every rank launches a kernel with the same number of blocks. */
struct gy_peer_sync {
    const uint32_t *abort;            /* if the word is not 0, waits end and the kernel returns */
    uint32_t *step;                   /* number of this rank's launches that have ended */
    uint32_t *finished;               /* number of blocks of this rank's current launch that have ended */
    uint16_t rank, ranks;             /* at most GY_PEERS_MOST ranks */
    uint32_t *arrived[GY_PEERS_MOST]; /* arrival counters in each rank's memory: [ranks][blocks][2] */
};

struct gy_two_shot {
    struct gy_peer_sync sync;
    uint32_t pieces;
    struct gy_kernel_piece piece[GY_PIECES_MOST - 1];
};

struct gy_two_shot_moves {
    struct gy_peer_sync sync;
    uint32_t moves;
    struct gy_one_move move[GY_MOVES_MOST];
};

struct gy_one_shot {
    struct gy_peer_sync sync; /* `arrived` is not used */
    uint32_t capacity;        /* lines that a rank may store in a half of an inbox */
    uint32_t count;           /* elements: at most 8 * capacity bytes */
    int32_t divisor;
    struct gy_line *inbox[GY_PEERS_MOST]; /* of each rank: [2][ranks][capacity]; 0 before the first launch */
    const void *in;
    void *out;
    const void *scalar; /* this rank's scalar of a pre-multiplied sum */
};

#endif
