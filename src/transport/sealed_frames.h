/* Frames as they travel on a sealed link (net/record_protection.h), from the moment they are sealed until their last
 * byte has left.
 *
 *   | number 8 | header 64 | tag 16 | payload ... | tag 16 |        no second tag without a payload
 *
 * A frame is sealed once, when it is about to leave, for any number of partial sends. Header and tags lie in one of
 * a few envelopes, used as a ring. A payload that is encrypted goes to a buffer beside them; otherwise it is sent in
 * place. */
#ifndef GY_TRANSPORT_SEALED_FRAMES_H
#define GY_TRANSPORT_SEALED_FRAMES_H

#include <sys/uio.h>

#include "net/record_protection.h"
#include "transport/transport.h"

#define GY_ENVELOPE_HEAD (GY_FRAME_BYTES + GY_SEAL_HEAD_MORE)
#define GY_ENVELOPES 16u
#define GY_ENVELOPE_PIECES 3u /* per frame */

struct gy_envelopes {
    struct gy_seal seal;
    unsigned first, count; /* sealed frames that have not left: the first `count` of the link's queue */
    uint8_t *hidden;       /* GY_FRAME_MAX bytes if the seal encrypts, else NULL */
    size_t hidden_used;
    struct gy_envelope {
        const uint8_t *body; /* the payload's bytes on the wire */
        uint8_t head[GY_ENVELOPE_HEAD], tail[GY_SEAL_TAG_BYTES];
    } ring[GY_ENVELOPES];
};

/* Returns NULL if out of memory. */
struct gy_envelopes *gy_envelopes_make(enum gy_suite suite, const uint8_t key[GY_SEAL_KEY_BYTES]);
void gy_envelopes_free(struct gy_envelopes *envelopes);
/* Bytes of a frame on the wire. */
static inline size_t gy_envelope_bytes(const struct gy_frame *frame)
{
    return GY_ENVELOPE_HEAD + frame->bytes + (frame->bytes ? GY_SEAL_TAG_BYTES : 0);
}
/* Lays out frames from the queue's head, without the first `sent` bytes, and seals new ones. `pieces` has room for
 * GY_ENVELOPES * GY_ENVELOPE_PIECES; returns the number used. */
size_t gy_envelopes_gather(struct gy_envelopes *envelopes, const struct gy_frame_out *first, struct iovec *pieces);
/* The first frame has left. */
void gy_envelopes_gone(struct gy_envelopes *envelopes);

#endif
