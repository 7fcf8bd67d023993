/* The doorbell: how one local rank wakes another that sleeps in its poller.
 *
 *   waker                                    sleeper
 *   W1 publish data (release store)          S1 sleeping = 1
 *   W2 full fence                            S2 full fence
 *   W3 read sleeping; if set, take it        S3 look for data once more; none: sleep in the poller
 *      and send one datagram
 *
 * The two fences are a pair: either W3 sees S1 and rings, or S3 sees W1 and does not sleep. Without either fence
 * both loads may pass their thread's own store, and the wake-up is lost. Sleeping is rare and publishing is not, so
 * where the kernel offers it the sleeper pays for both. membarrier makes every running thread of the registered
 * processes execute a full fence at S2, and W2 orders only the compiler. That needs the consent of all local ranks,
 * and is not revoked, as wakers do not ask again. If the kernel refuses a sleeper's later call (no memory, or
 * forbidden by seccomp since), S2 is a delay. A store leaves its core within nanoseconds, and an interrupt or a
 * virtual machine's host that stops the core lets it leave first. So S3, a millisecond later, sees every W1 whose W3
 * missed S1.
 *
 * Taking the flag with an exchange makes one ring per sleep, for any number of wakers. A late datagram finds its
 * rank awake: one spurious iteration. A datagram in time belongs to the sleeper: another thread of its rank that
 * polls meanwhile leaves it in the socket. If it were taken, the kernel, which checks again before it returns to the
 * sleeper, would let it sleep on without another ring.
 *
 * Only ranks of the world can ring. The first local rank makes a few sender sockets, whose descriptors are passed
 * with the segment's. A doorbell is connected to one of them, so the kernel refuses a datagram from any other socket
 * (EPERM). Its own name is picked by the kernel (autobind), so it cannot have been taken before; the control page
 * publishes it to the peers.
 *
 * An unread datagram counts against the sending socket, which holds 277 of them with Linux's defaults. A rank has at
 * most two unread ones: that of its last sleep, and a late one. So a sender socket that serves
 * GY_DOORBELLS_PER_SENDER ranks always has room. The length of the receiver's queue does not matter: the kernel
 * checks it only if the two sockets are not connected. */
#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/fence.h"
#include "core/mem.h"
#include "transport/shm/internal.h"

#define DRAIN_MAX 64             /* datagrams per callback */
#define STORES_NS GY_MILLISECOND /* within which another core's store has become visible */
#define PATIENCE_MS 50           /* the longest sleep while the kernel has no memory for a datagram */

/* The name picked by the kernel: a zero and five digits. */
#define NAME_BYTES 6u

_Static_assert(NAME_BYTES <= sizeof(uint64_t), "a name fits into the word that tells it");

static socklen_t name_of(uint64_t word, struct sockaddr_un *name_p)
{
    *name_p = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(name_p->sun_path, &word, NAME_BYTES);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + NAME_BYTES);
}

/* The inverse; 0: the socket has no such name. */
static uint64_t word_of(int fd)
{
    struct sockaddr_un name;
    socklen_t bytes = sizeof(name);
    uint64_t word = 0;
    if (getsockname(fd, (struct sockaddr *)&name, &bytes) == 0 &&
        bytes == offsetof(struct sockaddr_un, sun_path) + NAME_BYTES)
        memcpy(&word, name.sun_path, NAME_BYTES);
    return word;
}

/* Makes a datagram socket with a name picked by the kernel. `sender` −1: any socket may send to it. Returns −1 with
 * errno. */
static int socket_make(int sender)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof(name);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    /* connected first: no other process can send to the name */
    if ((sender < 0 || (getsockname(sender, (struct sockaddr *)&name, &bytes) == 0 &&
                        connect(fd, (struct sockaddr *)&name, bytes) == 0)) &&
        bind(fd, (struct sockaddr *)&(struct sockaddr_un){.sun_family = AF_UNIX}, sizeof(sa_family_t)) == 0)
        return fd;
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

int gy_segment_senders(int locals)
{
    int senders = (locals + GY_DOORBELLS_PER_SENDER - 1) / GY_DOORBELLS_PER_SENDER;
    return senders < GY_SENDERS ? senders : GY_SENDERS;
}

gyre_status gy_segment_senders_make(struct gy_segment *segment, struct gy_error *error)
{
    for (int i = 0; i < segment->nsenders; i++)
        if ((segment->fds.sender[i] = socket_make(-1)) < 0)
            return gy_error_system(error, errno, "rank %d: socket that wakes the ranks of this host",
                                   segment->world->rank);
    return GYRE_SUCCESS;
}

static int sender_of(const struct gy_segment *segment, int local)
{
    return segment->fds.sender[local % segment->nsenders];
}

