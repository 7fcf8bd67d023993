/* The four messages of handshake.h. Invariant: `transcript` holds, on both sides, the same bytes in the order in which
 * they were sent; every MAC covers all of it, the message's own fields included. */
#include "net/handshake.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "net/byte_codec.h"
#include "net/gcm.h"

#define MAGIC 0x45525947u /* "GYRE" */
#define MAC_BYTES 32u
#define NONCE_1 28u /* offset of the nonce in messages 1 and 2 */
#define NONCE_2 24u
#define ROLE_INITIATOR 1u
#define ROLE_ACCEPTOR 2u

_Static_assert(GY_HANDSHAKE_KEY_BYTES == crypto_generichash_KEYBYTES, "key size of keyed BLAKE2b");

static void mac(const struct gy_handshake *handshake, uint8_t step, uint8_t mac_p[MAC_BYTES])
{
    crypto_generichash_state state;
    uint8_t label[16] = "gyre handshake ";

    label[15] = step;
    crypto_generichash_init(&state, handshake->key, GY_HANDSHAKE_KEY_BYTES, MAC_BYTES);
    crypto_generichash_update(&state, label, sizeof(label));
    crypto_generichash_update(&state, handshake->transcript, handshake->transcript_bytes);
    crypto_generichash_final(&state, mac_p, MAC_BYTES);
}

static void remember(struct gy_handshake *handshake, const uint8_t *bytes, size_t count)
{
    memcpy(handshake->transcript + handshake->transcript_bytes, bytes, count);
    handshake->transcript_bytes += count;
}

/* The suite for a mode, of ciphers that both sides have; OFF where there is none. */
static enum gy_suite choose(enum gy_integrity mode, unsigned ciphers)
{
    if (mode == GY_INTEGRITY_CRC)
        return GY_SUITE_CRC;
    if (mode == GY_INTEGRITY_MAC)
        return ciphers & 1u << GY_SUITE_GMAC ? GY_SUITE_GMAC : GY_SUITE_MAC;
    if (mode == GY_INTEGRITY_ENCRYPT)
        return ciphers & 1u << GY_SUITE_AES ? GY_SUITE_AES : GY_SUITE_CHACHA;
    return GY_SUITE_OFF;
}

static void expect(struct gy_handshake *handshake, int step, size_t bytes)
{
    handshake->step = step;
    handshake->in_bytes = 0;
    handshake->in_want = bytes;
}

static void say_1(struct gy_handshake *handshake)
{
    struct gy_wire wire = gy_wire_over(handshake->out, GY_HANDSHAKE_BYTES_1);
    uint8_t nonce[GY_HANDSHAKE_NONCE_BYTES], tag[MAC_BYTES];

    gy_handshake_nonce(handshake, handshake->mode >= GY_INTEGRITY_MAC, nonce);
    gy_wire_put(&wire, MAGIC, 4);
    gy_wire_put(&wire, handshake->version, 2);
    gy_wire_put(&wire, ROLE_INITIATOR, 1);
    gy_wire_put(&wire, handshake->purpose, 1);
    gy_wire_put(&wire, handshake->job, 8);
    gy_wire_put(&wire, handshake->from, 4);
    gy_wire_put(&wire, handshake->to, 4);
    gy_wire_put(&wire, handshake->mode, 1);
    gy_wire_put(&wire, handshake->ciphers, 1);
    gy_wire_put(&wire, 0, 2);
    gy_wire_put_bytes(&wire, nonce, sizeof(nonce));
    remember(handshake, handshake->out, GY_HANDSHAKE_BYTES_1 - MAC_BYTES);
    mac(handshake, 1, tag);
    gy_wire_put_bytes(&wire, tag, sizeof(tag));
    remember(handshake, tag, sizeof(tag));
    handshake->out_bytes = GY_HANDSHAKE_BYTES_1;
    handshake->out_taken = 0;
}

