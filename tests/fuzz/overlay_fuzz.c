/* What ranks tell each other over the overlay, of failures, goodbyes and aborts, and before a link over RDMA: they hold the
 * key, but may be of a broken build. The first byte chooses:
 *
 *   flood   the rest is a conversation of one neighbour, piece by piece: kind 1, length 2, that many bytes, each in memory of
 *           exactly its size. The first verdict stays, with a sentence that ends; fates are of ranks of the world, with a
 *           status that is one; nobody proves that this rank is gone, or says its goodbye; what is announced is of another rank; and each of it can be passed on
 *   hello   what is accepted of a queue pair's description says the same when it is encoded again */
#include <string.h>

#include "bootstrap/world.h"
#include "core/mem.h"
#include "fuzz/fuzz.h"
#include "membership/overlay_internal.h"
#include "transport/rdma/internal.h"

#define RANKS 5
#define OWN 2

static int left[RANKS];
static struct gy_fate fates[RANKS];
static uint32_t announced[RANKS];

static void hear_announced(void *user, int rank, uint32_t word, int cause)
{
    (void)user, (void)word;
    check(rank >= 0 && rank < RANKS && rank != OWN && cause >= 0 && cause < RANKS);
}

static void hear(struct gy_neighbour *from, uint8_t kind, uint8_t *body, size_t bytes)
{
    switch (kind) {
    case GY_OVERLAY_VERDICT: gy_flood_hear_verdict(from, body, bytes); break;
    case GY_OVERLAY_GOODBYE: gy_flood_hear_goodbye(from, body, bytes); break;
    case GY_OVERLAY_FATE: gy_fate_hear(from, body, bytes); break;
    case GY_OVERLAY_ABORT: gy_flood_hear_abort(from, body, bytes); break;
    case GY_OVERLAY_ANNOUNCEMENT: gy_announcement_hear(from, body, bytes); break;
    default: break;
    }
}

static void check_verdict(const struct gy_error *verdict)
{
    if (verdict->status == GYRE_SUCCESS)
        return;
    check(gy_status_is_failure(verdict->status) && verdict->rank >= 0 && verdict->rank < RANKS);
    check(memchr(verdict->text, '\0', GY_OVERLAY_TEXT + 1) != NULL);
}

static void look_around(const struct gy_overlay *overlay, const struct gy_error *first)
{
    check_verdict(&overlay->verdict);
    check_verdict(&overlay->aborted);
    check(first->status == GYRE_SUCCESS ||
          (overlay->verdict.status == first->status && overlay->verdict.rank == first->rank &&
           strcmp(overlay->verdict.text, first->text) == 0));
    for (int rank = 0; rank < RANKS; rank++) {
        check(left[rank] >= 0 && left[rank] <= RANKS);
        check(fates[rank].status == GYRE_SUCCESS ||
              (fates[rank].status >= GYRE_PEER_DEAD && fates[rank].status <= GYRE_PEER_LEFT));
        check(!fates[rank].why || strlen(fates[rank].why) <= GY_OVERLAY_TEXT);
        check(rank != OWN || (!fates[rank].proved && !left[rank]));
    }
}

static void flood(const uint8_t *data, size_t size)
{
    struct gy_world world = {.rank = OWN, .size = RANKS};
    struct gy_overlay overlay = {.world = &world, .left = left, .fates = fates, .announced = announced};
    struct gy_neighbour from = {.overlay = &overlay, .rank = 1}, other = {.overlay = &overlay, .rank = 3};
    struct gy_neighbour *neighbours[] = {&from, &other}; /* nothing is sent, but made */
    overlay.neighbours = neighbours;
    overlay.count = 2;
    gy_overlay_on_announced(&overlay, hear_announced, NULL);
    from.stream.fd = other.stream.fd = -1;
    memset(left, 0, sizeof(left));
    memset(announced, 0, sizeof(announced));
    while (size >= 3) {
        size_t bytes = gy_min_size(data[1] | (size_t)data[2] << 8, size - 3);
        struct gy_error first = overlay.verdict;
        uint8_t *body = malloc(bytes ? bytes : 1);
        check(body != NULL);
        memcpy(body, data + 3, bytes);
        hear(&from, data[0] % 8, body, bytes);
        free(body);
        look_around(&overlay, &first);
        data += 3 + bytes;
        size -= 3 + bytes;
    }
    gy_flood_catch_up(&other);
    for (int rank = 0; rank < RANKS; rank++)
        gy_free(fates[rank].why);
    memset(fates, 0, sizeof(fates));
}

static void hello(const uint8_t *data, size_t size)
{
    struct gy_rdma_hello told;
    uint8_t again[GY_RDMA_HELLO_BYTES];
    if (size < sizeof(again) || !gy_rdma_hello_decode(data, &told))
        return;
    check(told.paths >= 1 && told.paths <= GY_RDMA_PATHS);
    gy_rdma_hello_encode(&told, again);
    check(memcmp(again, data, sizeof(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    gyre_log_set(ignore_log, NULL);
    (data[0] % 2 ? hello : flood)(data + 1, size - 1);
    return 0;
}
