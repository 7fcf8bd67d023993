#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "net/gcm.h"
#include "net/handshake.h"

static const uint8_t key[GY_HANDSHAKE_KEY_BYTES] = "the key of the job",
                     other_key[GY_HANDSHAKE_KEY_BYTES] = "another key";

#define JOB 0x1122334455667788u
#define MODE GY_INTEGRITY_ENCRYPT
#define ALL (1u << GY_PURPOSE_BOOTSTRAP | 1u << GY_PURPOSE_OVERLAY | 1u << GY_PURPOSE_TCP)

/* Moves what `from` says to `to`, `piece` bytes at a time; a copy goes to `record`. */
static size_t move(struct gy_handshake *from, struct gy_handshake *to, size_t piece, uint8_t *record)
{
    const uint8_t *bytes;
    size_t count, moved = 0;

    while ((count = gy_handshake_take(from, &bytes)) > 0) {
        count = count < piece ? count : piece;
        if (record)
            memcpy(record + moved, bytes, count);
        gy_handshake_feed(to, bytes, count);
        gy_handshake_taken(from, count);
        moved += count;
    }
    return moved;
}

static void talk(struct gy_handshake *initiator, struct gy_handshake *acceptor, size_t piece)
{
    while (move(initiator, acceptor, piece, NULL) + move(acceptor, initiator, piece, NULL) > 0)
        ;
}

static void expect_refused(struct gy_handshake *initiator, struct gy_handshake *acceptor, enum gy_refusal refusal)
{
    talk(initiator, acceptor, 1000);
    cr_assert_eq(initiator->state, GY_HANDSHAKE_REFUSED);
    cr_assert_eq(acceptor->state, GY_HANDSHAKE_REFUSED);
    cr_assert_eq(initiator->refusal, refusal, "dialer: %s", gy_refusal_text(initiator->refusal));
    cr_assert_eq(acceptor->refusal, refusal, "acceptor: %s", gy_refusal_text(acceptor->refusal));
}

Test(handshake, good_in_pieces_of_any_size)
{
    struct gy_handshake initiator, acceptor;

    for (size_t piece = 1; piece < 100; piece++) {
        gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
        gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
        talk(&initiator, &acceptor, piece);
        cr_assert_eq(initiator.state, GY_HANDSHAKE_DONE);
        cr_assert_eq(acceptor.state, GY_HANDSHAKE_DONE);
        cr_assert_eq(acceptor.from, 5);
        cr_assert_eq(acceptor.purpose, GY_PURPOSE_TCP);
        cr_assert_eq(gy_handshake_wants(&acceptor), 0);
    }
}

Test(handshake, the_job_is_learnt_when_meeting_only)
{
    struct gy_handshake initiator, acceptor;

    gy_handshake_initiate(&initiator, key, 0, GY_PURPOSE_BOOTSTRAP, 5, 0, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 0, 8, ALL, MODE);
    talk(&initiator, &acceptor, 1000);
    cr_assert_eq(initiator.state, GY_HANDSHAKE_DONE);
    cr_assert_eq(initiator.job, JOB);
    gy_handshake_initiate(&initiator, key, 0, GY_PURPOSE_TCP, 5, 0, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 0, 8, ALL, MODE);
    expect_refused(&initiator, &acceptor, GY_REFUSAL_JOB);
}

Test(handshake, every_refusal_has_its_reason_on_both_sides)
{
    struct gy_handshake initiator, acceptor;

    gy_handshake_initiate(&initiator, key, JOB + 1, GY_PURPOSE_TCP, 5, 3, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
    expect_refused(&initiator, &acceptor, GY_REFUSAL_JOB);
    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 4, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
    expect_refused(&initiator, &acceptor, GY_REFUSAL_RANK);
    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 8, 3, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
    expect_refused(&initiator, &acceptor, GY_REFUSAL_RANK);
    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, 1u << GY_PURPOSE_BOOTSTRAP, MODE);
    expect_refused(&initiator, &acceptor, GY_REFUSAL_PURPOSE);
}

