/* Reading another local rank's private memory through the kernel, by process_vm_readv: one copy where the way through shared
 * memory takes two.
 *
 * Whether that is allowed depends on users, capabilities, ptrace_scope and sandboxes, and the number of a process may mean
 * another one here. So nothing is assumed and all is tried:
 *
 *   every rank   shows where a word lies in its private memory: its nonce, which all members know
 *   every rank   reads that word of every other one, and shows whether it found them all: `reaches`
 *   all do       then, and only then, somebody may rely on it; it does not change any more
 *
 * Until the last one has tried, which it does when it first asks, the answer is no, and nobody waits for it. */
#include <errno.h>
#include <sys/uio.h>

#include "transport/segment_private.h"

void gy_segment_reach_register(struct gy_segment *segment)
{
    const struct gy_world *world = segment->world;
    segment->proof = world->members[world->rank].nonce;
    /* Release: who sees the address finds the word. */
    atomic_store_explicit(&gy_segment_rank(segment, world->local)->proof, (uint64_t)(uintptr_t)&segment->proof,
                          memory_order_release);
}

int gy_segment_reach(const struct gy_segment *segment, int local, uint64_t address, size_t bytes, void *to)
{
    const struct gy_world *world = segment->world;
    pid_t process = world->members[world->locals[local]].pid;
    for (size_t done = 0; done < bytes;) {
        struct iovec here = {(unsigned char *)to + done, bytes - done};
        struct iovec there = {(void *)(uintptr_t)(address + done),
                              bytes - done}; /* NOLINT: only the kernel follows it */
        ssize_t n = process_vm_readv(process, &here, 1, &there, 1, 0);
        if (n <= 0)
            return n < 0 ? errno : EFAULT;
        done += (size_t)n;
    }
    return 0;
}

/* UNKNOWN: somebody has not said yet where to look. */
static enum gy_reach try_all(struct gy_segment *segment)
{
    const struct gy_world *world = segment->world;
    enum gy_reach result = GY_REACH_ALL;
    for (int local = 0; local < world->nlocals && result == GY_REACH_ALL; local++) {
        uint64_t at = atomic_load_explicit(&gy_segment_rank(segment, local)->proof, memory_order_acquire), word = 0;
        if (local == world->local)
            continue;
        if (at == 0)
            result = GY_REACH_UNKNOWN;
        else if (gy_segment_reach(segment, local, at, sizeof(word), &word) != 0 ||
                 word != world->members[world->locals[local]].nonce)
            result = GY_REACH_SOME;
    }
    return result;
}

bool gy_segment_reaches_all(struct gy_segment *segment)
{
    const struct gy_world *world = segment->world;
    if (segment->reach != GY_REACH_UNKNOWN)
        return segment->reach == GY_REACH_ALL;
    if (segment->own_reach == GY_REACH_UNKNOWN) {
        segment->own_reach = world->config->shm_read ? try_all(segment) : GY_REACH_SOME;
        atomic_store_explicit(&gy_segment_rank(segment, world->local)->reaches, segment->own_reach,
                              memory_order_release);
    }
    enum gy_reach all = GY_REACH_ALL;
    for (int local = 0; local < world->nlocals && all != GY_REACH_SOME; local++) {
        enum gy_reach its = atomic_load_explicit(&gy_segment_rank(segment, local)->reaches, memory_order_acquire);
        all = its == GY_REACH_ALL ? all : its;
    }
    segment->reach = all;
    return all == GY_REACH_ALL;
}
