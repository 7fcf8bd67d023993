/* Short frames without notification: the receiver finds them by polling its memory, while it advertises that it
 * polls.
 *
 *   loud     write with immediate                            ──▶ takes a receive request, makes a completion, wakes
 *   silent   write of [sum | number | immediate][payload]    ──▶ lies in the ring, at the end of the stream
 *                     the last 16 bytes of the header's gap
 *
 * Both kinds share one numbering, so frames stay in order: a loud chunk on a queue pair is reported after all
 * earlier writes are in memory. That holds on a single queue pair only, so only links of one use silent frames.
 *
 * Completeness: a device may write in any order (rings are registered so), and soft-RoCE copies with the kernel's
 * memcpy, backwards at times. Neither a last byte nor both ends prove what lies between. So the sum has 64 bits over
 * all bytes, number and immediate included, seeded by a secret that the receiver has drawn for this link. Previous
 * contents, an old frame or a program's bytes, match with probability 2^−64. Bytes that have arrived do not change
 * until their credit is returned.
 *
 * Sleeping: each end has two words that the other's device accesses (struct gy_rdma_words):
 *
 *   sender, before silent chunk n   begun = n + 1;  fence;  looks?  ──▶ silent, else loud
 *   receiver, before it sleeps      write looks = 0;  behind it read begun  ──▶ all chunks up to that are here: sleep
 *
 * Both words lie in the sender's memory, and the device reads there after its write. So for any delay either the
 * sender sees that polling has stopped, or the receiver learns of the chunk and stays awake until it has arrived.
 * The sender's part is done by its device, even if the sender is outside gyre. tests/models/silent.pml explores
 * this.
 *
 * A receiver that has not slept for OFFER short frames offers to poll; so ranks that sleep between frames pay
 * nothing. */
#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "core/fence.h"
#include "transport/rdma/checksum.h"
#include "transport/rdma/internal.h"

#define OFFER 16 /* loud frames that could have been silent */

struct tag {
    uint64_t sum;
    uint32_t number; /* of the chunk, from 1 */
    uint32_t immediate;
};

_Static_assert(sizeof(struct tag) == GY_RDMA_TAG_BYTES && GY_RDMA_TAG_BYTES <= GY_FRAME_BYTES, "it fits into the gap");

/* Returns the sum over the tag's other fields and the payload behind it: of chunk `number`, whose upper half does
 * not fit the tag. */
static uint64_t sum_of(const struct tag *tag, uint32_t bytes, uint64_t secret, uint64_t number)
{
    const unsigned char *start = (const unsigned char *)tag + sizeof(tag->sum);

    return htole64(gy_rdma_sum(start, bytes, secret, number));
}

static struct tag *tag_at(unsigned char *place)
{
    return (struct tag *)(void *)(place + GY_FRAME_BYTES - sizeof(struct tag));
}

/* ---- the sender ---- */

bool gy_rdma_is_polled(struct gy_rdma_link *link)
{
    struct gy_rdma_words *words = link->words;

    if (!words || link->paths != 1 || link->pulled[1].end > link->chunks_back ||
        atomic_load_explicit(&words->polls, memory_order_relaxed) == 0)
        return false;
    atomic_store_explicit(&words->begun, htole32((uint32_t)link->chunks + 1), memory_order_relaxed);
    gy_store_load_fence(); /* a peer whose `polls` was not seen cleared reads `begun` after this */
    return atomic_load_explicit(&words->polls, memory_order_relaxed) != 0;
}

void gy_rdma_silent_prepare(struct gy_rdma_link *link)
{
    const struct gy_rdma_path *path = &link->path[0];

    link->silent_piece.lkey = link->staging_mr[path->rail]->lkey;
    link->silent = (struct ibv_send_wr){
        .sg_list = &link->silent_piece, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .wr.rdma.rkey = path->remote_key};
}

void gy_rdma_send_silent(struct gy_rdma_link *link, const void *payload, uint32_t bytes)
{
    struct gy_rdma_path *path = &link->path[0];
    uint64_t offset = link->out_head & link->out_mask, length = gy_rdma_padded(bytes);
    struct tag *tag = tag_at(link->staging + offset);
    struct ibv_send_wr *wr = &link->silent;

    link->silent_piece.addr = (uintptr_t)tag;
    link->silent_piece.length = (uint32_t)sizeof(*tag) + bytes;
    wr->send_flags = link->silent_piece.length <= link->rdma->rail[path->rail].most_inline ? IBV_SEND_INLINE : 0;
    wr->wr.rdma.remote_addr = path->remote_ring + offset + GY_FRAME_BYTES - sizeof(*tag);
    gy_copy(tag + 1, payload, bytes);
    tag->number = htole32((uint32_t)link->chunks + 1);
    tag->immediate = htole32(gy_rdma_immediate(link, length, GY_RDMA_REPEAT));
    tag->sum = sum_of(tag, bytes, link->theirs.secret, link->chunks);
    gy_rdma_post_chunk(link, wr, length, false);
}