static void say_2(struct gy_handshake *handshake, enum gy_refusal code)
{
    struct gy_wire wire = gy_wire_over(handshake->out, GY_HANDSHAKE_BYTES_2);
    uint8_t nonce[GY_HANDSHAKE_NONCE_BYTES], tag[MAC_BYTES];

    gy_handshake_nonce(handshake, handshake->keys.suite >= GY_SUITE_MAC, nonce);
    gy_wire_put(&wire, MAGIC, 4);
    gy_wire_put(&wire, handshake->version, 2);
    gy_wire_put(&wire, ROLE_ACCEPTOR, 1);
    gy_wire_put(&wire, code, 1);
    gy_wire_put(&wire, handshake->job, 8);
    gy_wire_put(&wire, handshake->to, 4);
    gy_wire_put(&wire, handshake->keys.suite, 1);
    gy_wire_put(&wire, 0, 3);
    gy_wire_put_bytes(&wire, nonce, sizeof(nonce));
    remember(handshake, handshake->out, GY_HANDSHAKE_BYTES_2 - MAC_BYTES);
    mac(handshake, 2, tag);
    gy_wire_put_bytes(&wire, tag, sizeof(tag));
    remember(handshake, tag, sizeof(tag));
    handshake->out_bytes = GY_HANDSHAKE_BYTES_2;
    handshake->out_taken = 0;
}

/* Messages 3 and 4 have the same shape. */
static void send_result(struct gy_handshake *handshake, int step, enum gy_refusal code)
{
    struct gy_wire wire = gy_wire_over(handshake->out, GY_HANDSHAKE_BYTES_3);
    uint8_t tag[MAC_BYTES];

    gy_wire_put(&wire, code, 1);
    gy_wire_put(&wire, handshake->initiator ? ROLE_INITIATOR : ROLE_ACCEPTOR, 1);
    gy_wire_put(&wire, 0, 2);
    mac(handshake, (uint8_t)step, tag);
    gy_wire_put_bytes(&wire, tag, sizeof(tag));
    if (step == 3)
        remember(handshake, handshake->out, GY_HANDSHAKE_BYTES_3);
    handshake->out_bytes = GY_HANDSHAKE_BYTES_3;
    handshake->out_taken = 0;
}

static void refuse(struct gy_handshake *handshake, enum gy_refusal refusal)
{
    handshake->state = GY_HANDSHAKE_REFUSED;
    handshake->refusal = refusal;
    sodium_memzero(handshake->ephemeral, sizeof(handshake->ephemeral));
    handshake->in_want = 0;
}

static bool tag_matches(const struct gy_handshake *handshake, uint8_t step, const uint8_t *tag)
{
    uint8_t expected[MAC_BYTES];

    mac(handshake, step, expected);
    return sodium_memcmp(expected, tag, MAC_BYTES) == 0;
}

/* True if a rank bootstraps or joins: it knows neither the job nor whether the settings are the same. */
static bool is_new(uint8_t purpose)
{
    return purpose == GY_PURPOSE_BOOTSTRAP || purpose == GY_PURPOSE_JOIN;
}

/* Checks the mode that the initiator asks for. A new process may have other settings: it is told which, over a socket
 * that is protected as it asked. */
static enum gy_refusal check_mode(struct gy_handshake *handshake, uint8_t mode, uint8_t ciphers)
{
    if (!is_new(handshake->purpose) && mode != handshake->mode)
        return GY_REFUSAL_INTEGRITY;
    handshake->mode = (enum gy_integrity)mode;
    handshake->keys.suite = choose(handshake->mode, (unsigned)(ciphers & handshake->ciphers));
    return GY_REFUSAL_NONE;
}

static enum gy_refusal check_1(struct gy_handshake *handshake, uint8_t purpose, uint64_t job, uint32_t to)
{
    if (handshake->peer_version != handshake->version)
        return GY_REFUSAL_VERSION;
    if (purpose == 0 || purpose >= GY_PURPOSES || !(handshake->purposes & (1u << purpose)))
        return GY_REFUSAL_PURPOSE;
    if (job != 0 && job != handshake->job)
        return GY_REFUSAL_JOB;
    if (job == 0 && !is_new(purpose))
        return GY_REFUSAL_JOB;
    if (to != handshake->to || handshake->from == to || handshake->from >= handshake->size)
        return GY_REFUSAL_RANK;
    return GY_REFUSAL_NONE;
}

