/* Broadcasts from one rank to ranks that it has no other connection to, in a world that goes on: a value of the layer
 * above, flooded like a leave message.
 *
 *   | rank 4 | its number 4 | word 4 | cause 4 | a bit for every rank of the world that it is meant for |
 *
 * Invariant. A rank numbers its broadcasts, and every rank forwards the first copy of each before the next one. So
 * first copies arrive in order from everywhere, and a number already seen has already been forwarded. */
#include <string.h>

#include "core/mem.h"
#include "membership/overlay_internal.h"
#include "net/byte_codec.h"

#define HEAD 16

size_t gy_overlay_marks(const struct gy_overlay *overlay)
{
    return ((size_t)overlay->world->size + 7) / 8;
}

static void pass_on(struct gy_overlay *overlay, const uint8_t *body, const struct gy_neighbour *from)
{
    for (int i = 0; i < overlay->count; i++)
        if (overlay->neighbours[i] != from)
            gy_stream_post(&overlay->neighbours[i]->stream, GY_OVERLAY_BROADCAST, body,
                           HEAD + gy_overlay_marks(overlay));
}

bool gy_overlay_announce(struct gy_overlay *overlay, uint32_t word, int cause, const uint8_t *whom)
{
    size_t marks = gy_overlay_marks(overlay);
    uint8_t *body = gy_alloc(HEAD + marks);
    struct gy_wire wire = gy_wire_over(body, HEAD + marks);

    if (!body)
        return false;
    gy_wire_put(&wire, (uint32_t)overlay->world->rank, 4);
    gy_wire_put(&wire, ++overlay->announced[overlay->world->rank], 4);
    gy_wire_put(&wire, word, 4);
    gy_wire_put(&wire, (uint32_t)cause, 4);
    gy_wire_put_bytes(&wire, whom, marks);
    pass_on(overlay, body, NULL);
    gy_free(body);
    return true;
}

void gy_broadcast_receive(struct gy_neighbour *from, uint8_t *body, size_t bytes)
{
    struct gy_overlay *overlay = from->overlay;
    struct gy_wire wire = gy_wire_over(body, bytes);
    uint64_t rank = gy_wire_get(&wire, 4), number = gy_wire_get(&wire, 4), word = gy_wire_get(&wire, 4),
             cause = gy_wire_get(&wire, 4), size = (uint64_t)overlay->world->size;
    size_t own = (size_t)overlay->world->rank;

    if (wire.bad || bytes != HEAD + gy_overlay_marks(overlay) || rank >= size || cause >= size ||
        rank == (uint64_t)own || number <= overlay->announced[rank])
        return;
    overlay->announced[rank] = (uint32_t)number;
    pass_on(overlay, body, from);
    if (overlay->on_announced && body[HEAD + own / 8] >> own % 8 & 1)
        overlay->on_announced(overlay->announced_user, (int)rank, (uint32_t)word, (int)cause);
}

void gy_overlay_on_announced(struct gy_overlay *overlay, gy_announced_func *func, void *user)
{
    overlay->on_announced = func;
    overlay->announced_user = user;
}