/* Nothing that depends on the key, and no key pair, before the initiator has proved that it knows it: not to another
 * key, whatever it asks for, nor to a message 1 of which a single bit was changed. */
Test(handshake, who_has_not_proved_the_key_gets_no_answer)
{
    struct gy_handshake initiator, acceptor;

    for (size_t bit = 0; bit <= 8 * GY_HANDSHAKE_BYTES_1; bit++) {
        bool changed = bit < 8 * GY_HANDSHAKE_BYTES_1;
        gy_handshake_initiate(&initiator, changed ? key : other_key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
        gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
        if (changed)
            initiator.out[bit / 8] ^= (uint8_t)(1u << bit % 8);
        move(&initiator, &acceptor, 1000, NULL);
        cr_assert_eq(acceptor.state, GY_HANDSHAKE_REFUSED);
        cr_assert(changed || acceptor.refusal == GY_REFUSAL_SECRET);
        cr_assert(gy_handshake_is_unproved(&acceptor));
        cr_assert_eq(acceptor.out_bytes, 0, "bit %zu is answered", bit);
        for (size_t i = 0; i < sizeof(acceptor.ephemeral); i++)
            cr_assert_eq(acceptor.ephemeral[i], 0);
    }
}

/* Its message 1 is shorter: it would be waited for in vain. */
Test(handshake, the_first_version_is_recognised_at_once)
{
    struct gy_handshake initiator, acceptor;

    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
    initiator.version = 1;
    gy_handshake_initiate_again(&initiator);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
    gy_handshake_feed(&acceptor, initiator.out, 60);
    cr_assert_eq(acceptor.refusal, GY_REFUSAL_VERSION);
    cr_assert_eq(acceptor.peer_version, 1);
}

Test(handshake, another_version_is_named)
{
    struct gy_handshake initiator, acceptor;

    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
    initiator.version = 9;
    gy_handshake_initiate_again(&initiator);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
    expect_refused(&initiator, &acceptor, GY_REFUSAL_VERSION);
    cr_assert_eq(acceptor.peer_version, 9);
}

/* A recorded conversation, said again to the same acceptor, fails: its nonce is new. */
Test(handshake, replay)
{
    struct gy_handshake initiator, acceptor;
    uint8_t first[GY_HANDSHAKE_BYTES_1], third[GY_HANDSHAKE_BYTES_3];

    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
    move(&initiator, &acceptor, 1000, first);
    move(&acceptor, &initiator, 1000, NULL);
    move(&initiator, &acceptor, 1000, third);
    cr_assert_eq(acceptor.state, GY_HANDSHAKE_DONE);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
    gy_handshake_feed(&acceptor, first, sizeof(first));
    cr_assert_eq(acceptor.state, GY_HANDSHAKE_RUNNING);
    gy_handshake_feed(&acceptor, third, sizeof(third));
    cr_assert_eq(acceptor.state, GY_HANDSHAKE_REFUSED);
    cr_assert_eq(acceptor.refusal, GY_REFUSAL_SECRET);
}

/* Without the key, using the other side as an oracle: send back what it said, or let two initiators talk. */
Test(handshake, reflection)
{
    struct gy_handshake initiator, second, acceptor;
    uint8_t said[GY_HANDSHAKE_BYTES_2];

    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
    gy_handshake_initiate(&second, key, JOB, GY_PURPOSE_TCP, 3, 5, MODE);
    move(&initiator, &second, 1000, NULL);
    move(&second, &initiator, 1000, NULL);
    cr_assert_neq(initiator.state, GY_HANDSHAKE_DONE);
    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
    move(&initiator, &acceptor, 1000, NULL);
    move(&acceptor, &second, 1000, said);
    /* The acceptor's own MAC as message 3. */
    memmove(said + 4, said + GY_HANDSHAKE_BYTES_2 - 32, 32);
    memcpy(said, (const uint8_t[]){0, 1, 0, 0}, 4);
    gy_handshake_feed(&acceptor, said, GY_HANDSHAKE_BYTES_3);
    cr_assert_eq(acceptor.refusal, GY_REFUSAL_SECRET);
}

/* Every single flipped bit of every message ends in a refusal somewhere, never in two sides that are content. */
Test(handshake, flipped_bits)
{
    for (size_t bit = 0; bit < 8 * (GY_HANDSHAKE_BYTES_1 + GY_HANDSHAKE_BYTES_2 + 2 * GY_HANDSHAKE_BYTES_3); bit++) {
        struct gy_handshake sides[2];
        size_t at = 0;

        gy_handshake_initiate(&sides[0], key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
        gy_handshake_accept(&sides[1], key, JOB, 3, 8, ALL, MODE);
        for (int turn = 0; turn < 4; turn++) {
            struct gy_handshake *from = &sides[turn % 2], *to = &sides[1 - turn % 2];
            const uint8_t *bytes;
            size_t count = gy_handshake_take(from, &bytes);

            if (bit / 8 >= at && bit / 8 < at + count)
                from->out[bit / 8 - at] ^= (uint8_t)(1u << bit % 8);
            at += count;
            move(from, to, 1000, NULL);
        }
        cr_assert(sides[0].state != GY_HANDSHAKE_DONE || sides[1].state != GY_HANDSHAKE_DONE, "bit %zu was not noticed",
                  bit);
    }
}

static void greet(enum gy_integrity initiator_mode, unsigned initiator_ciphers, enum gy_integrity acceptor_mode,
                  enum gy_purpose purpose, struct gy_handshake *initiator, struct gy_handshake *acceptor)
{
    gy_handshake_initiate(initiator, key, JOB, purpose, 5, 3, initiator_mode);
    if (initiator_ciphers) {
        initiator->ciphers = (uint8_t)initiator_ciphers;
        gy_handshake_initiate_again(initiator);
    }
    gy_handshake_accept(acceptor, key, JOB, 3, 8, ALL, acceptor_mode);
    talk(initiator, acceptor, 1000);
}

/* What one side seals the other opens; no two connections, and no two directions, have a key in common. */
Test(handshake, keys_are_of_one_connection)
{
    struct gy_handshake first[2], second[2];

    for (enum gy_integrity mode = GY_INTEGRITY_OFF; mode < GY_INTEGRITIES; mode = (enum gy_integrity)(mode + 1)) {
        greet(mode, 0, mode, GY_PURPOSE_TCP, &first[0], &first[1]);
        greet(mode, 0, mode, GY_PURPOSE_TCP, &second[0], &second[1]);
        cr_assert_eq(first[0].state, GY_HANDSHAKE_DONE);
        cr_assert_eq(first[1].state, GY_HANDSHAKE_DONE);
        cr_assert_eq(first[0].keys.suite, first[1].keys.suite);
        cr_assert_eq(first[0].keys.suite == GY_SUITE_OFF, mode == GY_INTEGRITY_OFF);
        cr_assert(memcmp(first[0].keys.out, first[1].keys.in, GY_SEAL_KEY_BYTES) == 0);
        cr_assert(memcmp(first[0].keys.in, first[1].keys.out, GY_SEAL_KEY_BYTES) == 0);
        cr_assert(memcmp(first[0].keys.in, first[0].keys.out, GY_SEAL_KEY_BYTES) != 0);
        cr_assert(memcmp(first[0].keys.out, second[0].keys.out, GY_SEAL_KEY_BYTES) != 0);
        for (size_t i = 0; i < GY_SEAL_KEY_BYTES; i++)
            cr_assert(first[0].ephemeral[i] == 0 && first[1].ephemeral[i] == 0, "an ephemeral secret is left");
    }
}

/* Joining processes and links must have the same mode. A rank that bootstraps may have another one, and is told
 * later, in records protected as it asked. */
Test(handshake, modes_that_differ)
{
    struct gy_handshake initiator, acceptor;

    greet(GY_INTEGRITY_OFF, 0, GY_INTEGRITY_MAC, GY_PURPOSE_TCP, &initiator, &acceptor);
    cr_assert_eq(initiator.refusal, GY_REFUSAL_INTEGRITY);
    cr_assert_eq(acceptor.refusal, GY_REFUSAL_INTEGRITY);
    greet(GY_INTEGRITY_ENCRYPT, 0, GY_INTEGRITY_OFF, GY_PURPOSE_OVERLAY, &initiator, &acceptor);
    cr_assert_eq(acceptor.refusal, GY_REFUSAL_INTEGRITY);
    greet(GY_INTEGRITY_MAC, 0, GY_INTEGRITY_OFF, GY_PURPOSE_BOOTSTRAP, &initiator, &acceptor);
    cr_assert_eq(initiator.state, GY_HANDSHAKE_DONE);
    cr_assert_eq(acceptor.keys.suite, GY_SUITE_MAC); /* it has no cipher of this mode ready */
    cr_assert_eq(initiator.keys.suite, GY_SUITE_MAC);
}

/* One CPU without AES is enough for ChaCha20, and a cipher that was not offered is refused. */
Test(handshake, ciphers)
{
    struct gy_handshake initiator, acceptor;

    greet(GY_INTEGRITY_ENCRYPT, 1u << GY_SUITE_CHACHA, GY_INTEGRITY_ENCRYPT, GY_PURPOSE_TCP, &initiator, &acceptor);
    cr_assert_eq(initiator.state, GY_HANDSHAKE_DONE);
    cr_assert_eq(initiator.keys.suite, GY_SUITE_CHACHA);
    cr_assert_eq(acceptor.keys.suite, GY_SUITE_CHACHA);
    if (!gy_gcm_usable())
        return;
    greet(GY_INTEGRITY_ENCRYPT, 0, GY_INTEGRITY_ENCRYPT, GY_PURPOSE_TCP, &initiator, &acceptor);
    cr_assert_eq(initiator.keys.suite, GY_SUITE_AES);
    greet(GY_INTEGRITY_MAC, 0, GY_INTEGRITY_MAC, GY_PURPOSE_TCP, &initiator, &acceptor);
    cr_assert_eq(initiator.keys.suite, gy_gcm_fast() ? GY_SUITE_GMAC : GY_SUITE_MAC);
    cr_assert_eq(acceptor.keys.suite, initiator.keys.suite);
    greet(GY_INTEGRITY_MAC, 1u << GY_SUITE_CHACHA, GY_INTEGRITY_MAC, GY_PURPOSE_TCP, &initiator, &acceptor);
    cr_assert_eq(initiator.keys.suite, GY_SUITE_MAC, "one end without the library is enough for Poly1305");
    cr_assert_eq(acceptor.keys.suite, GY_SUITE_MAC);
}

Test(handshake, truncated_and_garbage)
{
    struct gy_handshake acceptor, initiator;
    uint8_t bytes[512];

    gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
    gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
    gy_handshake_feed(&acceptor, initiator.out, GY_HANDSHAKE_BYTES_1 - 1);
    cr_assert_eq(acceptor.state, GY_HANDSHAKE_RUNNING);
    cr_assert_eq(gy_handshake_wants(&acceptor), 1);
    srand(1);
    for (int i = 0; i < 10000; i++) {
        for (size_t k = 0; k < sizeof(bytes); k++)
            bytes[k] = (uint8_t)rand();
        if (i % 2)
            memcpy(bytes, "GYRE\2\0", 6);
        gy_handshake_accept(&acceptor, key, JOB, 3, 8, ALL, MODE);
        gy_handshake_feed(&acceptor, bytes, sizeof(bytes));
        cr_assert_eq(acceptor.state, GY_HANDSHAKE_REFUSED);
        gy_handshake_initiate(&initiator, key, JOB, GY_PURPOSE_TCP, 5, 3, MODE);
        gy_handshake_feed(&initiator, bytes, sizeof(bytes));
        cr_assert_eq(initiator.state, GY_HANDSHAKE_REFUSED);
    }
}
