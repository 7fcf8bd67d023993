/* The agreement's messages and outcomes as bytes, both ways. Pure functions: only the arguments are read or changed.
 * Received input is bounds-checked before use. docs/wire.md has the tables. */
#include <string.h>

#include "core/mem.h"
#include "membership/agreement_internal.h"
#include "net/byte_codec.h"

#define HEAD 14u
#define WORD (4u + 1u + 8u + 8u + 1u + GY_AGREEMENT_RECORD)
#define OUTCOME_HEAD (1u + 8u + 8u + 8u + GY_KEY_BYTES + 4u)
#define OUTCOME_MEMBER (4u + 1u + GY_AGREEMENT_RECORD)

size_t gy_outcome_most(int size)
{
    return OUTCOME_HEAD + (size_t)size * OUTCOME_MEMBER;
}

size_t gy_agreement_message_most(int size)
{
    return HEAD + WORD + gy_outcome_most(size);
}

static void put_record(struct gy_wire *wire, const struct gy_agreement_input *input)
{
    gy_wire_put(wire, input->record_bytes, 1);
    gy_wire_put_bytes(wire, input->record, input->record_bytes);
}

static size_t get_record(struct gy_wire *wire, uint8_t record_p[GY_AGREEMENT_RECORD])
{
    size_t bytes = (size_t)gy_wire_get(wire, 1);

    if (bytes > GY_AGREEMENT_RECORD) {
        wire->bad = true;
        return 0;
    }
    gy_wire_get_bytes(wire, record_p, bytes);
    return bytes;
}

size_t gy_agreement_encode(const struct gy_agreement_message *message, uint8_t *body_p, size_t room)
{
    struct gy_wire wire = gy_wire_over(body_p, room);

    gy_wire_put(&wire, message->type, 1);
    gy_wire_put(&wire, message->comm, 4);
    gy_wire_put(&wire, message->number, 4);
    gy_wire_put(&wire, (uint32_t)message->coordinator, 4);
    gy_wire_put(&wire, message->part, 1);
    if (message->type == GY_AGREEMENT_JOIN) {
        gy_wire_put(&wire, (uint32_t)message->accepted, 4);
        gy_wire_put(&wire, message->input.kind, 1);
        gy_wire_put(&wire, message->input.bits, 8);
        gy_wire_put(&wire, message->input.count, 8);
        put_record(&wire, &message->input);
    }
    if (message->blob_bytes > 0)
        gy_wire_put_bytes(&wire, message->blob, message->blob_bytes);
    return wire.bad ? 0 : (size_t)(wire.at - body_p);
}

bool gy_agreement_decode(uint8_t *body, size_t bytes, int size, struct gy_agreement_message *message_p)
{
    struct gy_wire wire = gy_wire_over(body, bytes);

    memset(message_p, 0, sizeof(*message_p));
    message_p->type = (uint8_t)gy_wire_get(&wire, 1);
    message_p->comm = (uint32_t)gy_wire_get(&wire, 4);
    message_p->number = (uint32_t)gy_wire_get(&wire, 4);
    message_p->coordinator = (int)(int32_t)gy_wire_get(&wire, 4);
    message_p->part = (enum gy_agreement_part)gy_wire_get(&wire, 1);
    message_p->accepted = GY_NOBODY;
    if (message_p->type == GY_AGREEMENT_JOIN) {
        message_p->accepted = (int)(int32_t)gy_wire_get(&wire, 4);
        message_p->input.kind = (uint8_t)gy_wire_get(&wire, 1);
        message_p->input.bits = gy_wire_get(&wire, 8);
        message_p->input.count = gy_wire_get(&wire, 8);
        message_p->input.record_bytes = get_record(&wire, message_p->input.record);
    }
    message_p->blob = wire.at;
    message_p->blob_bytes = (size_t)(wire.end - wire.at);
    return !wire.bad && message_p->type >= GY_AGREEMENT_JOIN && message_p->type <= GY_AGREEMENT_BEAT &&
           message_p->part <= GY_PART_AWAY && message_p->coordinator >= GY_NOBODY && message_p->coordinator < size &&
           message_p->accepted >= GY_NOBODY && message_p->accepted < size &&
           message_p->blob_bytes <= gy_outcome_most(size);
}