/* The first bytes of message 1 that are the same in all versions: magic, version, role. */
#define FOREWORD_BYTES 7u

/* Refuses what is not gyre, or a version whose message 1 is shorter, before all of it is there. */
static void hear_foreword(struct gy_handshake *handshake)
{
    struct gy_wire wire = gy_wire_over(handshake->in, FOREWORD_BYTES);
    uint64_t magic = gy_wire_get(&wire, 4);
    uint16_t version = (uint16_t)gy_wire_get(&wire, 2);
    uint8_t role = (uint8_t)gy_wire_get(&wire, 1);

    if (magic != MAGIC || role != ROLE_INITIATOR) {
        refuse(handshake, GY_REFUSAL_GARBAGE);
        return;
    }
    handshake->peer_version = version;
    if (version < GY_HANDSHAKE_VERSION_LEAST)
        refuse(handshake, GY_REFUSAL_VERSION);
}

static void hear_1(struct gy_handshake *handshake)
{
    struct gy_wire wire = gy_wire_over(handshake->in, GY_HANDSHAKE_BYTES_1);
    uint64_t job;
    uint8_t purpose, mode, ciphers;
    enum gy_refusal refusal;
    uint32_t to;

    gy_wire_get(&wire, FOREWORD_BYTES);
    purpose = (uint8_t)gy_wire_get(&wire, 1);
    job = gy_wire_get(&wire, 8);
    handshake->from = (uint32_t)gy_wire_get(&wire, 4);
    to = (uint32_t)gy_wire_get(&wire, 4);
    mode = (uint8_t)gy_wire_get(&wire, 1);
    ciphers = (uint8_t)gy_wire_get(&wire, 1);
    handshake->purpose = purpose;
    remember(handshake, handshake->in, GY_HANDSHAKE_BYTES_1 - MAC_BYTES);
    refusal = check_1(handshake, purpose, job, to);
    if (!tag_matches(handshake, 1, handshake->in + GY_HANDSHAKE_BYTES_1 - MAC_BYTES)) {
        refuse(handshake, refusal == GY_REFUSAL_NONE ? GY_REFUSAL_SECRET : refusal); /* no answer */
        return;
    }
    remember(handshake, handshake->in + GY_HANDSHAKE_BYTES_1 - MAC_BYTES, MAC_BYTES);
    handshake->proved = true;
    if (refusal == GY_REFUSAL_NONE && (mode >= GY_INTEGRITIES || gy_wire_get(&wire, 2) != 0))
        refusal = GY_REFUSAL_GARBAGE;
    if (refusal == GY_REFUSAL_NONE)
        refusal = check_mode(handshake, mode, ciphers);
    say_2(handshake, refusal);
    if (refusal != GY_REFUSAL_NONE)
        refuse(handshake, refusal);
    else
        expect(handshake, 3, GY_HANDSHAKE_BYTES_3);
}

/* True if this process asked for that suite. */
static bool fits_mode(const struct gy_handshake *handshake, uint8_t suite)
{
    return suite == choose(handshake->mode, handshake->ciphers) ||
           (handshake->mode == GY_INTEGRITY_ENCRYPT && suite == GY_SUITE_CHACHA) ||
           (handshake->mode == GY_INTEGRITY_MAC && suite == GY_SUITE_MAC);
}

