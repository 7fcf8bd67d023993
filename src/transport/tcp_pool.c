/* Long payloads between sockets of one host, past the caches of the core that sends them.
 *
 *   payload ──copied past the caches──▶ slot of the pool ──sendfile: by reference──▶ the peer's socket ──recv──▶ its place
 *                                        ▲                                                                │
 *                                        └──────── free again: GRANT(taken = bytes of the stream read) ◀──┘
 *
 * A plain send copies a payload to pages of the kernel that were in use a moment ago. The reader has their lines still, and where his core has
 * no last-level cache in common with the sender's each of them takes as long to be written again as a line takes from memory, two or three
 * times as long as all else. What is written past the caches waits for nobody. Where the two have a cache in common, plain sends are
 * quicker. So both ends time what the kernel's copies take, of payloads of either sort, one of the other sort coming now and then; the reader's
 * figures come to the sender in grants.
 *
 * Invariant: a slot is written only when nobody reads it any more. Its pages stand in the peer's socket until he has read them,
 * which the kernel does not tell, so that grants do. Nothing waits for that: where no slot is free, a frame goes plainly. Slots of a link that
 * has ended, and those of another one that has not been heard of, get new pages: who still reads keeps the old ones. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#include "core/dtype.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/memfd.h"
#include "transport/tcp_private.h"

#define SLOT_BYTES ((size_t)256 << 10)
#define POOL_BYTES (GY_TCP_SLOTS * SLOT_BYTES)
#define LONG_BYTES ((uint32_t)128 << 10) /* shorter payloads go plainly */
#define FIRST_FRAMES 16                  /* of these every fourth goes the other way */
#define TRIAL_FIRST 4
#define TRIAL_LATER 64 /* and of later ones every so many'th */
#define FIGURES_LEAST 2

static bool stays_plain(const struct tcp_link *link)
{
    return !link->near || link->rails || link->envelopes;
}

/* Bytes of a link's one connection. */
static uint64_t position(const struct tcp_way *way)
{
    return SIZE_MAX - way->left;
}

/* ---- which way ---- */

/* Plain sends are quick or slow, as the kernel's pages fall, and once in a while somebody loses his core in a call: the mean without the
 * highest quarter. 0: not known yet. */