size_t gy_outcome_encode(const struct gy_outcome *outcome, const struct gy_agreement_input *const *words,
                         uint8_t *blob_p, size_t room)
{
    struct gy_wire wire = gy_wire_over(blob_p, room);

    gy_wire_put(&wire, outcome->status, 1);
    gy_wire_put(&wire, outcome->bits, 8);
    gy_wire_put(&wire, outcome->count, 8);
    gy_wire_put(&wire, outcome->job, 8);
    gy_wire_put_bytes(&wire, outcome->salt, sizeof(outcome->salt));
    gy_wire_put(&wire, (uint32_t)outcome->ranks, 4);
    for (int i = 0; i < outcome->ranks; i++) {
        gy_wire_put(&wire, (uint32_t)outcome->rank[i], 4);
        put_record(&wire, words[i]);
    }
    return wire.bad ? 0 : (size_t)(wire.at - blob_p);
}

/* All but the members: how many these are. 0: nonsense. */
static uint32_t get_head(struct gy_wire *wire, int size, struct gy_outcome *outcome_p)
{
    uint32_t ranks;

    outcome_p->status = (gyre_status)gy_wire_get(wire, 1);
    outcome_p->bits = gy_wire_get(wire, 8);
    outcome_p->count = gy_wire_get(wire, 8);
    outcome_p->job = gy_wire_get(wire, 8);
    gy_wire_get_bytes(wire, outcome_p->salt, sizeof(outcome_p->salt));
    ranks = (uint32_t)gy_wire_get(wire, 4);
    if (wire->bad || ranks > (uint32_t)size ||
        (outcome_p->status != GYRE_SUCCESS && !gy_status_is_failure(outcome_p->status)))
        return 0;
    return ranks;
}

bool gy_outcome_check(const uint8_t *blob, size_t bytes, int size, const int *members, int count)
{
    struct gy_wire wire = gy_wire_over((void *)(uintptr_t)blob, bytes);
    struct gy_outcome head;
    uint8_t record[GY_AGREEMENT_RECORD];
    uint32_t ranks = get_head(&wire, size, &head);
    int last = GY_NOBODY, at = 0;

    for (uint32_t i = 0; i < ranks && !wire.bad; i++) {
        int rank = (int)(int32_t)gy_wire_get(&wire, 4);

        get_record(&wire, record);
        while (members && at < count && members[at] < rank)
            at++;
        wire.bad |= rank <= last || rank >= size || (members && (at == count || members[at] != rank));
        last = rank;
    }
    return ranks > 0 && !wire.bad && wire.at == wire.end;
}

bool gy_outcome_reserve(int count, struct gy_outcome *outcome_p)
{
    struct gy_outcome outcome = {.rank = gy_alloc((size_t)count * sizeof(*outcome.rank)),
                                 .record = gy_alloc_zero((size_t)count, GY_AGREEMENT_RECORD)};

    if (!outcome.rank || !outcome.record) {
        gy_outcome_free(&outcome);
        return false;
    }
    *outcome_p = outcome;
    return true;
}

void gy_outcome_read(const uint8_t *blob, size_t bytes, int size, struct gy_outcome *outcome_p)
{
    struct gy_wire wire = gy_wire_over((void *)(uintptr_t)blob, bytes);

    outcome_p->ranks = (int)get_head(&wire, size, outcome_p);
    for (int i = 0; i < outcome_p->ranks; i++) {
        outcome_p->rank[i] = (int)(int32_t)gy_wire_get(&wire, 4);
        get_record(&wire, outcome_p->record[i]);
    }
}

bool gy_outcome_decode(const uint8_t *blob, size_t bytes, int size, struct gy_outcome *outcome_p)
{
    struct gy_wire wire = gy_wire_over((void *)(uintptr_t)blob, bytes);
    struct gy_outcome head;

    if (!gy_outcome_check(blob, bytes, size, NULL, 0) ||
        !gy_outcome_reserve((int)get_head(&wire, size, &head), outcome_p))
        return false;
    gy_outcome_read(blob, bytes, size, outcome_p);
    return true;
}

void gy_outcome_free(struct gy_outcome *outcome)
{
    gy_free(outcome->rank);
    gy_free(outcome->record);
    *outcome = (struct gy_outcome){0};
}
