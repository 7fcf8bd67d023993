/* The arguments of the kernels, for C, nvcc and the compilers of the tests. Each kernel has one argument, a structure
 * of this file; cuLaunchKernel copies it. All addresses are addresses that the GPU of the launch can use.
 *
 * A change to a structure changes GY_KERNELS_LAYOUT (plugin.h). A change of meaning alone needs a new
 * GY_KERNELS_VERSION. */
#ifndef GY_CUDA_KERNELS_ARGUMENTS_H
#define GY_CUDA_KERNELS_ARGUMENTS_H

#include <stdint.h>

enum {
    GY_BLOCK_THREADS = 512, /* at most */
    GY_NEAR = 8,            /* sources and destinations whose addresses are in the arguments */
    GY_GROUP_MOST = 64,     /* at all */
    GY_PIECES_MOST = 14,    /* of a launch; the arguments are less than 4 KB */
    GY_MOVES_MOST = 120,    /* of a launch; the arguments are less than 4 KB */
};

/* 8 bytes of data, each word beside the step in which it was stored. */
struct gy_line {
    uint32_t data1, flag1, data2, flag2;
} __attribute__((aligned(16)));

/* ---- Reductions without waiting: fused.cuh ----------------------------------------------------------------------- */

/* Elements [first, count) of the sources are reduced in the order given, and the result is stored in each
 * destination. */
struct gy_kernel_piece {
    uint64_t first, count; /* elements */
    uint16_t nsrc, ndst;   /* 1 to GY_GROUP_MOST */
    int32_t divisor;       /* of an average; 0: none */
    const void *src[GY_NEAR];
    void *dst[GY_NEAR];
    const void *scalar[GY_NEAR]; /* of a pre-multiplied sum, one for each source */
    /* Arrays in memory of the GPU that replace the above where nsrc or ndst exceeds GY_NEAR. */
    const void *const *far_src;
    void *const *far_dst;
    const void *const *far_scalar;
};

struct gy_fused {
    const uint32_t *abort; /* a word that is not 0: the kernel does nothing */
    uint32_t pieces;
    struct gy_kernel_piece piece[GY_PIECES_MOST];
};

/* ---- Copies: move.cuh -------------------------------------------------------------------------------------------- */

struct gy_one_move {
    char *dst;
    char *src;      /* only read, but for an exchange */
    uint64_t bytes; /* with GY_EXCHANGE in the highest bit */
};
#define GY_EXCHANGE ((uint64_t)1 << 63)

struct gy_moves {
    const uint32_t *abort; /* as above */
    uint32_t moves;
    struct gy_one_move move[GY_MOVES_MOST];
};

/* ---- Kernels that wait for those of other GPUs: two_shot.cuh, one_shot.cuh --------------------------------------- */

/* All words are 0 before the first launch. Every rank launches the same number of blocks in each step. */
struct gy_meeting {
    const uint32_t *abort;      /* a word that is not 0 ends the waits */
    uint32_t *step;             /* this rank's: launches that have ended */
    uint32_t *through;          /* this rank's: blocks of this launch that have ended */
    uint16_t rank, ranks;       /* at most GY_NEAR ranks */
    uint32_t *arrived[GY_NEAR]; /* of each rank: [ranks][blocks][2] */
};

struct gy_two_shot {
    struct gy_meeting meeting;
    uint32_t pieces;
    struct gy_kernel_piece piece[GY_PIECES_MOST - 1];
};

struct gy_two_shot_moves {
    struct gy_meeting meeting;
    uint32_t moves;
    struct gy_one_move move[GY_MOVES_MOST];
};

struct gy_one_shot {
    struct gy_meeting meeting; /* `arrived` is not used */
    uint32_t capacity;         /* lines of a rank in half an inbox */
    uint32_t count;            /* elements: at most 8 * capacity bytes */
    int32_t divisor;
    struct gy_line *inbox[GY_NEAR]; /* of each rank: [2][ranks][capacity], 0 before the first launch */
    const void *in;
    void *out;
    const void *scalar; /* this rank's, of a pre-multiplied sum */
};

#endif
