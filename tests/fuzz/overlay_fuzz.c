/* Messages of ranks over the overlay, of failures, leave messages and aborts, and before a link over RDMA: the ranks
 * hold the key, but may be of a broken build. The first byte chooses:
 *
 *   flood   the rest is a conversation of one neighbour, piece by piece: kind 1, length 2, that many bytes, each in
 *           memory of exactly its size. The first failure stays, with an error message that ends. Failures are of
 *           ranks of the world, with a status that exists. No message proves that this rank is gone, or announces
 *           its leave. An announcement is of another rank; and each message can be forwarded
 *   hello   an accepted description of a queue pair is the same when it is encoded again */
#include <string.h>

#include "bootstrap/world.h"
#include "core/mem.h"
#include "fuzz/fuzz.h"
#include "membership/overlay_internal.h"
#include "transport/rdma/internal.h"

#define RANKS 5
#define OWN 2

static int left[RANKS];
static struct gy_failed_rank failures[RANKS];
static uint32_t announced[RANKS];

static void hear_announced(void *user, int rank, uint32_t word, int cause)
{
    (void)user, (void)word;
    check(rank >= 0 && rank < RANKS && rank != OWN && cause >= 0 && cause < RANKS);
}

static void hear(struct gy_neighbour *from, uint8_t kind, uint8_t *body, size_t bytes)
{
    switch (kind) {
    case GY_OVERLAY_FAILURE: gy_flood_receive_failure(from, body, bytes); break;
    case GY_OVERLAY_LEAVE: gy_flood_receive_leave(from, body, bytes); break;
    case GY_OVERLAY_RECORD: gy_failure_receive(from, body, bytes); break;
    case GY_OVERLAY_ABORT: gy_flood_receive_abort(from, body, bytes); break;
    case GY_OVERLAY_BROADCAST: gy_broadcast_receive(from, body, bytes); break;
    default: break;
    }
}

static void check_failure(const struct gy_error *failure)
{
    if (failure->status == GYRE_SUCCESS)
        return;
    check(gy_status_is_failure(failure->status) && failure->rank >= 0 && failure->rank < RANKS);
    check(memchr(failure->text, '\0', GY_OVERLAY_TEXT + 1) != NULL);
}

static void look_around(const struct gy_overlay *overlay, const struct gy_error *first)
{
    check_failure(&overlay->first_failure);
    check_failure(&overlay->aborted);
    check(first->status == GYRE_SUCCESS ||
          (overlay->first_failure.status == first->status && overlay->first_failure.rank == first->rank &&
           strcmp(overlay->first_failure.text, first->text) == 0));
    for (int rank = 0; rank < RANKS; rank++) {
        check(left[rank] >= 0 && left[rank] <= RANKS);
        check(failures[rank].status == GYRE_SUCCESS ||
              (failures[rank].status >= GYRE_PEER_DEAD && failures[rank].status <= GYRE_PEER_LEFT));
        check(!failures[rank].why || strlen(failures[rank].why) <= GY_OVERLAY_TEXT);
        check(rank != OWN || (!failures[rank].proved && !left[rank]));
    }
}

static void flood(const uint8_t *data, size_t size)
{
    struct gy_world world = {.rank = OWN, .size = RANKS};
    struct gy_overlay overlay = {.world = &world, .left = left, .failures = failures, .announced = announced};
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
        struct gy_error first = overlay.first_failure;
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
        gy_free(failures[rank].why);
    memset(failures, 0, sizeof(failures));
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
