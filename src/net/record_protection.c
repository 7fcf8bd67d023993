/* Sealing and opening of single pieces: see record_protection.h. Pure but for the numbers.
 *
 * The position of a piece is (number, 0 for a head and 1 for a body). It goes into the 12 bytes of nonce that ChaCha20
 * and AES-GCM take. Invariant: a seal closes each position once, so that under one key no nonce has two plaintexts. */
#include "net/record_protection.h"

#include <sodium.h>
#include <string.h>

#include "core/hash.h"
#include "core/secret_memory.h"
#include "net/byte_codec.h"
#include "net/gcm.h"

#define HEAD 0u
#define BODY 1u
#define KEY_ROOM (2 * (size_t)GY_SEAL_KEY_BYTES) /* a key and the one that follows */
#define ODD UINT64_C(0x9e3779b97f4a7c15)         /* any odd number: its multiples are all different */

_Static_assert(GY_SEAL_KEY_BYTES == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "key size of ChaCha20");
_Static_assert(GY_SEAL_KEY_BYTES == GY_GCM_KEY_BYTES, "key size of AES-256");
_Static_assert(GY_SEAL_TAG_BYTES == crypto_aead_chacha20poly1305_ietf_ABYTES, "size of a Poly1305 tag");
_Static_assert(GY_SEAL_TAG_BYTES == GY_GCM_TAG_BYTES, "size of a GCM tag");

struct nonce {
    uint8_t bytes[crypto_aead_chacha20poly1305_ietf_NPUBBYTES];
};

static struct nonce nonce_of(uint64_t number, unsigned part)
{
    struct nonce nonce = {{0}};
    struct gy_wire wire = gy_wire_over(nonce.bytes, sizeof(nonce.bytes));

    gy_wire_put(&wire, number, 8);
    gy_wire_put(&wire, part, 4);
    return nonce;
}

static void checksum(uint64_t number, unsigned part, const uint8_t *bytes, size_t count,
                     uint8_t tag_p[GY_SEAL_TAG_BYTES])
{
    XXH128_hash_t hash = XXH3_128bits(bytes, count);
    struct gy_wire wire = gy_wire_over(tag_p, GY_SEAL_TAG_BYTES);

    gy_wire_put(&wire, hash.low64 + ODD * (2 * number + part), 8);
    gy_wire_put(&wire, hash.high64, 8);
}

static void authenticate(const struct gy_seal *seal, uint64_t number, unsigned part, const uint8_t *bytes, size_t count,
                         uint8_t tag_p[GY_SEAL_TAG_BYTES])
{
    struct nonce nonce = nonce_of(number, part);
    uint8_t once[crypto_onetimeauth_KEYBYTES];

    crypto_stream_chacha20_ietf(once, sizeof(once), nonce.bytes, seal->key);
    crypto_onetimeauth(tag_p, bytes, count, once);
    sodium_memzero(once, sizeof(once));
}

static void close_piece(const struct gy_seal *seal, unsigned part, const uint8_t *bytes, size_t count, uint8_t *bytes_p,
                        uint8_t tag_p[GY_SEAL_TAG_BYTES])
{
    struct nonce nonce = nonce_of(seal->number, part);

    switch (seal->suite) {
    case GY_SUITE_CRC: checksum(seal->number, part, bytes, count, tag_p); break;
    case GY_SUITE_MAC: authenticate(seal, seal->number, part, bytes, count, tag_p); break;
    case GY_SUITE_CHACHA:
        crypto_aead_chacha20poly1305_ietf_encrypt_detached(bytes_p, tag_p, NULL, bytes, count, NULL, 0, NULL,
                                                           nonce.bytes, seal->key);
        break;
    case GY_SUITE_AES: gy_gcm_seal(seal->key, nonce.bytes, bytes, count, bytes_p, tag_p); break;
    case GY_SUITE_GMAC: gy_gcm_authenticate(seal->key, nonce.bytes, bytes, count, tag_p); break;
    default: memset(tag_p, 0, GY_SEAL_TAG_BYTES);
    }
}

/* In place where the seal hides. */
static bool open_piece(const struct gy_seal *seal, uint64_t number, unsigned part, uint8_t *bytes, size_t count,
                       const uint8_t tag[GY_SEAL_TAG_BYTES])
{
    struct nonce nonce = nonce_of(number, part);
    uint8_t expected[GY_SEAL_TAG_BYTES] = {0};

    switch (seal->suite) {
    case GY_SUITE_CHACHA:
        return crypto_aead_chacha20poly1305_ietf_decrypt_detached(bytes, NULL, bytes, count, tag, NULL, 0, nonce.bytes,
                                                                  seal->key) == 0;
    case GY_SUITE_AES: return gy_gcm_open(seal->key, nonce.bytes, bytes, count, tag);
    case GY_SUITE_GMAC: gy_gcm_authenticate(seal->key, nonce.bytes, bytes, count, expected); break;
    case GY_SUITE_CRC: checksum(number, part, bytes, count, expected); break;
    case GY_SUITE_MAC: authenticate(seal, number, part, bytes, count, expected); break;
    default: return true;
    }
    return sodium_memcmp(expected, tag, sizeof(expected)) == 0;
}

