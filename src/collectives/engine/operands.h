/* The operands of a call: which elements of its buffers this rank reads and writes. */
#ifndef GY_COLLECTIVES_ENGINE_OPERANDS_H
#define GY_COLLECTIVES_ENGINE_OPERANDS_H

#include "collectives/engine/request.h"

/* NONE: nothing; BLOCK: this rank's block; WHOLE: the blocks of all ranks; VECTOR: `count` elements. */
enum gy_part { GY_PART_NONE, GY_PART_BLOCK, GY_PART_WHOLE, GY_PART_VECTOR };

/* The part of a collective's input or output, on a rank that has it. */
enum gy_part gy_part_of(enum gy_collective collective, bool input);
/* The same on this rank: NONE also where only another rank, the root, has it. */
enum gy_part gy_part_here(const struct gyre_comm *comm, const struct gy_call *call, bool input);

/* Block b of the whole vector: its elements, and its place in elements from the start of the buffer. */
size_t gy_block_elements(const struct gy_call *call, bool input, int b);
size_t gy_block_place(const struct gy_call *call, bool input, int b);
/* Elements from the start of the buffer to the end of the part's last one; SIZE_MAX: more than is possible. */
size_t gy_part_elements(const struct gyre_comm *comm, const struct gy_call *call, bool input, enum gy_part part);
/* True if the blocks of a list lie at places of their own, with gaps between them perhaps. */
bool gy_blocks_are_placed(const struct gy_call *call, bool input);

#endif
