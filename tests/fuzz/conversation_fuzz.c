/* Handshakes in any order: an attacker without the key carries messages between two initiators and two acceptors
 * that hold it, and may hold back, repeat, exchange, cut and change them. The input is a program of two-byte steps:
 *
 *   deliver message m of side a to side b | the same with a bit flipped | only a first part of it | a side starts anew
 *
 * What must hold after any program: a side whose handshake has succeeded has a partner that received and sent the
 * same messages. Both have the same keys, crosswise, and no other side has these keys. An acceptor's partner has
 * proved itself, an initiator's partner has succeeded, too. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "net/handshake.h"

#define JOB UINT64_C(0x6a6f62)
#define SIDES 4 /* 0 and 1 dial, 2 and 3 accept; initiator 0 wants acceptor 2, initiator 1 acceptor 3 */
#define SAID 2  /* messages that a side says */
#define STEPS 64

static const uint8_t key[GY_HANDSHAKE_KEY_BYTES] = "nobody outside knows this key...";

struct side {
    struct gy_handshake handshake;
    uint8_t said[SAID][GY_HANDSHAKE_BYTES_MAX]; /* as the attacker heard it */
    size_t bytes[SAID];
    int count;
};

static void listen_to(struct side *side)
{
    const uint8_t *bytes;
    size_t count = gy_handshake_take(&side->handshake, &bytes);
    if (count == 0)
        return;
    check(side->count < SAID);
    memcpy(side->said[side->count], bytes, count);
    side->bytes[side->count++] = count;
    gy_handshake_taken(&side->handshake, count);
}

static void start(struct side *side, int who, enum gy_integrity mode)
{
    memset(side, 0, sizeof(*side));
    if (who < 2)
        gy_handshake_initiate(&side->handshake, key, JOB, GY_PURPOSE_TCP, (uint32_t)who, (uint32_t)who + 2, mode);
    else
        gy_handshake_accept(&side->handshake, key, JOB, (uint32_t)who, SIDES, 1u << GY_PURPOSE_TCP, mode);
    listen_to(side);
}

static void deliver(struct side *from, int message, struct side *to, unsigned how, unsigned where)
{
    uint8_t bytes[GY_HANDSHAKE_BYTES_MAX];
    size_t count = message < from->count ? from->bytes[message] : 0;
    memcpy(bytes, from->said[message], sizeof(bytes));
    if (how == 1 && count > 0)
        bytes[where % count] ^= (uint8_t)(1u << where % 8);
    if (how == 2)
        count = count ? where % count : 0;
    gy_handshake_feed(&to->handshake, bytes, count);
    listen_to(to);
}

static bool mirrored(const struct gy_handshake *a, const struct gy_handshake *b)
{
    return a->keys.suite == b->keys.suite && memcmp(a->keys.out, b->keys.in, GY_SEAL_KEY_BYTES) == 0 &&
           memcmp(a->keys.in, b->keys.out, GY_SEAL_KEY_BYTES) == 0;
}

static void check_outcome(const struct side *sides)
{
    for (int i = 0; i < SIDES; i++) {
        const struct gy_handshake *one = &sides[i].handshake;
        if (one->state != GY_HANDSHAKE_DONE)
            continue;
        /* Its partner may have been started anew since: then no side has these keys. */
        for (int k = 0; k < SIDES; k++) {
            const struct gy_handshake *other = &sides[k].handshake;
            if (k == i || !mirrored(one, other))
                continue;
            check(one->initiator != other->initiator && (i + 2) % SIDES == k);
            check(other->state == GY_HANDSHAKE_DONE || one->initiator == false);
            check(memcmp(one->transcript, other->transcript, one->transcript_bytes) == 0);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct side sides[SIDES];
    bool renewed[SIDES] = {false};
    if (size < 1)
        return 0;
    const enum gy_integrity mode = data[0] % 16 == 15 ? GY_INTEGRITY_ENCRYPT : GY_INTEGRITY_CRC;
    for (int i = 0; i < SIDES; i++)
        start(&sides[i], i, mode);
    for (size_t at = 1, steps = 0; at + 1 < size && steps < STEPS; at += 2, steps++) {
        const int from = data[at] & 3, to = data[at] >> 2 & 3, message = data[at] >> 4 & 1;
        if (data[at] >> 5 == 7) {
            start(&sides[to], to, mode);
            renewed[(to + 2) % SIDES] = true;
            renewed[to] = false;
        } else {
            deliver(&sides[from], message, &sides[to], data[at] >> 5 & 3, data[at + 1]);
        }
        check_outcome(sides);
        for (int i = 0; i < SIDES; i++) {
            const struct gy_handshake *one = &sides[i].handshake, *other = &sides[(i + 2) % SIDES].handshake;
            if (one->state == GY_HANDSHAKE_DONE && !renewed[i])
                check(mirrored(one, other) && (!one->initiator || other->state == GY_HANDSHAKE_DONE));
        }
    }
    return 0;
}