bool gy_seal_begin(struct gy_seal *seal, enum gy_suite suite, const uint8_t key[GY_SEAL_KEY_BYTES])
{
    *seal = (struct gy_seal){
        .suite = suite, .key = gy_secret_alloc(KEY_ROOM, GY_SECRET_WIPED), .renewal = GY_SEAL_RENEWAL};
    if (!seal->key)
        return false;
    memcpy(seal->key, key, GY_SEAL_KEY_BYTES);
    return true;
}

void gy_seal_end(struct gy_seal *seal)
{
    gy_secret_free(seal->key);
    seal->key = NULL;
}

struct gy_seal gy_seal_of(enum gy_suite suite, const uint8_t key[GY_SEAL_KEY_BYTES])
{
    return (struct gy_seal){.suite = suite, .key = (uint8_t *)(uintptr_t)key, .renewal = GY_SEAL_RENEWAL};
}

/* Puts the key that follows into the room behind the key. */
static uint8_t *make_next(const struct gy_seal *seal)
{
    static const uint8_t label[] = "gyre next key";
    uint8_t *next = seal->key + GY_SEAL_KEY_BYTES;

    crypto_generichash(next, GY_SEAL_KEY_BYTES, label, sizeof(label), seal->key, GY_SEAL_KEY_BYTES);
    return next;
}

/* That one is the key from now on. */
static void renew(struct gy_seal *seal)
{
    uint8_t *next = seal->key + GY_SEAL_KEY_BYTES;

    memcpy(seal->key, next, GY_SEAL_KEY_BYTES);
    sodium_memzero(next, GY_SEAL_KEY_BYTES);
}

void gy_seal_close_head(struct gy_seal *seal, const uint8_t *head, size_t bytes, uint8_t *wire_p)
{
    struct gy_wire wire = gy_wire_over(wire_p, bytes + GY_SEAL_HEAD_MORE);

    seal->number++;
    if (seal->number % seal->renewal == 0) {
        make_next(seal);
        renew(seal);
    }
    gy_wire_put(&wire, seal->number, GY_SEAL_NUMBER_BYTES);
    if (!gy_seal_hides(seal))
        memcpy(wire.at, head, bytes);
    close_piece(seal, HEAD, head, bytes, wire.at, wire.at + bytes);
}

void gy_seal_close_body(const struct gy_seal *seal, const uint8_t *body, size_t bytes, uint8_t *body_p,
                        uint8_t tag_p[GY_SEAL_TAG_BYTES])
{
    close_piece(seal, BODY, body, bytes, body_p, tag_p);
}

/* The first head of a new key, which is kept only if the head is genuine. */
static enum gy_flaw open_renewed(struct gy_seal *seal, uint64_t number, uint8_t *head_p, size_t bytes,
                                 const uint8_t tag[GY_SEAL_TAG_BYTES])
{
    struct gy_seal next = *seal;

    next.key = make_next(seal);
    if (!open_piece(&next, number, HEAD, head_p, bytes, tag)) {
        sodium_memzero(next.key, GY_SEAL_KEY_BYTES);
        return GY_FLAW_DAMAGED;
    }
    renew(seal);
    seal->number = number;
    return GY_FLAW_NONE;
}

enum gy_flaw gy_seal_open_head(struct gy_seal *seal, const uint8_t *wire_bytes, size_t bytes, uint8_t *head_p)
{
    uint64_t number = 0;

    for (unsigned i = 0; i < GY_SEAL_NUMBER_BYTES; i++)
        number |= (uint64_t)wire_bytes[i] << (8 * i);
    memcpy(head_p, wire_bytes + GY_SEAL_NUMBER_BYTES, bytes);
    if (number == seal->number + 1 && number % seal->renewal == 0)
        return open_renewed(seal, number, head_p, bytes, wire_bytes + GY_SEAL_NUMBER_BYTES + bytes);
    /* Opened with the number that it carries, to tell a misplaced piece from a forged one. */
    if (!open_piece(seal, number, HEAD, head_p, bytes, wire_bytes + GY_SEAL_NUMBER_BYTES + bytes))
        return GY_FLAW_DAMAGED;
    if (number <= seal->number)
        return GY_FLAW_REPEATED;
    if (number > seal->number + 1)
        return GY_FLAW_MISPLACED;
    seal->number = number;
    return GY_FLAW_NONE;
}

bool gy_seal_open_body(const struct gy_seal *seal, uint8_t *body, size_t bytes, const uint8_t tag[GY_SEAL_TAG_BYTES])
{
    return open_piece(seal, seal->number, BODY, body, bytes, tag);
}

const char *gy_flaw_text(enum gy_flaw flaw)
{
    static const char *const texts[] = {
        [GY_FLAW_NONE] = "is as it was sent",
        [GY_FLAW_DAMAGED] = "was changed on its way: its tag does not fit",
        [GY_FLAW_REPEATED] = "was repeated on its way: its number has been there",
        [GY_FLAW_MISPLACED] = "came out of turn: others before it were cut out or held back",
    };

    return (unsigned)flaw < GY_ARRAY_LENGTH(texts) ? texts[flaw] : "is wrong";
}

const char *gy_suite_name(enum gy_suite suite)
{
    static const char *const names[GY_SUITES] = {
        "off", "crc", "mac", "encrypt (ChaCha20-Poly1305)", "encrypt (AES-256-GCM)", "mac (AES-256-GMAC)"};

    return (unsigned)suite < GY_SUITES ? names[suite] : "unknown";
}