/* ---- the receiver ---- */

/* The end of the stream has room for the tag: offsets are multiples of 64. Its contents may be anything. */
bool gy_rdma_poll(struct gy_rdma_link *link)
{
    bool found = false;

    while (link->base.state == GY_LINK_OPEN) {
        uint64_t offset = link->in_head & link->in_mask;
        const struct tag *tag = tag_at(link->ring + offset);
        uint32_t bytes = link->remembered.bytes;

        if (*(const volatile uint32_t *)&tag->number != htole32((uint32_t)link->next_chunk + 1))
            break;
        gy_fence(memory_order_acquire);
        if (link->remembered.epoch == 0 || bytes > GY_RDMA_SILENT ||
            offset + gy_rdma_padded(bytes) > link->in_mask + 1 ||
            tag->sum != sum_of(tag, bytes, link->secret, link->next_chunk))
            break;
        gy_rdma_silent_arrived(link, le32toh(tag->immediate));
        link->quiet = false;
        found = true;
    }
    return found;
}

bool gy_rdma_glance(struct gy_rdma_link *link, int times)
{
    const volatile uint32_t *number = &tag_at(link->ring + (link->in_head & link->in_mask))->number;
    uint32_t awaited = htole32((uint32_t)link->next_chunk + 1);

    while (times-- > 0)
        if (*number == awaited && gy_rdma_poll(link))
            return true;
    return false;
}

/* Posts an unawaited request; `signal` asks for a completion. */
static bool post_word(struct gy_rdma_link *link, enum ibv_wr_opcode opcode, void *word, uint64_t offset, bool signal)
{
    struct gy_rdma_path *path = &link->path[0];
    struct ibv_sge piece = {
        .addr = (uintptr_t)word, .length = sizeof(uint32_t), .lkey = link->words_mr[path->rail]->lkey};
    struct ibv_send_wr wr = {.sg_list = &piece,
                             .num_sge = 1,
                             .opcode = opcode,
                             .wr.rdma = {.remote_addr = link->theirs.words + offset, .rkey = link->theirs.words_key}};

    return gy_rdma_post(link, path, &wr, signal);
}

/* Room for two requests; the queue may be full of frames. */
static bool has_room(const struct gy_rdma_link *link)
{
    return link->ready && !link->ended && link->base.state == GY_LINK_OPEN &&
           link->path[0].posted - link->path[0].finished < GY_RDMA_SENDS - GY_RDMA_RESERVE;
}

static bool tell(struct gy_rdma_link *link, bool polls)
{
    link->words->said = polls;
    return post_word(link, IBV_WR_RDMA_WRITE, &link->words->said, offsetof(struct gy_rdma_words, polls), false);
}

/* The peer knows that polling has stopped: true if all chunks that it had begun before have arrived. */
static bool is_taken_back(struct gy_rdma_link *link)
{
    gy_rdma_poll(link);
    if ((int32_t)(link->path[0].finished - link->asked_for) < 0)
        return false;
    uint32_t missing = le32toh(atomic_load(&link->words->theirs)) - (uint32_t)link->next_chunk;
    return missing == 0 || missing > GY_RDMA_CHUNKS; /* more are never in flight: the word is 2^31 chunks old */
}

/* Also after polling was stopped for a sleep that did not happen. */
void gy_rdma_offer_to_poll(struct gy_rdma_link *link)
{
    if (link->polling == GY_RDMA_POLLS || link->repeats < OFFER || link->paths != 1 || link->rdma->asleep)
        return;
    if (link->polling == GY_RDMA_POLLS_NO_MORE && !is_taken_back(link))
        return;
    link->polling = has_room(link) && tell(link, true) ? GY_RDMA_POLLS : GY_RDMA_POLLS_NOT;
}

bool gy_rdma_may_sleep(struct gy_rdma_link *link)
{
    link->repeats = 0;
    if (link->polling == GY_RDMA_POLLS_NOT)
        return true;
    if (link->polling == GY_RDMA_POLLS) {
        if (has_room(link) && tell(link, false) &&
            post_word(link, IBV_WR_RDMA_READ, (void *)&link->words->theirs, offsetof(struct gy_rdma_words, begun),
                      true)) {
            link->asked_for = link->path[0].posted;
            link->polling = GY_RDMA_POLLS_NO_MORE;
        }
        return false;
    }
    if (!is_taken_back(link))
        return false;
    link->polling = GY_RDMA_POLLS_NOT;
    return true;
}
