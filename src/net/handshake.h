/* The authenticated handshake on every socket, as a pure state machine: bytes in, bytes out, no input or output of its
 * own.
 *
 *   initiator                                                       acceptor
 *     1 --- magic, version, purpose, job, from, to, mode, nonce_d, MAC("1") ->   92 bytes
 *     2 <-- magic, version, code, job, rank, suite, nonce_a, MAC("2") --         88 bytes
 *     3 --- code, MAC("3") -------------------------------------------->         36 bytes
 *     4 <-- code, MAC("4") ---------------------------------------------         36 bytes
 *
 * MAC(n) is BLAKE2b-256, keyed with the job's key, over the step's name and all earlier bytes of the handshake. So both
 * nonces, both roles, the ranks and the purpose are covered: a replayed, reflected or redirected message fails. A code
 * other than 0 is a refusal, after which the connection ends; both sides can name its reason.
 *
 * The acceptor answers nothing and makes no key pair before MAC("1") has proved that the initiator knows the key. So an
 * unauthenticated peer gets nothing against which a secret could be tried offline. A recorded message 1 can be
 * replayed. The answer to it holds no more than the recorded one, and message 3 fails. The initiator recognises another
 * secret by the connection's orderly end before any answer.
 *
 * What follows the handshake on the socket is protected (record_protection.h) as the mode, GYRE_INTEGRITY, asks for.
 * The initiator sends the mode and the ciphers it supports; the acceptor picks the suite. At mac and encrypt both
 * nonces are fresh X25519 public keys. Their shared secret goes into the keys of this connection, with the job's key
 * and all four messages. So the keys differ from those of every other connection, and recorded traffic stays secret if
 * the secret leaks later. */
#ifndef GY_NET_HANDSHAKE_H
#define GY_NET_HANDSHAKE_H

#include "net/record_protection.h"

/* Version of the whole protocol among ranks, frames and segments too: docs/wire.md has the policy. */
#define GY_HANDSHAKE_VERSION 2
#define GY_HANDSHAKE_VERSION_LEAST 2 /* in earlier ones message 1 has no MAC */
#define GY_HANDSHAKE_KEY_BYTES 32
#define GY_HANDSHAKE_NONCE_BYTES 32
#define GY_HANDSHAKE_BYTES_1 92u
#define GY_HANDSHAKE_BYTES_2 88u
#define GY_HANDSHAKE_BYTES_3 36u
#define GY_HANDSHAKE_BYTES_MAX GY_HANDSHAKE_BYTES_1

/* What a connection is for. Values travel on the wire: a new one, as of a transport that connects, is the last, and
 * docs/wire.md lists it. */
enum gy_purpose {
    GY_PURPOSE_BOOTSTRAP = 1,
    GY_PURPOSE_OVERLAY,
    GY_PURPOSE_TCP,
    GY_PURPOSE_RDMA,
    GY_PURPOSE_JOIN,
    GY_PURPOSES
};
/* Mask of the purposes for which members connect to each other's listeners: all but joining. */
#define GY_PURPOSES_OF_MEMBERS (((1u << GY_PURPOSES) - 2) & ~(1u << GY_PURPOSE_JOIN))

/* Values travel on the wire. */
enum gy_refusal {
    GY_REFUSAL_NONE,
    GY_REFUSAL_GARBAGE, /* not gyre, or a broken message */
    GY_REFUSAL_VERSION,
    GY_REFUSAL_JOB,
    GY_REFUSAL_RANK, /* addressed to another rank, or from an impossible one */
    GY_REFUSAL_PURPOSE,
    GY_REFUSAL_SECRET,
    GY_REFUSAL_INTEGRITY, /* another GYRE_INTEGRITY; during bootstrap that is a difference of settings, found later */
    GY_REFUSALS
};

enum gy_handshake_state { GY_HANDSHAKE_RUNNING, GY_HANDSHAKE_DONE, GY_HANDSHAKE_REFUSED };

