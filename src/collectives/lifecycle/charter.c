/* What the context of a joiner inherits from the communicator that it joins: count of the user's operations,
 * attributes, join address. */
#include "collectives/lifecycle/charter.h"

#include <string.h>

#include "collectives/select/selector.h"
#include "membership/join_address.h"
#include "net/byte_codec.h"

void gy_charter_write(const struct gyre_comm *comm, uint64_t operations, struct gy_charter *charter_p)
{
    const struct gy_attributes *attributes = &comm->attributes;
    struct gy_wire wire = gy_wire_over(charter_p->bytes, sizeof(charter_p->bytes));
    char address[GY_ADDRESS_PLACE];
    size_t length = strlen(gy_address_print(&comm->ctx->world->join_address->address, address));
    _Static_assert(8 + sizeof(address) + sizeof(attributes->algorithm) <= GY_CHARTER_MOST,
                   "what a joining process takes over has room");
    gy_wire_put(&wire, operations, 4);
    gy_wire_put(&wire, attributes->canonical, 1);
    gy_wire_put(&wire, attributes->uniform, 1);
    gy_wire_put(&wire, length, 2);
    gy_wire_put_bytes(&wire, address, length);
    gy_wire_put_bytes(&wire, attributes->algorithm, strlen(attributes->algorithm));
    charter_p->size = (size_t)(wire.at - charter_p->bytes);
}

/* Inherits the address at which the world was bootstrapped. From now on this process, too, can be found there,
 * should it become rank 0. A world without such an address keeps the one at which the joiner has joined. */
static bool inherit_address(struct gy_wire *wire, struct gy_join_address *join_address)
{
    char address[GY_ADDRESS_PLACE] = "";
    size_t length = (size_t)gy_wire_get(wire, 2);
    if (length >= sizeof(address))
        return false;
    gy_wire_get_bytes(wire, address, length);
    return !wire->bad && strlen(address) == length &&
           (length == 0 || gy_address_parse(address, &join_address->address));
}

gyre_status gy_charter_follow(struct gy_context *ctx, const struct gy_charter *charter, struct gy_error *error)
{
    const struct gy_operations none = {0};
    uint8_t copy[GY_CHARTER_MOST];
    struct gy_wire wire = gy_wire_over(copy, charter->size);
    memcpy(copy, charter->bytes, charter->size);
    uint64_t operations = gy_wire_get(&wire, 4);
    bool canonical = gy_wire_get(&wire, 1) != 0, uniform = gy_wire_get(&wire, 1) != 0;
    bool known = inherit_address(&wire, ctx->world->join_address);
    size_t length = (size_t)(wire.end - wire.at);
    if (wire.bad || !known || operations > GY_OPS_MADE_MOST || length >= sizeof(ctx->config.algorithm) ||
        memchr(wire.at, '\0', length))
        return gy_error_set(error, GYRE_PROTOCOL, 0, "the world to join has settings that this version does not know");
    ctx->config.canonical = canonical;
    ctx->config.uniform = uniform;
    memcpy(ctx->config.algorithm, wire.at, length);
    ctx->config.algorithm[length] = '\0';
    gyre_status status = gy_select_check(ctx->config.algorithm, error);
    return status == GYRE_SUCCESS ? gy_operations_copy(&ctx->operations, &none, (int)operations, error) : status;
}
