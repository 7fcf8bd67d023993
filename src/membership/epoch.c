/* Opens the first world of a process, and closes any of its worlds. next_epoch.c makes the others. */
#include "membership/epoch.h"

#include "bootstrap/identity.h"
#include "core/log.h"
#include "core/secret_memory.h"
#include "membership/agreement.h"
#include "membership/join_address.h"
#include "membership/overlay.h"

gyre_status gy_epoch_prepare(struct gy_world *world, struct gy_error *error)
{
    gyre_status status = gy_overlay_prepare(world, error);

    if (status != GYRE_SUCCESS)
        return status;
    world->agreement = gy_agreement_make(world->spare, world);
    return world->agreement ? GYRE_SUCCESS : gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for agreements");
}

static gyre_status open_world(const struct gy_identity *identity, struct gy_config *config, struct gy_poller *poller,
                              struct gy_world **world_p, struct gy_error *error)
{
    struct gy_world *world;
    gyre_status status;

    gy_log_set_rank(identity->rank);
    world = gy_world_make(identity->rank, identity->size, 1, config, poller);
    if (world)
        world->join_address = gy_join_address_make(identity, config);
    if (world && world->join_address)
        status = gy_epoch_prepare(world, error);
    else
        status = gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for %d members", identity->size);
    if (status == GYRE_SUCCESS)
        status = gy_world_bootstrap(world, identity, error);
    if (status == GYRE_SUCCESS)
        *world_p = world;
    else
        gy_world_free(world);
    return status;
}

gyre_status gy_world_open(const gyre_config *user, struct gy_config *config, struct gy_poller *poller,
                          struct gy_world **world_p, struct gy_error *error)
{
    struct gy_identity *identity = gy_secret_alloc(sizeof(*identity), GY_SECRET_COPIED);
    gyre_status status;

    if (!identity)
        return gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the identity of a rank");
    status = gy_identity_read(user, config, identity, error);
    if (status == GYRE_SUCCESS) {
        status = open_world(identity, config, poller, world_p, error);
        gy_identity_end(identity);
    }
    gy_secret_free(identity);
    return status;
}

static void world_end(struct gy_world *world, bool forked)
{
    if (!world)
        return;
    gy_overlay_abandon(world->spare); /* only memory, nothing is open */
    gy_agreement_free(world->agreement);
    if (forked)
        gy_join_address_abandon(world->join_address);
    else
        gy_join_address_free(world->join_address);
    gy_world_release(world, forked);
}

void gy_world_free(struct gy_world *world)
{
    world_end(world, false);
}

void gy_world_abandon(struct gy_world *world)
{
    world_end(world, true);
}