struct gy_handshake {
    enum gy_handshake_state state; /* when not RUNNING, `out` may still hold bytes to send */
    enum gy_refusal refusal;
    bool initiator;
    bool proved; /* acceptor: MAC("1") was right */
    uint8_t purpose;
    uint16_t version;                     /* ours; tests change it before the first byte */
    uint16_t peer_version;                /* 0: not received */
    uint32_t from, to;                    /* initiator's and acceptor's rank */
    uint64_t job;                         /* 0 on the initiator's side: not known yet, learnt from message 2 */
    uint32_t size;                        /* acceptor: ranks below this are possible */
    uint32_t purposes;                    /* acceptor: bit mask of what is allowed */
    enum gy_integrity mode;               /* ours; the acceptor of a bootstrap takes the initiator's */
    uint8_t ciphers;                      /* bit mask of 1 << enum gy_suite: what we can do; tests narrow it */
    struct gy_seal_keys keys;             /* when DONE */
    uint8_t ephemeral[GY_SEAL_KEY_BYTES]; /* our X25519 secret key, at mac and encrypt, until DONE */
    int step;                             /* number of the message that is read next */
    uint8_t key[GY_HANDSHAKE_KEY_BYTES];
    uint8_t transcript[GY_HANDSHAKE_BYTES_1 + GY_HANDSHAKE_BYTES_2 + GY_HANDSHAKE_BYTES_3];
    size_t transcript_bytes;
    uint8_t in[GY_HANDSHAKE_BYTES_MAX], out[GY_HANDSHAKE_BYTES_MAX];
    size_t in_bytes, in_want, out_bytes, out_taken;
};

void gy_handshake_initiate(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES], uint64_t job,
                           enum gy_purpose purpose, uint32_t from, uint32_t to, enum gy_integrity mode);
void gy_handshake_accept(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES], uint64_t job,
                         uint32_t rank, uint32_t size, uint32_t purposes, enum gy_integrity mode);
/* Message 1 anew, for tests that have changed the version or the ciphers of a initiator that has not been listened
 * to. */
void gy_handshake_initiate_again(struct gy_handshake *handshake);
/* Overwrites all its secrets before its memory is reused. */
void gy_handshake_forget(struct gy_handshake *handshake);
/* Returns the number of bytes wanted now. Read no more than these from the socket: what follows belongs to its next
 * user. */
size_t gy_handshake_wants(const struct gy_handshake *handshake);
/* True until a whole message 1 with a valid MAC has been read: acceptor. */
bool gy_handshake_is_unproved(const struct gy_handshake *handshake);
/* Feeds at most gy_handshake_wants bytes; more are ignored. */
void gy_handshake_feed(struct gy_handshake *handshake, const uint8_t *bytes, size_t count);
/* The bytes to be sent; `gy_handshake_taken` reports how many of them were. */
size_t gy_handshake_take(const struct gy_handshake *handshake, const uint8_t **bytes_p);
void gy_handshake_taken(struct gy_handshake *handshake, size_t count);

/* key_schedule.c. A fresh nonce: random bytes, or (`key`) a public key whose secret stays in the handshake. */
void gy_handshake_nonce(struct gy_handshake *handshake, bool key, uint8_t nonce_p[GY_HANDSHAKE_NONCE_BYTES]);
/* Fills the keys of this connection. `theirs`: the peer's nonce. false: that is no public key. */
bool gy_handshake_agree(struct gy_handshake *handshake, const uint8_t *theirs);

/* "wrong secret", ...: static. */
const char *gy_refusal_text(enum gy_refusal refusal);
#define GY_REFUSAL_TEXT 96
/* The same with both versions if they are the reason: "wrong version: it speaks 2, this process 1". Returns `text`. */
const char *gy_refusal_print(enum gy_refusal refusal, uint16_t theirs, uint16_t ours, char text[GY_REFUSAL_TEXT]);

/* key_p = BLAKE2b keyed with `key` over `label`, `job` and 32 bytes of `salt` (NULL: zeros). */
void gy_handshake_derive(const uint8_t key[GY_HANDSHAKE_KEY_BYTES], const char *label, uint64_t job,
                         const uint8_t *salt, uint8_t key_p[GY_HANDSHAKE_KEY_BYTES]);
/* Derives the key from a secret text. */
void gy_handshake_key_of_secret(const char *secret, size_t bytes, uint8_t key_p[GY_HANDSHAKE_KEY_BYTES]);
/* Random bytes, nonces and the like. */
void gy_random(void *bytes_p, size_t count);

#endif