static void hear_2(struct gy_handshake *handshake)
{
    struct gy_wire wire = gy_wire_over(handshake->in, GY_HANDSHAKE_BYTES_2);
    uint64_t magic = gy_wire_get(&wire, 4), job;
    uint16_t version = (uint16_t)gy_wire_get(&wire, 2);
    uint8_t role = (uint8_t)gy_wire_get(&wire, 1), code = (uint8_t)gy_wire_get(&wire, 1), suite;
    uint32_t rank;

    job = gy_wire_get(&wire, 8);
    rank = (uint32_t)gy_wire_get(&wire, 4);
    suite = (uint8_t)gy_wire_get(&wire, 1);
    if (magic != MAGIC || role != ROLE_ACCEPTOR || code >= GY_REFUSALS) {
        refuse(handshake, GY_REFUSAL_GARBAGE);
        return;
    }
    handshake->peer_version = version;
    if (code != GY_REFUSAL_NONE || version != handshake->version) {
        refuse(handshake, code != GY_REFUSAL_NONE ? (enum gy_refusal)code : GY_REFUSAL_VERSION);
        return;
    }
    remember(handshake, handshake->in, GY_HANDSHAKE_BYTES_2 - MAC_BYTES);
    if (!tag_matches(handshake, 2, handshake->in + GY_HANDSHAKE_BYTES_2 - MAC_BYTES)) {
        send_result(handshake, 3, GY_REFUSAL_SECRET); /* so that the other side can name it too */
        refuse(handshake, GY_REFUSAL_SECRET);
        return;
    }
    remember(handshake, handshake->in + GY_HANDSHAKE_BYTES_2 - MAC_BYTES, MAC_BYTES);
    if (rank != handshake->to || (handshake->job != 0 && job != handshake->job) || !fits_mode(handshake, suite)) {
        enum gy_refusal refusal = rank != handshake->to          ? GY_REFUSAL_RANK
                                  : !fits_mode(handshake, suite) ? GY_REFUSAL_INTEGRITY
                                                                 : GY_REFUSAL_JOB;

        send_result(handshake, 3, refusal);
        refuse(handshake, refusal);
        return;
    }
    handshake->job = job;
    handshake->keys.suite = (enum gy_suite)suite;
    send_result(handshake, 3, GY_REFUSAL_NONE);
    if (!gy_handshake_agree(handshake, handshake->in + NONCE_2)) { /* only a broken build that has the key sends this */
        refuse(handshake, GY_REFUSAL_GARBAGE);
        return;
    }
    expect(handshake, 4, GY_HANDSHAKE_BYTES_3);
}

/* Message 3 or 4: code, role, two zeros, MAC. */
static enum gy_refusal check_result(const struct gy_handshake *handshake, uint8_t step, uint8_t role)
{
    uint8_t code = handshake->in[0];

    if (handshake->in[1] != role || handshake->in[2] || handshake->in[3] || code >= GY_REFUSALS)
        return GY_REFUSAL_GARBAGE;
    if (code != GY_REFUSAL_NONE)
        return (enum gy_refusal)code;
    return tag_matches(handshake, step, handshake->in + 4) ? GY_REFUSAL_NONE : GY_REFUSAL_SECRET;
}

static void hear_3(struct gy_handshake *handshake)
{
    enum gy_refusal refusal = check_result(handshake, 3, ROLE_INITIATOR);

    remember(handshake, handshake->in, GY_HANDSHAKE_BYTES_3);
    if (refusal == GY_REFUSAL_NONE && !gy_handshake_agree(handshake, handshake->transcript + NONCE_1))
        refusal = GY_REFUSAL_GARBAGE;
    send_result(handshake, 4, refusal);
    if (refusal != GY_REFUSAL_NONE) {
        refuse(handshake, refusal);
        return;
    }
    handshake->in_want = 0;
    handshake->state = GY_HANDSHAKE_DONE;
}

static void hear_4(struct gy_handshake *handshake)
{
    enum gy_refusal refusal = check_result(handshake, 4, ROLE_ACCEPTOR);

    if (refusal != GY_REFUSAL_NONE) {
        refuse(handshake, refusal);
        return;
    }
    handshake->in_want = 0;
    handshake->state = GY_HANDSHAKE_DONE;
}

static void begin(struct gy_handshake *handshake, enum gy_integrity mode)
{
    memset(handshake, 0, sizeof(*handshake));
    handshake->version = GY_HANDSHAKE_VERSION;
    handshake->mode = mode;
    handshake->ciphers = 1u << GY_SUITE_CHACHA;
    if (mode == GY_INTEGRITY_ENCRYPT && gy_gcm_usable())
        handshake->ciphers |= 1u << GY_SUITE_AES;
    if (mode == GY_INTEGRITY_MAC && gy_gcm_usable() && gy_gcm_fast()) /* otherwise Poly1305 is faster */
        handshake->ciphers |= 1u << GY_SUITE_GMAC;
}

