/* Reading another local rank's private memory through the kernel, by process_vm_readv: one copy instead of two
 * through shared memory.
 *
 * Permission depends on users, capabilities, ptrace_scope and sandboxes, and a process id may mean another process
 * here. So nothing is assumed and every pair is tested:
 *
 *   every rank   publishes the address of a word in its private memory: its nonce, which all members know
 *   every rank   reads that word of every other one, and publishes whether all were right: `reading`
 *   all do       then, and only then, reads are used; the result does not change any more
 *
 * Until the last rank has tested, at its first query, the answer is no, without waiting.
 *
 * Every later read includes the word: after an undetected death the process id may already belong to another
 * process, which would be read instead. That costs a quarter of a microsecond. A timer cannot replace it: the kernel
 * assigns ids in sequence but may be just before that one, and exec keeps the id. */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "transport/shm/internal.h"

void gy_segment_proof_register(struct gy_segment *segment)
{
    const struct gy_world *world = segment->world;
    segment->proof = world->members[world->rank].nonce;
    /* Release: a rank that sees the address finds the word. */
    atomic_store_explicit(&gy_segment_rank(segment, world->local)->proof, (uint64_t)(uintptr_t)&segment->proof,
                          memory_order_release);
}

/* Reads a piece, and the proof behind it by the same call, so that both are of one process. */
static ssize_t read_both(pid_t process, uint64_t address, size_t bytes, void *to, uint64_t proof, uint64_t *word_p)
{
    struct iovec here[] = {{to, bytes}, {word_p, sizeof(*word_p)}};
    /* NOLINTNEXTLINE: only the kernel follows these */
    struct iovec there[] = {{(void *)(uintptr_t)address, bytes}, {(void *)(uintptr_t)proof, sizeof(*word_p)}};
    return process_vm_readv(process, here, 2, there, 2, 0);
}

/* EFAULT: that memory cannot be read, or another process has the id now. */
static int blame(pid_t process, uint64_t proof, uint64_t nonce, int errnum)
{
    uint64_t word;
    if (errnum != EFAULT || (read_both(process, proof, 0, NULL, proof, &word) == sizeof(word) && word == nonce))
        return errnum;
    return ESRCH;
}

int gy_segment_read_private(struct gy_segment *segment, int local, uint64_t address, size_t bytes, void *to)
{
    const struct gy_member *member = &segment->world->members[segment->world->locals[local]];
    uint64_t proof = atomic_load_explicit(&gy_segment_rank(segment, local)->proof, memory_order_acquire), word;
    for (size_t done = 0;;) { /* until one call returns the rest and the proof */
        /* No arithmetic on NULL, if there are no bytes. */
        void *rest = done > 0 ? (unsigned char *)to + done : to;
        ssize_t n = read_both(member->pid, address + done, bytes - done, rest, proof, &word);
        if (n <= 0)
            return blame(member->pid, proof, member->nonce, n < 0 ? errno : EFAULT);
        if ((size_t)n == bytes - done + sizeof(word))
            return word == member->nonce ? 0 : ESRCH;
        done += gy_min_size((size_t)n, bytes - done);
    }
}

bool gy_segment_readable(const void *memory, size_t bytes)
{
    char first, last;
    struct iovec here[] = {{&first, 1}, {&last, 1}};
    /* NOLINTNEXTLINE: only the kernel follows these */
    struct iovec there[] = {{(void *)(uintptr_t)memory, 1}, {(void *)((uintptr_t)memory + bytes - 1), 1}};
    return bytes == 0 || process_vm_readv(getpid(), here, 2, there, 2, 0) == 2;
}

/* UNKNOWN: some rank has not published its address yet. */
static enum gy_reading try_all(struct gy_segment *segment)
{
    const struct gy_world *world = segment->world;
    enum gy_reading result = GY_READING_ALL;
    for (int local = 0; local < world->nlocals && result == GY_READING_ALL; local++) {
        if (local == world->local)
            continue;
        if (atomic_load_explicit(&gy_segment_rank(segment, local)->proof, memory_order_acquire) == 0)
            result = GY_READING_UNKNOWN;
        else if (gy_segment_read_private(segment, local, 0, 0, NULL) != 0)
            result = GY_READING_SOME;
    }
    return result;
}

bool gy_segment_reads_all(struct gy_segment *segment)
{
    const struct gy_world *world = segment->world;
    if (segment->reading != GY_READING_UNKNOWN)
        return segment->reading == GY_READING_ALL;
    if (segment->own_reading == GY_READING_UNKNOWN) {
        segment->own_reading = world->config->shm_read ? try_all(segment) : GY_READING_SOME;
        atomic_store_explicit(&gy_segment_rank(segment, world->local)->reading, segment->own_reading,
                              memory_order_release);
    }
    enum gy_reading all = GY_READING_ALL;
    for (int local = 0; local < world->nlocals && all != GY_READING_SOME; local++) {
        enum gy_reading its = atomic_load_explicit(&gy_segment_rank(segment, local)->reading, memory_order_acquire);
        all = its == GY_READING_ALL ? all : its;
    }
    segment->reading = all;
    return all == GY_READING_ALL;
}
