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
 * a full fence at S2, and W2 orders nothing but the compiler. That needs the consent of all local ranks.
 *
 * Taking the flag with an exchange makes one ring per sleep, however many wakers there are. A datagram that comes late
 * finds its rank awake: a spurious turn, nothing more. One that comes in time is the sleeper's: another thread of its rank that
 * looks at the poller meanwhile leaves it there. Were it taken, the kernel, which looks again before it lets the sleeper go, would
 * find nothing and let it sleep on, and nobody would ring again. */
#include <errno.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/mem.h"
#include "transport/fence.h"
#include "transport/segment_private.h"

#define DRAIN_MAX 64 /* datagrams per callback: a stranger who floods us costs turns, not progress */

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

void gy_segment_ring_bell(struct gy_segment *segment, int local)
{
    _Atomic uint32_t *sleeping = &gy_segment_rank(segment, local)->sleeping;
    if (atomic_load_explicit(sleeping, memory_order_relaxed) == 0)
        return;
    if (atomic_exchange_explicit(sleeping, 0, memory_order_seq_cst) == 0)
        return;
    /* Failures are harmless: EAGAIN means that rings enough are waiting there already, ECONNREFUSED that nobody is left
     * to wake. */
    (void)sendto(segment->bell.fd, "!", 1, MSG_DONTWAIT | MSG_NOSIGNAL, (struct sockaddr *)&segment->doors[local],
                 segment->door_bytes[local]);
}

void gy_segment_wake(struct gy_segment *segment, int local)
{
    gy_segment_fence(segment);
    gy_segment_ring_bell(segment, local);
}

void gy_segment_sleep(struct gy_segment *segment)
{
    segment->asleep = true;
    atomic_store_explicit(&gy_segment_rank(segment, segment->world->local)->sleeping, 1, memory_order_seq_cst);
    gy_store_load_fence(); /* S2 */
    if (segment->fences_for_all)
        (void)membarrier_call(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
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