void gy_handshake_forget(struct gy_handshake *handshake)
{
    sodium_memzero(handshake, sizeof(*handshake));
}

void gy_handshake_initiate(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES], uint64_t job,
                           enum gy_purpose purpose, uint32_t from, uint32_t to, enum gy_integrity mode)
{
    begin(handshake, mode);
    handshake->initiator = true;
    handshake->purpose = (uint8_t)purpose;
    handshake->job = job;
    handshake->from = from;
    handshake->to = to;
    memcpy(handshake->key, key, GY_HANDSHAKE_KEY_BYTES);
    expect(handshake, 2, GY_HANDSHAKE_BYTES_2);
    say_1(handshake);
}

void gy_handshake_initiate_again(struct gy_handshake *handshake)
{
    handshake->transcript_bytes = 0;
    say_1(handshake);
}

void gy_handshake_accept(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES], uint64_t job,
                         uint32_t rank, uint32_t size, uint32_t purposes, enum gy_integrity mode)
{
    begin(handshake, mode);
    handshake->job = job;
    handshake->to = rank;
    handshake->size = size;
    handshake->purposes = purposes;
    memcpy(handshake->key, key, GY_HANDSHAKE_KEY_BYTES);
    expect(handshake, 1, GY_HANDSHAKE_BYTES_1);
}

size_t gy_handshake_wants(const struct gy_handshake *handshake)
{
    return handshake->state == GY_HANDSHAKE_RUNNING ? handshake->in_want - handshake->in_bytes : 0;
}

bool gy_handshake_is_unproved(const struct gy_handshake *handshake)
{
    return !handshake->initiator && !handshake->proved;
}

void gy_handshake_feed(struct gy_handshake *handshake, const uint8_t *bytes, size_t count)
{
    static void (*const hear[])(struct gy_handshake *) = {NULL, hear_1, hear_2, hear_3, hear_4};

    while (count > 0 && gy_handshake_wants(handshake) > 0) {
        size_t piece = gy_min_size(count, gy_handshake_wants(handshake));

        memcpy(handshake->in + handshake->in_bytes, bytes, piece);
        handshake->in_bytes += piece;
        bytes += piece;
        count -= piece;
        if (handshake->step == 1 && handshake->peer_version == 0 && handshake->in_bytes >= FOREWORD_BYTES)
            hear_foreword(handshake);
        if (handshake->state == GY_HANDSHAKE_RUNNING && handshake->in_bytes == handshake->in_want)
            hear[handshake->step](handshake);
    }
}

size_t gy_handshake_take(const struct gy_handshake *handshake, const uint8_t **bytes_p)
{
    *bytes_p = handshake->out + handshake->out_taken;
    return handshake->out_bytes - handshake->out_taken;
}

void gy_handshake_taken(struct gy_handshake *handshake, size_t count)
{
    handshake->out_taken += count;
}

const char *gy_refusal_text(enum gy_refusal refusal)
{
    static const char *const texts[GY_REFUSALS] = {
        [GY_REFUSAL_NONE] = "not refused",      [GY_REFUSAL_GARBAGE] = "does not speak gyre",
        [GY_REFUSAL_VERSION] = "wrong version", [GY_REFUSAL_JOB] = "wrong job",
        [GY_REFUSAL_RANK] = "wrong rank",       [GY_REFUSAL_PURPOSE] = "wrong purpose",
        [GY_REFUSAL_SECRET] = "wrong secret",   [GY_REFUSAL_INTEGRITY] = "another GYRE_INTEGRITY",
    };

    return (unsigned)refusal < GY_REFUSALS ? texts[refusal] : "refused";
}

const char *gy_refusal_print(enum gy_refusal refusal, uint16_t theirs, uint16_t ours, char text[GY_REFUSAL_TEXT])
{
    if (refusal == GY_REFUSAL_VERSION && theirs != 0)
        snprintf(text, GY_REFUSAL_TEXT, "%s: it speaks %u, this process %u: install the same gyre for every rank",
                 gy_refusal_text(refusal), theirs, ours);
    else
        snprintf(text, GY_REFUSAL_TEXT, "%s", gy_refusal_text(refusal));
    return text;
}