static unsigned pace_of(const struct tcp_pace *pace)
{
    unsigned sorted[GY_TCP_FIGURES], most = pace->count - pace->count / 4, sum = 0;
    for (unsigned i = 0; i < pace->count; i++) {
        unsigned at = i;
        for (; at > 0 && sorted[at - 1] > pace->figure[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = pace->figure[i];
    }
    for (unsigned i = 0; i < most; i++)
        sum += sorted[i];
    return pace->count < FIGURES_LEAST ? 0 : sum / most;
}

void gy_tcp_pool_timed(struct tcp_pace *pace, size_t bytes, int64_t ns)
{
    pace->bytes += bytes;
    pace->ns += ns;
    if (pace->bytes < LONG_BYTES)
        return;
    int64_t each = pace->ns * 1024 / (int64_t)pace->bytes;
    pace->figure[pace->next] = each < 1 ? 1 : each > UINT16_MAX ? UINT16_MAX : (unsigned)each;
    pace->next = (pace->next + 1) % GY_TCP_FIGURES;
    pace->count += pace->count < GY_TCP_FIGURES;
    pace->bytes = 0;
    pace->ns = 0;
}

bool gy_tcp_pool_times(const struct tcp_link *link, size_t payload)
{
    return payload >= LONG_BYTES && !stays_plain(link);
}

/* Begun where it saves a tenth, and gone on with while it saves anything. */
static void choose(struct tcp_past *past)
{
    unsigned cost[2];
    for (int way = 0; way < 2; way++) {
        unsigned mine = pace_of(&past->sends[way]);
        if (mine == 0 || past->theirs[way] == 0)
            return;
        cost[way] = mine + past->theirs[way];
    }
    past->pays = past->pays ? cost[1] < cost[0] : cost[1] * 10 < cost[0] * 9;
}

static bool goes_past(struct tcp_past *past)
{
    unsigned turn = past->long_frames++, of = turn < FIRST_FRAMES ? TRIAL_FIRST : TRIAL_LATER;
    choose(past);
    return past->pays != (turn % of == of - 1);
}

void gy_tcp_pool_mark(struct tcp_link *link, struct gy_frame *header)
{
    if (stays_plain(link))
        return;
    if (header->kind == GY_FRAME_GRANT) {
        header->taken = position(&link->in);
        for (int way = 0; way < 2; way++)
            header->pace[way] = (uint16_t)pace_of(&link->past.reads[way]);
    } else if (header->kind == GY_FRAME_DATA && header->bytes >= LONG_BYTES && !(header->flags & GY_FRAME_EAGER) &&
               !link->tcp->pool.refused) {
        header->flags |= goes_past(&link->past) ? GY_FRAME_PAST : 0;
    }
}

void gy_tcp_pool_heard(struct tcp_link *link, const struct gy_frame *grant)
{
    link->past.taken = grant->taken;
    for (int way = 0; way < 2; way++)
        link->past.theirs[way] = grant->pace[way];
}

/* ---- the pool ---- */

/* Without pages. */
static bool make(struct tcp_pool *pool)
{
    int fd = gy_memfd_make("gyre-tcp", POOL_BYTES);
    void *memory = fd < 0 ? MAP_FAILED : mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
        if (fd >= 0)
            close(fd);
        return false;
    }
    pool->fd = fd;
    pool->memory = memory;
    for (unsigned i = 0; i < GY_TCP_SLOTS; i++)
        pool->slot[i].bare = true;
    return true;
}

/* Nothing depends on it but the time. */
static void give_up(struct tcp *tcp, const char *what)
{
    gy_log(GY_LOG_DEBUG, "long payloads go plainly between sockets of this host: %s", what);
    tcp->pool.refused = true;
}

static bool is_free(const struct tcp_slot *slot)
{
    return !slot->link || slot->link->past.taken >= slot->until;
}

static bool is_in_use(const struct tcp_slot *slot, unsigned index)
{
    return slot->link->past.frame && slot->link->past.slot == index;
}

/* Whoever has its pages in his socket keeps them. */
static bool strip(struct tcp_pool *pool, unsigned index)
{
    pool->slot[index] = (struct tcp_slot){.bare = true};
    return fallocate(pool->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(index * SLOT_BYTES),
                     (off_t)SLOT_BYTES) == 0;
}

static bool clothe(struct tcp_pool *pool, unsigned index)
{
    struct tcp_slot *slot = &pool->slot[index];
    if (slot->bare)
        slot->bare = gy_memfd_reserve(pool->fd, index * SLOT_BYTES, SLOT_BYTES) != 0;
    return !slot->bare;
}

/* The first that is free, so that no more of them than are needed pass through the reader's caches; or another link's that has not been
 * heard of. −1: there is none. */
static int find_slot(const struct tcp_link *link)
{
    const struct tcp_pool *pool = &link->tcp->pool;
    int found = -1;
    for (unsigned i = 0; i < GY_TCP_SLOTS; i++) {
        const struct tcp_slot *slot = &pool->slot[i];
        if (is_free(slot))
            return (int)i;
        if (found < 0 && slot->link != link && !is_in_use(slot, i))
            found = (int)i;
    }
    return found;
}

/* −1: none can be had. */
static int take_slot(struct tcp_link *link)
{
    struct tcp_pool *pool = &link->tcp->pool;
    int index = find_slot(link);
    if (index < 0)
        return -1;
    bool ready = is_free(&pool->slot[index]) || strip(pool, (unsigned)index);
    link->past.fresh = pool->slot[index].bare;
    if (ready && clothe(pool, (unsigned)index))
        return index;
    give_up(link->tcp, "its pages cannot be replaced");
    return -1;
}

/* A piece of the frame, from what has left of it on. */
static bool fill_slot(struct tcp_link *link, const struct gy_frame_out *frame)
{
    struct tcp_pool *pool = &link->tcp->pool;
    struct tcp_past *past = &link->past;
    if (!pool->memory && !make(pool))
        give_up(link->tcp, "no memory");
    int index = pool->memory ? take_slot(link) : -1;
    if (index < 0)
        return false;
    unsigned char *to = pool->memory + (size_t)index * SLOT_BYTES;
    size_t head = frame->sent == 0 ? GY_FRAME_BYTES : 0, gone = frame->sent + head - GY_FRAME_BYTES;
    size_t bytes = gy_min_size(SLOT_BYTES - head, frame->header.bytes - gone);
    if (head > 0)
        gy_frame_encode(&frame->header, to);
    gy_copy_stream(to + head, (const unsigned char *)frame->payload + gone, bytes);
    gy_stream_fence();
    past->frame = frame;
    past->slot = (unsigned)index;
    past->from = frame->sent;
    past->bytes = head + bytes;
    pool->slot[index].link = link;
    pool->slot[index].until = position(&link->out) + past->bytes;
    return true;
}

bool gy_tcp_pool_has(struct tcp_link *link)
{
    const struct gy_frame_out *frame = link->base.first;
    if (!(frame->header.flags & GY_FRAME_PAST) || link->tcp->pool.refused)
        return false;
    bool in_header = frame->sent > 0 && frame->sent < GY_FRAME_BYTES;
    return link->past.frame == frame || (!link->past.frame && !in_header && fill_slot(link, frame));
}

static bool is_pending(void)
{
    sigset_t signals;
    return sigpending(&signals) == 0 && sigismember(&signals, SIGPIPE) == 1;
}

/* Where the peer has gone sendfile raises SIGPIPE, which sendmsg can be told not to do. */
static ssize_t send_from(int fd, int from, off_t at, size_t bytes)
{
    sigset_t pipe, old;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    bool was = is_pending();
    pthread_sigmask(SIG_BLOCK, &pipe, &old);
    ssize_t sent = sendfile(fd, from, &at, bytes);
    int errnum = errno;
    if (sent < (ssize_t)bytes && !was && is_pending())
        while (sigtimedwait(&pipe, NULL, &(struct timespec){0}) < 0 && errno == EINTR)
            ;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = errnum;
    return sent;
}

ssize_t gy_tcp_pool_send(struct tcp_link *link)
{
    struct tcp_past *past = &link->past;
    struct tcp_pool *pool = &link->tcp->pool;
    size_t gone = past->frame->sent - past->from;
    ssize_t sent = send_from(link->out.rail->watch.fd, pool->fd, (off_t)(past->slot * SLOT_BYTES + gone),
                             past->bytes - gone);
    if (sent > 0) {
        /* Its end, also while a part of it has left only; grants may have gone ahead of it since it was filled. */
        pool->slot[past->slot].until = position(&link->out) + past->bytes - gone;
        if ((size_t)sent == past->bytes - gone)
            past->frame = NULL;
    } else if (sent < 0 && (errno == EINVAL || errno == ENOSYS || errno == EPERM)) {
        give_up(link->tcp, "sendfile is not to be had");
        past->frame = NULL;
        errno = EINTR; /* by other means at once */
    }
    return sent;
}

void gy_tcp_pool_leave(struct tcp_link *link)
{
    struct tcp_pool *pool = &link->tcp->pool;
    link->past.frame = NULL;
    for (unsigned i = 0; pool->memory && i < GY_TCP_SLOTS; i++)
        if (pool->slot[i].link == link && !strip(pool, i))
            give_up(link->tcp, "its pages cannot be replaced");
}

void gy_tcp_pool_free(struct tcp_pool *pool)
{
    if (!pool->memory)
        return;
    munmap(pool->memory, POOL_BYTES);
    close(pool->fd);
}
