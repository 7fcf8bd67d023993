/* What survivors tell each other while they agree: they hold the key, but may be of a broken build, or be a rank
 * that a stray write has damaged. The first byte chooses the decoder; the rest is the message, in memory of exactly
 * its size.
 *
 *   message   what is accepted names ranks of the world, and says the same when it is encoded and decoded again
 *   outcome   what is accepted lists ranks of the world in ascending order, and says the same when it is encoded
 *             again */
#include <stdlib.h>
#include <string.h>

#include "fuzz/fuzz.h"
#include "membership/agreement_internal.h"

#define RANKS 5

static void message(uint8_t *body, size_t size)
{
    struct gy_agreement_message told, again;
    uint8_t room[1024];

    if (!gy_agreement_decode(body, size, RANKS, &told))
        return;
    check(told.coordinator >= GY_NOBODY && told.coordinator < RANKS && told.accepted >= GY_NOBODY &&
          told.accepted < RANKS);
    check(told.input.record_bytes <= GY_AGREEMENT_RECORD && told.blob_bytes <= gy_outcome_most(RANKS));
    check(gy_agreement_message_most(RANKS) <= sizeof(room));
    size_t bytes = gy_agreement_encode(&told, room, sizeof(room));
    check(bytes == size && gy_agreement_decode(room, bytes, RANKS, &again));
    check(again.type == told.type && again.comm == told.comm && again.number == told.number);
    check(again.coordinator == told.coordinator && again.accepted == told.accepted && again.part == told.part);
    check(again.input.bits == told.input.bits && again.input.count == told.input.count &&
          again.input.kind == told.input.kind && again.input.record_bytes == told.input.record_bytes);
    check(again.blob_bytes == told.blob_bytes &&
          (told.blob_bytes == 0 || memcmp(again.blob, told.blob, told.blob_bytes) == 0));
}

static void outcome(const uint8_t *blob, size_t size)
{
    struct gy_outcome decided;
    struct gy_agreement_input words[RANKS];
    const struct gy_agreement_input *told[RANKS];
    uint8_t room[1024];

    if (!gy_outcome_decode(blob, size, RANKS, &decided))
        return;
    check(decided.ranks >= 1 && decided.ranks <= RANKS);
    for (int i = 0; i < decided.ranks; i++) {
        check(decided.rank[i] >= 0 && decided.rank[i] < RANKS && (i == 0 || decided.rank[i] > decided.rank[i - 1]));
        memset(&words[i], 0, sizeof(words[i]));
        memcpy(words[i].record, decided.record[i], GY_AGREEMENT_RECORD);
        words[i].record_bytes = GY_AGREEMENT_RECORD;
        told[i] = &words[i];
    }
    size_t bytes = gy_outcome_encode(&decided, told, room, sizeof(room));
    check(bytes >= size); /* records are whole here, and may have been cut short */
    struct gy_outcome again;
    check(gy_outcome_decode(room, bytes, RANKS, &again));
    check(again.status == decided.status && again.bits == decided.bits && again.count == decided.count &&
          again.job == decided.job && again.ranks == decided.ranks);
    check(memcmp(again.rank, decided.rank, (size_t)decided.ranks * sizeof(*decided.rank)) == 0);
    gy_outcome_free(&again);
    gy_outcome_free(&decided);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    uint8_t *body = malloc(size > 1 ? size - 1 : 1);
    check(body != NULL);
    memcpy(body, data + 1, size - 1);
    data[0] % 2 ? message(body, size - 1) : outcome(body, size - 1);
    free(body);
    return 0;
}
