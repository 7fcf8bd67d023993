/* The ring of envelopes: see sealed_frames.h.
 *
 *   queue:   frame 0 | frame 1 | frame 2 | ...          frames are sealed and leave in order
 *   ring:    first ... first + count - 1                envelope i belongs to the queue's frame i
 *   hidden:  [payload of 0 | payload of 1 | ... used)   empty again when no sealed frame is left
 *
 * Invariant: a frame keeps its envelope until all of it has left. So a partial send continues with the same bytes,
 * and its number is used once. */
#include "transport/sealed_frames.h"

#include <string.h>

#include "core/mem.h"

#define AT_ONCE (512u << 10) /* bytes per call: the first leave before the last are sealed */

struct gy_envelopes *gy_envelopes_make(enum gy_suite suite, const uint8_t key[GY_SEAL_KEY_BYTES])
{
    struct gy_envelopes *envelopes = gy_alloc_zero(1, sizeof(*envelopes));
    if (!envelopes)
        return NULL;
    bool sealed = gy_seal_begin(&envelopes->seal, suite, key);
    if (sealed && !gy_seal_hides(&envelopes->seal))
        return envelopes;
    envelopes->hidden = sealed ? gy_alloc(GY_FRAME_MAX) : NULL;
    if (envelopes->hidden)
        return envelopes;
    gy_envelopes_free(envelopes);
    return NULL;
}

void gy_envelopes_free(struct gy_envelopes *envelopes)
{
    if (!envelopes)
        return;
    gy_seal_end(&envelopes->seal);
    gy_free(envelopes->hidden);
    gy_free(envelopes);
}

/* Seals a frame. Returns false if the hidden buffer is full until earlier frames have left. */
static bool seal(struct gy_envelopes *envelopes, const struct gy_frame_out *frame)
{
    struct gy_envelope *envelope = &envelopes->ring[(envelopes->first + envelopes->count) % GY_ENVELOPES];
    size_t bytes = frame->header.bytes;
    uint8_t *hidden = envelopes->hidden ? envelopes->hidden + envelopes->hidden_used : NULL;
    uint8_t header[GY_FRAME_BYTES];
    if (hidden && bytes > GY_FRAME_MAX - envelopes->hidden_used)
        return false;
    gy_frame_encode(&frame->header, header);
    gy_seal_close_head(&envelopes->seal, header, sizeof(header), envelope->head);
    envelope->body = hidden ? hidden : frame->payload;
    if (bytes)
        gy_seal_close_body(&envelopes->seal, frame->payload, bytes, hidden, envelope->tail);
    envelopes->hidden_used += hidden ? bytes : 0;
    envelopes->count++;
    return true;
}

/* Adds one part of a frame, without its bytes that have left already. */
static size_t lay_out(struct iovec *piece, const uint8_t *bytes, size_t count, size_t *gone)
{
    size_t skip = gy_min_size(*gone, count);
    *gone -= skip;
    if (skip == count)
        return 0;
    *piece = (struct iovec){(void *)(uintptr_t)(bytes + skip), count - skip};
    return 1;
}

size_t gy_envelopes_gather(struct gy_envelopes *envelopes, const struct gy_frame_out *first, struct iovec *pieces)
{
    const struct gy_frame_out *frame = first;
    size_t count = 0, bytes = 0;
    for (unsigned i = 0; i < GY_ENVELOPES && frame && bytes < AT_ONCE; i++, frame = frame->next) {
        if (i == envelopes->count && !seal(envelopes, frame))
            break;
        const struct gy_envelope *envelope = &envelopes->ring[(envelopes->first + i) % GY_ENVELOPES];
        size_t gone = frame->sent;
        bytes += gy_envelope_bytes(&frame->header) - gone;
        count += lay_out(&pieces[count], envelope->head, GY_ENVELOPE_HEAD, &gone);
        if (frame->header.bytes == 0)
            continue;
        count += lay_out(&pieces[count], envelope->body, frame->header.bytes, &gone);
        count += lay_out(&pieces[count], envelope->tail, GY_SEAL_TAG_BYTES, &gone);
    }
    return count;
}

void gy_envelopes_gone(struct gy_envelopes *envelopes)
{
    envelopes->first = (envelopes->first + 1) % GY_ENVELOPES;
    envelopes->count--;
    if (envelopes->count == 0)
        envelopes->hidden_used = 0;
}
