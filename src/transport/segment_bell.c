/* The doorbell: how one local rank wakes another that sleeps in its poller.
 *
 *   waker                                    sleeper
 *   W1 publish data (release store)          S1 sleeping = 1
 *   W2 full fence                            S2 full fence
 *   W3 read sleeping; if set, take it        S3 look for data once more; none: sleep in the poller
 *      and send one datagram
 *
 * The two fences are a pair: either W3 sees S1 and rings, or S3 sees W1 and does not sleep. Without either fence both
 * loads may pass their thread's own store and the wake-up is lost. Sleeping is rare and publishing is not, so where the
 * kernel offers it the sleeper pays for both: membarrier makes every running thread of the registered processes execute
 * a full fence at S2, and W2 orders nothing but the compiler. That needs the consent of all local ranks. Once given, it is not
 * taken back, for wakers do not ask again; where the kernel refuses a sleeper's call later (it has no memory for it, or the program
 * has since forbidden it, by seccomp), S2 is time: a store leaves its core within nanoseconds, and whatever stops the core, an
 * interrupt or the host of a virtual machine, lets it leave first. So S3, a millisecond later, sees every W1 whose W3 missed S1.
 *
 * Taking the flag with an exchange makes one ring per sleep, however many wakers there are. A datagram that comes late
 * finds its rank awake: a spurious turn, nothing more. One that comes in time is the sleeper's: another thread of its rank that
 * looks at the poller meanwhile leaves it there. Were it taken, the kernel, which looks again before it lets the sleeper go, would
 * find nothing and let it sleep on, and nobody would ring again.
 *
 * Who takes a flag owes a ring. Datagrams that nobody has read yet fill up the socket that has sent them (277 of them, with Linux's
 * defaults), whoever they are for: then the next one goes by a socket of its own, which can be closed at once, as what it has sent
 * stays. Only where that is full, too, is it the sleeper's queue that is, and rings enough are waiting there. */
#include <errno.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/mem.h"
#include "transport/fence.h"
#include "transport/segment_private.h"

#define DRAIN_MAX 64             /* datagrams per callback: a stranger who floods us costs turns, not progress */
#define STORES_NS GY_MILLISECOND /* in which every store of another core has long become visible */
#define PATIENCE_MS 50           /* with those who are to read: as long as they sleep when nobody wakes them */

socklen_t gy_segment_name(const struct gy_world *world, int local, const char *what, struct sockaddr_un *name_p)
{
    uint64_t nonce = world->members[world->locals[local]].nonce;
    *name_p = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(name_p->sun_path + 1, sizeof(name_p->sun_path) - 1, "gyre-%016" PRIx64 "-%016" PRIx64 "-%s",
                          world->job, nonce, what);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static void drain(struct gy_segment *segment)
{
    char byte;
    segment->rung = false;
    for (int i = 0; i < DRAIN_MAX && recv(segment->bell.fd, &byte, 1, MSG_DONTWAIT) >= 0; i++)
        ;
}

static void bell_rang(void *owner, uint32_t events)
{
    struct gy_segment *segment = owner;
    (void)events;
    segment->rung = true;
    if (!segment->asleep)
        drain(segment);
}

gyre_status gy_segment_bell_open(struct gy_segment *segment, struct gy_error *error)
{
    struct gy_world *world = segment->world;
    size_t n = (size_t)world->nlocals;
    gyre_status status;
    segment->doors = gy_alloc_zero(n, sizeof(*segment->doors));
    segment->door_bytes = gy_alloc_zero(n, sizeof(*segment->door_bytes));
    if (!segment->doors || !segment->door_bytes) {
        status = gy_error_set(error, GYRE_NO_MEMORY, -1, "no memory for the doorbells of %d local ranks",
                              world->nlocals);
        goto free_doors;
    }
    for (int i = 0; i < world->nlocals; i++)
        segment->door_bytes[i] = gy_segment_name(world, i, "bell", &segment->doors[i]);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        status = gy_error_system(error, errno, "rank %d: socket for its doorbell", world->rank);
        goto free_doors;
    }
    if (bind(fd, (struct sockaddr *)&segment->doors[world->local], segment->door_bytes[world->local])) {
        status = gy_error_system(error, errno, "rank %d: bind of its doorbell", world->rank);
        goto close_fd;
    }
    segment->bell = (struct gy_watch){.fd = fd, .events = EPOLLIN, .callback = bell_rang, .owner = segment};
    status = gy_poller_add(world->poller, &segment->bell, error);
    if (status != GYRE_SUCCESS)
        goto close_fd;
    return GYRE_SUCCESS;

close_fd:
    close(fd);
free_doors:
    gy_free(segment->doors);
    gy_free(segment->door_bytes);
    return status;
}

void gy_segment_bell_close(struct gy_segment *segment, bool forked)
{
    if (!forked)
        gy_poller_remove(segment->world->poller, &segment->bell);
    close(segment->bell.fd);
    gy_free(segment->doors);
    gy_free(segment->door_bytes);
}

static bool membarrier_call(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

void gy_segment_bell_register(struct gy_segment *segment)
{
    segment->fences_for_all = membarrier_call(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
    atomic_store_explicit(&gy_segment_rank(segment, segment->world->local)->fences_for_all,
                          segment->fences_for_all ? 1u : 0u, memory_order_release);
}

/* Every local rank is registered, and fences for all when it goes to sleep. Never taken back. */
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

/* Also true where nobody is left to wake. False: no room, or no memory. */
static bool send_ring(const struct gy_segment *segment, int fd, int local)
{
    return sendto(fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (const struct sockaddr *)&segment->doors[local],
                  segment->door_bytes[local]) >= 0 ||
           (errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM);
}

/* There is no further socket: those who were woken before read theirs when they come to it. */
static void ring_in_turn(const struct gy_segment *segment, int local)
{
    for (int ms = 0; ms < PATIENCE_MS && !send_ring(segment, segment->bell.fd, local); ms++)
        poll(NULL, 0, 1);
}

static __attribute__((noinline, cold)) void ring_aside(const struct gy_segment *segment, int local)
{
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        ring_in_turn(segment, local);
        return;
    }
    (void)send_ring(segment, fd, local);
    close(fd);
}

void gy_segment_ring_bell(struct gy_segment *segment, int local)
{
    _Atomic uint32_t *sleeping = &gy_segment_rank(segment, local)->sleeping;
    if (atomic_load_explicit(sleeping, memory_order_relaxed) == 0)
        return;
    if (atomic_exchange_explicit(sleeping, 0, memory_order_seq_cst) == 0)
        return;
    if (!send_ring(segment, segment->bell.fd, local))
        ring_aside(segment, local);
}

void gy_segment_wake(struct gy_segment *segment, int local)
{
    gy_segment_fence(segment);
    gy_segment_ring_bell(segment, local);
}

/* A ring ends it: then there is something to look at. */
static void outwait_stores(const struct gy_segment *segment)
{
    struct pollfd bell = {.fd = segment->bell.fd, .events = POLLIN};
    int64_t until = gy_now() + STORES_NS;
    while (gy_now() < until && poll(&bell, 1, 1) <= 0)
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
