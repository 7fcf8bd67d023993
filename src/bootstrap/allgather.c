/* Bootstrap where a framework can already communicate: its all-gather of bytes carries a record of each rank, and no
 * socket is needed before the overlay's.
 *
 * One round carries the records. The second carries whether every rank accepted them, so that all fail together. All
 * ranks have the same records and compare them with rank 0's, so all that fail report the same error. */
#include <stdio.h>
#include <string.h>

#include "bootstrap/messages.h"
#include "core/mem.h"
#include "net/byte_codec.h"

#define RECORD_BYTES (4 + 4 + 8 + 8 + GY_KEY_BYTES + GY_MEMBER_WIRE + GY_CONFIG_SHARED)

struct record {
    struct gy_bootstrap_register claim;
    uint64_t job;
    uint8_t salt[GY_KEY_BYTES];
};

static void encode_record(const struct gy_rendezvous *meeting, uint8_t *bytes)
{
    struct gy_world *world = meeting->world;
    struct gy_wire wire = gy_wire_over(bytes, RECORD_BYTES);

    memset(bytes, 0, RECORD_BYTES);
    gy_wire_put(&wire, (uint32_t)world->size, 4);
    gy_wire_put(&wire, (uint32_t)world->rank, 4);
    gy_wire_put(&wire, meeting->identity->label, 8);
    gy_wire_put(&wire, world->job, 8);
    gy_wire_put_bytes(&wire, meeting->salt, GY_KEY_BYTES);
    gy_member_encode(&world->members[world->rank], wire.at);
    wire.at += GY_MEMBER_WIRE;
    gy_wire_put_bytes(&wire, meeting->settings, meeting->settings_bytes);
}

/* The record in the place of `rank`, which may be anything. */
static gyre_status decode_record(struct gy_world *world, uint8_t *bytes, int rank, struct record *record_p,
                                 struct gy_error *error)
{
    struct gy_wire wire = gy_wire_over(bytes, RECORD_BYTES);
    uint32_t claimed;

    record_p->claim.size = (uint32_t)gy_wire_get(&wire, 4);
    claimed = (uint32_t)gy_wire_get(&wire, 4);
    record_p->claim.rank = rank;
    record_p->claim.label = gy_wire_get(&wire, 8);
    record_p->job = gy_wire_get(&wire, 8);
    gy_wire_get_bytes(&wire, record_p->salt, GY_KEY_BYTES);
    record_p->claim.settings = wire.at + GY_MEMBER_WIRE;
    record_p->claim.settings_bytes = strnlen((const char *)record_p->claim.settings, GY_CONFIG_SHARED);
    if (claimed != (uint32_t)rank)
        return gy_error_set(error, GYRE_REFUSED, rank, "the exchange callback put rank %u in the place of rank %d",
                            claimed, rank);
    if (!gy_member_decode(wire.at, &world->members[rank]))
        return gy_error_set(error, GYRE_PROTOCOL, rank, "rank %d sent a record that is not understood", rank);
    return GYRE_SUCCESS;
}

static gyre_status check_records(struct gy_rendezvous *meeting, uint8_t *all, struct gy_error *error)
{
    struct gy_world *world = meeting->world;
    struct record first = {0}, record;

    for (int rank = 0; rank < world->size; rank++) {
        if (decode_record(world, all + (size_t)rank * RECORD_BYTES, rank, rank ? &record : &first, error) !=
            GYRE_SUCCESS)
            return error->status;
        if (rank && !gy_bootstrap_agree(&first.claim, &record.claim, error))
            return error->status;
    }
    world->job = first.job;
    memcpy(meeting->salt, first.salt, sizeof(first.salt));
    return GYRE_SUCCESS;
}

static gyre_status exchange(struct gy_rendezvous *meeting, uint8_t *all, struct gy_error *error)
{
    const struct gy_identity *identity = meeting->identity;
    struct gy_world *world = meeting->world;
    uint8_t mine[RECORD_BYTES];
    gyre_status status;

    encode_record(meeting, mine);
    if (identity->exchange(identity->exchange_user, mine, all, RECORD_BYTES) != 0)
        return gy_error_set(error, GYRE_MEETING_FAILED, -1, "the exchange callback failed in its first round");
    status = check_records(meeting, all, error);
    if (status == GYRE_SUCCESS) {
        gy_handshake_derive(identity->key, "gyre session", world->job, meeting->salt, world->key);
        status = gy_bootstrap_open_listener(world, error);
    }
    memset(mine, 0, sizeof(mine));
    mine[0] = status == GYRE_SUCCESS;
    if (identity->exchange(identity->exchange_user, mine, all, RECORD_BYTES) != 0)
        return gy_error_set(error, GYRE_MEETING_FAILED, -1, "the exchange callback failed in its second round");
    for (int rank = 0; rank < world->size && status == GYRE_SUCCESS; rank++) {
        if (all[(size_t)rank * RECORD_BYTES] != 1)
            status = gy_error_set(error, GYRE_MEETING_FAILED, rank, "rank %d could not join; see its message", rank);
    }
    return status;
}

gyre_status gy_bootstrap_by_exchange(struct gy_rendezvous *meeting, struct gy_error *error)
{
    int size = meeting->world->size;
    uint8_t *all = gy_alloc_zero((size_t)size, RECORD_BYTES);
    gyre_status status;

    if (!all)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the records of %d ranks", size);
    status = exchange(meeting, all, error);
    gy_free(all);
    return status;
}
