/* What a rank tells the other ranks about its part of a call on memory of a device, so that they can map its operands:
 * plain data, which travels between the processes of a host. */
#ifndef GY_COLLECTIVES_DEVICE_CALL_FACT_H
#define GY_COLLECTIVES_DEVICE_CALL_FACT_H

#include "collectives/device/arrival.h"
#include "cuda/share.h"

enum { GY_FACT_LISTS = 4 };     /* counts and places of both operands */
enum { GY_FACT_FORGOTTEN = 8 }; /* serials of a fact */

enum gy_operand_kind {
    GY_OPERAND_NONE,    /* this rank has no elements there */
    GY_OPERAND_SHARED,  /* memory of the device, with an offer */
    GY_OPERAND_PRIVATE, /* memory that no other process can map */
};

struct gy_operand_fact {
    uint32_t kind; /* enum gy_operand_kind */
    uint64_t address, bytes;
    struct gy_share_offer offer; /* of the allocation that it lies in */
};

struct gy_call_fact {
    struct gy_call_signature shape;
    int32_t kernel; /* of a reduction; −1: there is none */
    uint32_t lists; /* a bit for each list that the call has */
    uint64_t count, scalar;
    struct gy_operand_fact input, output;
    int32_t pid; /* of the process of the rank, as in its offers */
    uint32_t forgotten;
    uint64_t process, forgotten_serial[GY_FACT_FORGOTTEN]; /* of exports that others close: gy_share_forgotten */
    uint64_t list[];                                       /* [GY_FACT_LISTS][size] */
};

/* The bytes of a fact in a communicator of `size` ranks. */
size_t gy_call_fact_bytes(int size);
/* Fills what this rank knows of the call of an arrival, whose shape is complete. Exports allocations that are used for
 * the first time. seen_p: for gy_share_forgotten. The device's context is current. */
void gy_call_fact_fill(struct gy_call_fact *fact, const struct gy_arrival *arrival, struct gy_share *share,
                       uint64_t *seen_p);
/* Closes the mappings of memory that the rank of a fact has forgotten. */
void gy_call_fact_close_forgotten(const struct gy_call_fact *fact, struct gy_share *share);
/* True if other processes can map the operands. */
bool gy_call_fact_is_shared(const struct gy_call_fact *fact);
/* Gives `call`, a copy of this rank's own call of the same shape, the counts and lists of the rank of the fact. The
 * lists stay in the fact. */
void gy_call_fact_apply(const struct gy_call_fact *fact, int size, struct gy_call *call);

#endif
