/* The messages of bootstrap, and the tree.
 *
 *            0                    children of tree position s: s + 2^k for 2^k below the lowest set bit of s
 *        1   2       4            (of 0: every power of two)
 *            3     5   6
 *                      7 */
#include "bootstrap/messages.h"

#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/mem.h"
#include "net/byte_codec.h"

void gy_member_encode(const struct gy_member *member, uint8_t wire_p[GY_MEMBER_WIRE])
{
    struct gy_wire wire = gy_wire_over(wire_p, GY_MEMBER_WIRE);

    gy_wire_put(&wire, member->host_key, 8);
    gy_wire_put(&wire, (uint32_t)member->pid, 4);
    gy_wire_put(&wire, member->nonce, 8);
    gy_wire_put(&wire, member->cores, 2);
    gy_wire_put(&wire, member->binding, 2);
    gy_wire_put(&wire, member->fabrics, 4);
    gy_wire_put(&wire, member->fabric_links, 4);
    gy_address_encode(&member->address, wire.at);
}

bool gy_member_decode(const uint8_t wire_bytes[GY_MEMBER_WIRE], struct gy_member *member_p)
{
    uint8_t copy[GY_MEMBER_WIRE];
    struct gy_wire wire = gy_wire_over(copy, sizeof(copy));
    struct gy_member member = {0};

    memcpy(copy, wire_bytes, sizeof(copy));
    member.host_key = gy_wire_get(&wire, 8);
    member.pid = (int32_t)gy_wire_get(&wire, 4);
    member.nonce = gy_wire_get(&wire, 8);
    member.cores = (uint16_t)gy_wire_get(&wire, 2);
    member.binding = (uint16_t)gy_wire_get(&wire, 2);
    member.fabrics = (uint32_t)gy_wire_get(&wire, 4);
    member.fabric_links = (uint32_t)gy_wire_get(&wire, 4);
    if (!gy_address_decode(wire.at, &member.address) || member.pid <= 0)
        return false;
    *member_p = member;
    return true;
}

int gy_bootstrap_child(int position, int size, int k)
{
    int step = k < 31 ? 1 << k : 0;

    if (step == 0 || (position != 0 && step >= (position & -position)) || step >= size - position)
        return -1;
    return position + step;
}

static void copy_settings(const struct gy_bootstrap_register *claim, char text_p[GY_CONFIG_SHARED + 1])
{
    size_t bytes = gy_min_size(claim->settings_bytes, GY_CONFIG_SHARED);

    memcpy(text_p, claim->settings, bytes);
    text_p[bytes] = '\0';
}

bool gy_bootstrap_agree(const struct gy_bootstrap_register *own, const struct gy_bootstrap_register *theirs,
                        struct gy_error *error)
{
    char mine[GY_CONFIG_SHARED + 1], other[GY_CONFIG_SHARED + 1];
    struct gy_config_difference difference;

    if (theirs->label != own->label) {
        gy_error_set(
            error, GYRE_REFUSED, theirs->rank,
            "a process that says it is rank %d belongs to another job (TORCHELASTIC_RUN_ID, or Slurm's job and "
            "step, differ from rank %d's)",
            theirs->rank, own->rank);
        return false;
    }
    if (theirs->size != own->size) {
        gy_error_set(error, GYRE_REFUSED, theirs->rank,
                     "rank %d says that there are %u ranks, rank %d says %u: check WORLD_SIZE", theirs->rank,
                     theirs->size, own->rank, own->size);
        return false;
    }
    copy_settings(own, mine);
    copy_settings(theirs, other);
    if (!gy_config_differs(mine, other, &difference))
        return true;
    gy_error_set(error, GYRE_REFUSED, theirs->rank,
                 "%s differs: %s on rank %d, %s on rank %d; it must be the same on every rank", difference.name,
                 difference.mine, own->rank, difference.theirs, theirs->rank);
    return false;
}

size_t gy_bootstrap_failed_encode(const struct gy_error *error, int own, uint8_t body_p[8 + GY_BOOTSTRAP_TEXT])
{
    struct gy_wire wire = gy_wire_over(body_p, 8 + GY_BOOTSTRAP_TEXT);
    bool mine = error->rank < 0 && (error->status == GYRE_NO_MEMORY || error->status == GYRE_NO_DESCRIPTORS ||
                                    error->status == GYRE_SYSTEM);
    char text[GY_BOOTSTRAP_TEXT + 1];

    if (mine && strncmp(error->text, "rank ", 5) != 0)
        snprintf(text, sizeof(text), "rank %d cannot meet the others: %.450s", own, error->text);
    else
        snprintf(text, sizeof(text), "%.*s", GY_BOOTSTRAP_TEXT, error->text);
    gy_wire_put(&wire, (uint64_t)error->status, 4);
    gy_wire_put(&wire, (uint32_t)(mine ? own : error->rank), 4);
    gy_wire_put_bytes(&wire, text, strlen(text));
    return 8 + strlen(text);
}

bool gy_bootstrap_failed_decode(uint8_t *body, size_t bytes, struct gy_error *error)
{
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint32_t status, rank;

    if (bytes < 8 || bytes > 8 + GY_BOOTSTRAP_TEXT)
        return false;
    status = (uint32_t)gy_wire_get(&wire, 4);
    rank = (uint32_t)gy_wire_get(&wire, 4);
    if (!gy_status_is_failure(status))
        return false;
    error->status = (gyre_status)status;
    error->rank = (int)rank;
    memcpy(error->text, wire.at, bytes - 8);
    error->text[bytes - 8] = '\0';
    gy_log(GY_LOG_INFO, "%s", error->text);
    return true;
}

bool gy_bootstrap_table_encode(const struct gy_world *world, uint8_t **body_p, size_t *bytes_p)
{
    size_t bytes = 4 + (size_t)world->size * GY_MEMBER_WIRE;
    uint8_t *body = gy_alloc(bytes);
    struct gy_wire wire;

    if (!body)
        return false;
    wire = gy_wire_over(body, bytes);
    gy_wire_put(&wire, (uint32_t)world->size, 4);
    for (int rank = 0; rank < world->size; rank++, wire.at += GY_MEMBER_WIRE)
        gy_member_encode(&world->members[rank], wire.at);
    *body_p = body;
    *bytes_p = bytes;
    return true;
}

bool gy_bootstrap_table_decode(struct gy_world *world, uint8_t *body, size_t bytes)
{
    struct gy_wire wire = gy_wire_over(body, bytes);

    if (bytes != 4 + (size_t)world->size * GY_MEMBER_WIRE || gy_wire_get(&wire, 4) != (uint32_t)world->size)
        return false;
    for (int rank = 0; rank < world->size; rank++, wire.at += GY_MEMBER_WIRE) {
        if (!gy_member_decode(wire.at, &world->members[rank]))
            return false;
    }
    return true;
}

gyre_status gy_bootstrap_open_listener(struct gy_world *world, struct gy_error *error)
{
    const struct gy_listener_env env = {
        .poller = world->poller,
        .key = world->key,
        .job = world->job,
        .rank = world->rank,
        .size = world->size,
        .purposes = GY_PURPOSES_OF_MEMBERS,
        .peer_timeout_ns = world->config->peer_timeout_ns,
        .integrity = (enum gy_integrity)world->config->integrity,
        .sockets_opened = &world->counters.sockets_opened,
    };

    return gy_listener_open(world->listener, &env, error);
}
