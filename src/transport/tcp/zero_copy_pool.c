/* Payloads between sockets of one host, sent by non-temporal copy: zero_copy_policy.c selects them.
 *
 *   payload ──copied past the caches──▶ slot of the pool ──sendfile: by reference──▶ the peer's socket ──recv──▶ its
 *   place
 *                                        ▲                                                                │
 *                                        └──────── free again: taken (bytes of the stream read) ◀─────────┘
 *
 * Invariant: a slot is written only when it has no reader. Its pages stay in the peer's socket until read. The
 * kernel does not report that, so each of the peer's frames does. Nothing waits for it: without a free slot a frame
 * is sent plainly. Slots of a closed link get new pages. So do those of another link without a recent report if a
 * long payload needs them; a remaining reader keeps the old pages. */
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
#include "transport/tcp/internal.h"

#define SLOT_BYTES ((size_t)256 << 10)
#define POOL_BYTES (GY_TCP_SLOTS * SLOT_BYTES)

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

/* Only speed depends on the pool. */
static void give_up(struct tcp *tcp, const char *what)
{
    gy_log(GY_LOG_DEBUG, "payloads go plainly between sockets of this host: %s", what);
    tcp->pool.refused = true;
}

static bool is_free(const struct tcp_slot *slot)
{
    return !slot->link || slot->link->policy.taken >= slot->until;
}

static bool is_in_use(const struct tcp_slot *slot, unsigned index)
{
    return slot->link->policy.frame && slot->link->policy.slot == index;
}

/* Gives the slot new pages; a socket that holds the old ones keeps them. */
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

/* Returns the first free slot, so that few of them pass through the reader's caches. Or another link's without a
 * recent report, if the payload is so long that new pages cost little. −1: there is none. */
static int find_slot(const struct tcp_link *link, size_t payload)
{
    const struct tcp_pool *pool = &link->tcp->pool;
    int found = -1;
    for (unsigned i = 0; i < GY_TCP_SLOTS; i++) {
        const struct tcp_slot *slot = &pool->slot[i];
        if (is_free(slot))
            return (int)i;
        if (found < 0 && payload >= GY_TCP_ZERO_COPY_LONG && slot->link != link && !is_in_use(slot, i))
            found = (int)i;
    }
    return found;
}

/* Returns −1 if none is available. */
static int take_slot(struct tcp_link *link, size_t payload)
{
    struct tcp_pool *pool = &link->tcp->pool;
    int index = find_slot(link, payload);
    if (index < 0)
        return -1;
    bool ready = is_free(&pool->slot[index]) || strip(pool, (unsigned)index);
    link->policy.fresh = pool->slot[index].bare;
    if (ready && clothe(pool, (unsigned)index))
        return index;
    give_up(link->tcp, "its pages cannot be replaced");
    return -1;
}

/* Copies a piece of the frame, from its first unsent byte on. */
static bool fill_slot(struct tcp_link *link, const struct gy_frame_out *frame)
{
    struct tcp_pool *pool = &link->tcp->pool;
    struct tcp_policy *policy = &link->policy;
    if (!pool->memory && !make(pool))
        give_up(link->tcp, "no memory");
    int index = pool->memory ? take_slot(link, frame->header.bytes) : -1;
    if (index < 0)
        return false;
    unsigned char *to = pool->memory + (size_t)index * SLOT_BYTES;
    size_t head = frame->sent == 0 ? GY_FRAME_BYTES : 0, gone = frame->sent + head - GY_FRAME_BYTES;
    size_t bytes = gy_min_size(SLOT_BYTES - head, frame->header.bytes - gone);
    if (head > 0)
        gy_frame_encode(&frame->header, to);
    gy_copy_stream(to + head, (const unsigned char *)frame->payload + gone, bytes);
    gy_stream_fence();
    policy->frame = frame;
    policy->slot = (unsigned)index;
    policy->from = frame->sent;
    policy->bytes = head + bytes;
    pool->slot[index].link = link;
    pool->slot[index].until = gy_tcp_position(&link->out) + policy->bytes;
    return true;
}

bool gy_tcp_pool_has(struct tcp_link *link, struct gy_frame_out *frame)
{
    if (!(frame->header.flags & GY_TCP_FRAME_NT) || link->tcp->pool.refused)
        return false;
    bool in_header = frame->sent > 0 && frame->sent < GY_FRAME_BYTES;
    if (link->policy.frame == frame || (!link->policy.frame && !in_header && fill_slot(link, frame)))
        return true;
    if (frame->sent == 0)
        frame->header.flags &= (uint8_t)~GY_TCP_FRAME_NT; /* it is sent plainly, and the reader's timing must know */
    return false;
}

static bool is_pending(void)
{
    sigset_t signals;
    return sigpending(&signals) == 0 && sigismember(&signals, SIGPIPE) == 1;
}

/* If the peer has gone sendfile raises SIGPIPE, which sendmsg can suppress. */
static ssize_t send_from(int fd, int from, off_t at, size_t bytes)
{
    sigset_t pipe, old;
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &old);
    bool was = sigismember(&old, SIGPIPE) == 1 && is_pending(); /* else it would have been delivered */
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
    struct tcp_policy *policy = &link->policy;
    struct tcp_pool *pool = &link->tcp->pool;
    size_t gone = policy->frame->sent - policy->from;
    ssize_t sent = send_from(link->out.rail->watch.fd, pool->fd, (off_t)(policy->slot * SLOT_BYTES + gone),
                             policy->bytes - gone);
    if (sent > 0) {
        /* The frame's end, even after a partial send; grants may have overtaken it since it was filled. */
        pool->slot[policy->slot].until = gy_tcp_position(&link->out) + policy->bytes - gone;
        if ((size_t)sent == policy->bytes - gone)
            policy->frame = NULL;
    } else if (sent < 0 && (errno == EINVAL || errno == ENOSYS || errno == EPERM)) {
        give_up(link->tcp, "sendfile is not to be had");
        policy->frame = NULL;
        errno = EINTR; /* by another method at once */
    }
    return sent;
}

void gy_tcp_pool_leave(struct tcp_link *link)
{
    struct tcp_pool *pool = &link->tcp->pool;
    link->policy.frame = NULL;
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
