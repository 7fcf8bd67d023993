/* What makes the bytes behind a handshake safe against accident and malice: GYRE_INTEGRITY. A connection has one seal
 * per direction; what travels is sealed in pieces, a head of fixed size and the body that it announces:
 *
 *   | number 8 | head | tag 16 | body ... | tag 16 |     no second tag where there is no body
 *
 * The number counts the heads of one direction from 1. Every tag covers number and position (head or body) as well as
 * the bytes, so a piece fits nowhere but where it was made for:
 *
 *   crc       XXH3, 128 bits, of the bytes, mixed with the position: against accident only, it needs no key
 *   mac       Poly1305 under a one-time key, which is ChaCha20's output for (key, position)
 *   encrypt   ChaCha20-Poly1305 or, where both CPUs do AES, AES-256-GCM, with the position as nonce
 *
 * The keys are the connection's own (handshake.h) and one for each direction, so no nonce is used twice and nothing of
 * another connection, or of the other direction, fits. A head is opened before it is believed: no length, place in
 * memory or kind is ever taken from a piece whose tag does not fit. */
#ifndef GY_NET_RECORD_PROTECTION_H
#define GY_NET_RECORD_PROTECTION_H

#include "core/base.h"
#include "core/config.h"

#define GY_SEAL_KEY_BYTES 32
#define GY_SEAL_NUMBER_BYTES 8u
#define GY_SEAL_TAG_BYTES 16u
#define GY_SEAL_HEAD_MORE (GY_SEAL_NUMBER_BYTES + GY_SEAL_TAG_BYTES) /* what a head is longer when sealed */

/* Values travel on the wire. */
enum gy_suite { GY_SUITE_OFF, GY_SUITE_CRC, GY_SUITE_MAC, GY_SUITE_CHACHA, GY_SUITE_AES, GY_SUITE_GMAC, GY_SUITES };

/* Of a connection, as one of its ends sees it. */
struct gy_seal_keys {
    enum gy_suite suite;
    uint8_t out[GY_SEAL_KEY_BYTES], in[GY_SEAL_KEY_BYTES];
};

/* One direction. `number` is that of the head that was sealed, or opened, last. The head of each multiple of `renewal`
 * is the first sealed with a new key, which is derived from the previous one. A leaked key cannot open what was sealed
 * before it was made. */
struct gy_seal {
    enum gy_suite suite;
    uint8_t *key;             /* secret memory, with room for the key that follows it */
    uint64_t number, renewal; /* GY_SEAL_RENEWAL; tests make it less, at both ends */
};

#define GY_SEAL_RENEWAL \
    (UINT64_C(1) << 24) /* heads; with bodies of a mebibyte 16 TiB, far within what GCM allows a key */

/* What is wrong with a piece. REPEATED and MISPLACED are genuine pieces of this direction in the wrong position. */
enum gy_flaw { GY_FLAW_NONE, GY_FLAW_DAMAGED, GY_FLAW_REPEATED, GY_FLAW_MISPLACED };

/* Copies the key. False: out of memory. */
bool gy_seal_begin(struct gy_seal *seal, enum gy_suite suite, const uint8_t key[GY_SEAL_KEY_BYTES]);
/* Overwrites and frees the key. Idempotent, also for a zeroed seal. */
void gy_seal_end(struct gy_seal *seal);
/* A seal for a single piece or two, whose key stays the caller's: needs no memory and has no end. */
struct gy_seal gy_seal_of(enum gy_suite suite, const uint8_t key[GY_SEAL_KEY_BYTES]);
/* True if bodies are encrypted, so that the output needs another buffer. */
static inline bool gy_seal_hides(const struct gy_seal *seal)
{
    return seal->suite == GY_SUITE_CHACHA || seal->suite == GY_SUITE_AES;
}

/* Takes the next number. wire_p: `bytes` + GY_SEAL_HEAD_MORE. */
void gy_seal_close_head(struct gy_seal *seal, const uint8_t *head, size_t bytes, uint8_t *wire_p);
/* The body of the head closed last. Where the seal hides, what travels is written to body_p, which may be `body`;
 * otherwise `body` travels as it is and body_p is not used. */
void gy_seal_close_body(const struct gy_seal *seal, const uint8_t *body, size_t bytes, uint8_t *body_p,
                        uint8_t tag_p[GY_SEAL_TAG_BYTES]);
/* head_p: `bytes`. Filled, and the number taken, only without a flaw. */
enum gy_flaw gy_seal_open_head(struct gy_seal *seal, const uint8_t *wire, size_t bytes, uint8_t *head_p);
/* The body of the head opened last, in its place. false: damaged, and what is in the place then is meaningless. */
bool gy_seal_open_body(const struct gy_seal *seal, uint8_t *body, size_t bytes, const uint8_t tag[GY_SEAL_TAG_BYTES]);

/* "was changed on its way", ...: static. */
const char *gy_flaw_text(enum gy_flaw flaw);
/* "mac", ...: static. */
const char *gy_suite_name(enum gy_suite suite);

#endif
