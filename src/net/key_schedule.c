/* The secrets of a handshake: nonces, the keys of the job, and those of one connection.
 *
 *   secret text ──BLAKE2b──► key of bootstrap ───job, salt──► the job's key ──messages 1 to 3──┐
 *                              X25519(our ephemeral, theirs), zeros below mac ──────────────────┴──► in, out
 *
 * An ephemeral secret is used once and overwritten: the keys of a connection cannot be computed afterwards. */
#include <sodium.h>
#include <string.h>

#include "net/byte_codec.h"
#include "net/handshake.h"

_Static_assert(GY_HANDSHAKE_NONCE_BYTES == crypto_scalarmult_BYTES, "a nonce has room for a public key");

void gy_handshake_nonce(struct gy_handshake *handshake, bool key, uint8_t nonce_p[GY_HANDSHAKE_NONCE_BYTES])
{
    gy_random(key ? handshake->ephemeral : nonce_p, GY_HANDSHAKE_NONCE_BYTES);
    if (key)
        crypto_scalarmult_base(nonce_p, handshake->ephemeral);
}

static void mix(const uint8_t key[GY_HANDSHAKE_KEY_BYTES], const char *label, const uint8_t *more, size_t bytes,
                uint8_t key_p[GY_HANDSHAKE_KEY_BYTES])
{
    crypto_generichash_state state;

    crypto_generichash_init(&state, key, GY_HANDSHAKE_KEY_BYTES, GY_HANDSHAKE_KEY_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)label, strlen(label) + 1);
    crypto_generichash_update(&state, more, bytes);
    crypto_generichash_final(&state, key_p, GY_HANDSHAKE_KEY_BYTES);
}

bool gy_handshake_agree(struct gy_handshake *handshake, const uint8_t *theirs)
{
    uint8_t shared[crypto_scalarmult_BYTES] = {0}, talk[GY_HANDSHAKE_KEY_BYTES], key[GY_HANDSHAKE_KEY_BYTES];
    bool initiator = handshake->initiator;

    if (handshake->keys.suite >= GY_SUITE_MAC && crypto_scalarmult(shared, handshake->ephemeral, theirs) != 0)
        return false;
    mix(handshake->key, "gyre connection", handshake->transcript, handshake->transcript_bytes, talk);
    mix(talk, "gyre agreement", shared, sizeof(shared), key);
    mix(key, initiator ? "dialer" : "acceptor", NULL, 0, handshake->keys.out);
    mix(key, initiator ? "acceptor" : "dialer", NULL, 0, handshake->keys.in);
    sodium_memzero(shared, sizeof(shared));
    sodium_memzero(talk, sizeof(talk));
    sodium_memzero(key, sizeof(key));
    sodium_memzero(handshake->ephemeral, sizeof(handshake->ephemeral));
    return true;
}

void gy_handshake_derive(const uint8_t key[GY_HANDSHAKE_KEY_BYTES], const char *label, uint64_t job,
                         const uint8_t *salt, uint8_t key_p[GY_HANDSHAKE_KEY_BYTES])
{
    static const uint8_t zeros[GY_HANDSHAKE_KEY_BYTES];
    crypto_generichash_state state;
    uint8_t job_bytes[8];
    struct gy_wire wire = gy_wire_over(job_bytes, sizeof(job_bytes));

    gy_wire_put(&wire, job, 8);
    crypto_generichash_init(&state, key, GY_HANDSHAKE_KEY_BYTES, GY_HANDSHAKE_KEY_BYTES);
    crypto_generichash_update(&state, (const uint8_t *)label, strlen(label) + 1);
    crypto_generichash_update(&state, job_bytes, sizeof(job_bytes));
    crypto_generichash_update(&state, salt ? salt : zeros, GY_HANDSHAKE_KEY_BYTES);
    crypto_generichash_final(&state, key_p, GY_HANDSHAKE_KEY_BYTES);
}

void gy_handshake_key_of_secret(const char *secret, size_t bytes, uint8_t key_p[GY_HANDSHAKE_KEY_BYTES])
{
    static const uint8_t label[GY_HANDSHAKE_KEY_BYTES] = "gyre secret";

    crypto_generichash(key_p, GY_HANDSHAKE_KEY_BYTES, (const uint8_t *)secret, bytes, label, sizeof(label));
}

void gy_random(void *bytes_p, size_t count)
{
    if (sodium_init() < 0) /* idempotent and thread-safe; fails only without a source of randomness */
        sodium_misuse();
    randombytes_buf(bytes_p, count);
}