static void drain(struct gy_segment *segment)
{
    char byte;
    segment->rung = false;
    for (int i = 0; i < DRAIN_MAX && recv(segment->doorbell.fd, &byte, 1, MSG_DONTWAIT) >= 0; i++)
        ;
}

static void doorbell_rang(void *owner, uint32_t events)
{
    struct gy_segment *segment = owner;
    (void)events;
    segment->rung = true;
    if (!segment->asleep)
        drain(segment);
}

gyre_status gy_segment_doorbell_open(struct gy_segment *segment, struct gy_error *error)
{
    struct gy_world *world = segment->world;
    int fd = socket_make(sender_of(segment, world->local));
    if (fd < 0)
        return gy_error_system(error, errno, "rank %d: socket for its doorbell", world->rank);
    segment->doorbell = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = doorbell_rang, .owner = segment};
    gyre_status status = gy_poller_add(world->poller, &segment->doorbell, error);
    if (status != GYRE_SUCCESS) {
        close(fd);
        return status;
    }
    atomic_store_explicit(&gy_segment_rank(segment, world->local)->doorbell, word_of(fd), memory_order_release);
    return GYRE_SUCCESS;
}

void gy_segment_doorbell_close(struct gy_segment *segment, bool forked)
{
    if (!forked)
        gy_poller_remove(segment->world->poller, &segment->doorbell);
    close(segment->doorbell.fd);
}

static bool membarrier_call(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void gy_segment_doorbell_register(struct gy_segment *segment)
{
    segment->fences_for_all = membarrier_call(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
    atomic_store_explicit(&gy_segment_rank(segment, segment->world->local)->fences_for_all,
                          segment->fences_for_all ? 1u : 0u, memory_order_release);
}

/* True if every local rank is registered, and fences for all when it goes to sleep. Never revoked. */
static bool everyone_registered(struct gy_segment *segment)
{
    for (int i = 0; i < segment->world->nlocals; i++)
        if (atomic_load_explicit(&gy_segment_rank(segment, i)->fences_for_all, memory_order_acquire) == 0)
            return false;
    return true;
}

void gy_segment_fence(struct gy_segment *segment)
{
    if (segment->asymmetric) {
        atomic_signal_fence(memory_order_seq_cst);
        return;
    }
    if ((segment->fences++ & 63) == 0)
        segment->asymmetric = everyone_registered(segment);
    gy_store_load_fence(); /* W2 */
}

/* Returns false if there is no room or memory for a datagram; true also if the rank is gone. */
static bool send_ring(struct gy_segment *segment, int local)
{
    struct sockaddr_un name;
    uint64_t word = atomic_load_explicit(&gy_segment_rank(segment, local)->doorbell, memory_order_acquire);
    socklen_t bytes = name_of(word, &name);
    return sendto(sender_of(segment, local), "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&name, bytes) >=
               0 ||
           (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

static __attribute__((noinline, cold)) void ring_again(struct gy_segment *segment, int local)
{
    for (int ms = 0; ms < PATIENCE_MS && !send_ring(segment, local); ms++)
        poll(NULL, 0, 1);
}

void gy_segment_ring_doorbell(struct gy_segment *segment, int local)
{
    _Atomic uint32_t *sleeping = &gy_segment_rank(segment, local)->sleeping;
    if (atomic_load_explicit(sleeping, memory_order_relaxed) == 0)
        return;
    if (atomic_exchange_explicit(sleeping, 0, memory_order_seq_cst) == 0)
        return;
    if (!send_ring(segment, local))
        ring_again(segment, local);
}

void gy_segment_wake(struct gy_segment *segment, int local)
{
    gy_segment_fence(segment);
    gy_segment_ring_doorbell(segment, local);
}

/* A ring ends the delay: then there is data to process. */
static void outwait_stores(const struct gy_segment *segment)
{
    struct pollfd doorbell = {.fd = segment->doorbell.fd, .events = POLLIN};
    int64_t until = gy_now() + STORES_NS;
    while (gy_now() < until && poll(&doorbell, 1, 1) <= 0)
        ;
}

void gy_segment_sleep(struct gy_segment *segment)
{
    segment->asleep = true;
    atomic_store_explicit(&gy_segment_rank(segment, segment->world->local)->sleeping, 1, memory_order_seq_cst);
    gy_store_load_fence(); /* S2 */
    if (segment->fences_for_all && !membarrier_call(MEMBARRIER_CMD_GLOBAL_EXPEDITED))
        outwait_stores(segment);
}

void gy_segment_awake(struct gy_segment *segment)
{
    _Atomic uint32_t *sleeping = &gy_segment_rank(segment, segment->world->local)->sleeping;
    if (atomic_load_explicit(sleeping, memory_order_relaxed)) /* a waker may have taken it: then the line stays clean */
        atomic_store_explicit(sleeping, 0, memory_order_relaxed);
    segment->asleep = false;
    if (segment->rung)
        drain(segment);
}
