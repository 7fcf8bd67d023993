#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "net/gcm.h"
#include "net/record_protection.h"

#define HEAD 64
#define BODY 3000
#define WIRE (HEAD + GY_SEAL_HEAD_MORE)

static const uint8_t key[GY_SEAL_KEY_BYTES] = "the key of one direction", other[GY_SEAL_KEY_BYTES] = "of the other one";

/* A head and its body, as they were and as they travel. */
struct message {
    uint8_t head[HEAD], body[BODY], wire[WIRE], sealed[BODY], tag[GY_SEAL_TAG_BYTES];
};

static bool usable(enum gy_suite suite)
{
    return (suite != GY_SUITE_AES && suite != GY_SUITE_GMAC) || gy_gcm_usable();
}

static void make(struct gy_seal *seal, struct message *message, uint8_t fill)
{
    memset(message->head, fill, HEAD);
    memset(message->body, fill + 1, BODY);
    memcpy(message->sealed, message->body, BODY);
    gy_seal_close_head(seal, message->head, HEAD, message->wire);
    gy_seal_close_body(seal, message->body, BODY, message->sealed, message->tag);
}

static enum gy_flaw hear(struct gy_seal *seal, const struct message *message)
{
    uint8_t head[HEAD], body[BODY];
    enum gy_flaw flaw = gy_seal_open_head(seal, message->wire, HEAD, head);

    if (flaw != GY_FLAW_NONE)
        return flaw;
    cr_assert(memcmp(head, message->head, HEAD) == 0);
    memcpy(body, message->sealed, BODY);
    if (!gy_seal_open_body(seal, body, BODY, message->tag))
        return GY_FLAW_DAMAGED;
    cr_assert(memcmp(body, message->body, BODY) == 0);
    return GY_FLAW_NONE;
}

#define EACH_SUITE(suite)                                                                           \
    for (enum gy_suite suite = GY_SUITE_CRC; suite < GY_SUITES; suite = (enum gy_suite)(suite + 1)) \
        if (usable(suite))

Test(seal, what_is_closed_opens)
{
    EACH_SUITE(suite)
    {
        struct gy_seal out, in;
        struct message message;

        gy_seal_begin(&out, suite, key);
        gy_seal_begin(&in, suite, key);
        for (uint8_t i = 0; i < 100; i++) {
            make(&out, &message, i);
            cr_assert_eq(hear(&in, &message), GY_FLAW_NONE, "%s, message %d", gy_suite_name(suite), i);
        }
    }
}

/* Every single bit of all that travels. */
Test(seal, no_flipped_bit_passes)
{
    EACH_SUITE(suite)
    {
        struct gy_seal out, in;
        struct message message, flipped;

        gy_seal_begin(&out, suite, key);
        gy_seal_begin(&in, suite, key);
        make(&out, &message, 7);
        for (size_t bit = 0; bit < 8 * WIRE; bit++) {
            struct gy_seal fresh = in;

            flipped = message;
            flipped.wire[bit / 8] ^= (uint8_t)(1u << bit % 8);
            cr_assert_neq(hear(&fresh, &flipped), GY_FLAW_NONE, "%s, bit %zu of the head", gy_suite_name(suite), bit);
        }
        for (size_t bit = 0; bit < 8 * (BODY + GY_SEAL_TAG_BYTES); bit += bit < 8 * (BODY - 8) ? 61 : 1) {
            struct gy_seal fresh = in;

            flipped = message;
            *(bit / 8 < BODY ? &flipped.sealed[bit / 8] : &flipped.tag[bit / 8 - BODY]) ^= (uint8_t)(1u << bit % 8);
            cr_assert_eq(hear(&fresh, &flipped), GY_FLAW_DAMAGED, "%s, bit %zu of the body", gy_suite_name(suite), bit);
        }
    }
}

/* Genuine pieces in the wrong place are told from damaged ones, and a body fits its own head only. */
Test(seal, places_are_named)
{
    EACH_SUITE(suite)
    {
        struct gy_seal out, in;
        struct message first, second, third, mixed;

        gy_seal_begin(&out, suite, key);
        gy_seal_begin(&in, suite, key);
        make(&out, &first, 1);
        make(&out, &second, 2);
        make(&out, &third, 3);
        cr_assert_eq(hear(&in, &second), GY_FLAW_MISPLACED);
        cr_assert_eq(hear(&in, &first), GY_FLAW_NONE);
        cr_assert_eq(hear(&in, &first), GY_FLAW_REPEATED);
        cr_assert_eq(hear(&in, &third), GY_FLAW_MISPLACED);
        mixed = second;
        memcpy(mixed.sealed, third.sealed, BODY);
        memcpy(mixed.tag, third.tag, sizeof(mixed.tag));
        cr_assert_eq(hear(&in, &mixed), GY_FLAW_DAMAGED);
    }
}

/* With another key nothing fits: of another connection, or one's own words said back. crc has no key to speak of. */
Test(seal, another_key_fits_nothing)
{
    EACH_SUITE(suite)
    {
        struct gy_seal out, in;
        struct message message;

        gy_seal_begin(&out, suite, key);
        gy_seal_begin(&in, suite, other);
        make(&out, &message, 1);
        cr_assert_eq(hear(&in, &message), suite == GY_SUITE_CRC ? GY_FLAW_NONE : GY_FLAW_DAMAGED);
    }
}

Test(seal, encryption_hides_and_the_others_do_not)
{
    EACH_SUITE(suite)
    {
        struct gy_seal out;
        struct message message, again;
        bool hides = suite == GY_SUITE_CHACHA || suite == GY_SUITE_AES;

        gy_seal_begin(&out, suite, key);
        make(&out, &message, 1);
        make(&out, &again, 1);
        cr_assert_eq(memcmp(message.wire + GY_SEAL_NUMBER_BYTES, message.head, HEAD) != 0, hides);
        cr_assert_eq(memcmp(message.sealed, message.body, BODY) != 0, hides);
        cr_assert_eq(memcmp(message.sealed, again.sealed, BODY) != 0, hides, "the same twice looks the same");
        cr_assert(memcmp(message.tag, again.tag, sizeof(message.tag)) != 0);
    }
}

/* Both ends replace the key with the same head; a head that is not genuine replaces nothing, and old ones are not
 * opened any more. */
Test(seal, keys_are_renewed)
{
    EACH_SUITE(suite)
    {
        struct gy_seal out, in;
        struct message first, message, flipped;

        gy_seal_begin(&out, suite, key);
        gy_seal_begin(&in, suite, key);
        out.renewal = in.renewal = 3;
        for (uint8_t i = 1; i <= 10; i++) {
            uint8_t before[GY_SEAL_KEY_BYTES];

            memcpy(before, in.key, sizeof(before));
            make(&out, i == 1 ? &first : &message, i);
            if (i == 1)
                message = first;
            flipped = message;
            flipped.wire[GY_SEAL_NUMBER_BYTES] ^= 1;
            cr_assert_eq(hear(&in, &flipped), GY_FLAW_DAMAGED);
            cr_assert_arr_eq(in.key, before, sizeof(before));
            cr_assert_eq(hear(&in, &message), GY_FLAW_NONE, "%s, message %d", gy_suite_name(suite), i);
            cr_assert_eq(memcmp(in.key, before, sizeof(before)) != 0, i % 3 == 0);
            cr_assert_arr_eq(in.key, out.key, sizeof(before));
        }
        cr_assert_eq(hear(&in, &first), suite == GY_SUITE_CRC ? GY_FLAW_REPEATED : GY_FLAW_DAMAGED);
    }
}
