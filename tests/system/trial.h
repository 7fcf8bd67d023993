/* A trial: one call on one rank, its memory, and the reference that its result is compared with.
 *
 *   memory    guard | block 2 | gap | block 0 | block 1 | gap | guard        every byte outside blocks is painted
 *
 * What every rank contributes follows from (shape, rank, salt) alone, so each rank computes alone what it must receive.
 * After the call the blocks of the output are compared bit for bit, those of the input must be as they were, and what
 * lies between and around them must be paint. */
#ifndef GYRE_TESTS_SYSTEM_TRIAL_H
#define GYRE_TESTS_SYSTEM_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include <gyre/cuda.h>

#define TRIAL_RANKS 16

enum trial_kind {
    TRIAL_ALL_REDUCE,
    TRIAL_REDUCE,
    TRIAL_REDUCE_SCATTER,
    TRIAL_BROADCAST,
    TRIAL_ALL_GATHER,
    TRIAL_GATHER,
    TRIAL_SCATTER,
    TRIAL_ALL_TO_ALL,
    TRIAL_BARRIER,
    TRIAL_ALL_GATHERV, /* from here on with counts */
    TRIAL_GATHERV,
    TRIAL_SCATTERV,
    TRIAL_REDUCE_SCATTERV,
    TRIAL_ALL_TO_ALLV,
    TRIAL_SEND, /* from here on with a peer */
    TRIAL_RECV,
    TRIAL_KINDS
};

enum trial_layout { TRIAL_PACKED, TRIAL_GAPS, TRIAL_SHUFFLED };

struct trial_block {
    size_t place, count, first; /* elements: in the memory; of the owner's vector */
    int owner;                  /* −1: the reduction of all ranks */
};

struct trial;

/* Elements of an operation of the test's own, as bits: what a rank gives at place i of its vector, what comes out
 * there. */
struct trial_data {
    uint64_t (*give)(const struct trial *it, int rank, size_t i);
    uint64_t (*reduced)(const struct trial *it, size_t i);
};

struct trial {
    /* What the caller says, the first line the same on every rank. */
    enum trial_kind kind;
    gyre_comm *comm;
    int rank, size, root; /* root: the peer of a message */
    gyre_dtype dtype;
    gyre_op op;
    size_t count;
    size_t counts[TRIAL_RANKS][TRIAL_RANKS]; /* v-forms: row 0; all_to_allv: from row to column */
    enum trial_layout layout;
    bool in_place;
    unsigned shift;                /* bytes by which the memory is out of line */
    const struct trial_data *data; /* NULL: that of exact.h */
    const int *members;            /* the world's ranks, where `data` asks for them */
    gyre_stream stream;
    /* What follows. */
    size_t in_counts[TRIAL_RANKS], out_counts[TRIAL_RANKS], in_places[TRIAL_RANKS], out_places[TRIAL_RANKS];
    struct trial_block in[TRIAL_RANKS], out[TRIAL_RANKS];
    int ins, outs;
    unsigned char *memory[2];
    size_t elements[2];
    const void *input;
    void *output;
    uint64_t salt;
};

/* Lays out and allocates. `random`: the state of a generator of this rank's own. */
void trial_make(struct trial *it, uint64_t *random);
void trial_free(struct trial *it);
/* Paints everything, and writes what this rank contributes in the round `salt`. */
void trial_fill(struct trial *it, uint64_t salt);
gyre_status trial_call(const struct trial *it);
gyre_status trial_start(const struct trial *it, gyre_request **request_p);
gyre_status trial_init(const struct trial *it, gyre_request **request_p);
gyre_status trial_call_on(const struct trial *it); /* its stream */
/* Bytes of each side's memory. */
size_t trial_bytes(const struct trial *it, int side);
/* NULL: all is as it must be. Otherwise what is wrong, in static memory. Paints over what it has seen. */
const char *trial_wrong(struct trial *it);
const char *trial_name(enum trial_kind kind);

uint64_t trial_random(uint64_t *state);
/* Below `end`, which is not 0. */
uint64_t trial_below(uint64_t *state, uint64_t end);

#endif
