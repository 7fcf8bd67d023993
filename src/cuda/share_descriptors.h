/* Descriptors that this process gives to other processes of its user on this host.
 *
 *   gy_descriptors_offer(number, fds) ── name ──►  gy_descriptors_take(name, number)
 *   thread ◄──────────── number ───────────────────  connects to the name
 *          ───── sizes, fds (SCM_RIGHTS) ──────────►
 *
 * The name is an abstract Unix socket, random; both ends check the other's user, the taker also its process. A thread
 * answers, so that a taker does not wait for what the offering process computes; it calls no CUDA.
 *
 * pidfd_getfd would need no thread, but the permission to trace the other process: Yama refuses it between siblings
 * (ptrace_scope 1), and so do the system-call filters of containers. A socket needs one network namespace. */
#ifndef GY_CUDA_SHARE_DESCRIPTORS_H
#define GY_CUDA_SHARE_DESCRIPTORS_H

#include "core/base.h"

enum { GY_DESCRIPTORS_MOST = 128, GY_DESCRIPTORS_NAME = 48 };

/* Descriptors with the sizes of what they stand for. */
struct gy_descriptors {
    unsigned count;
    int fd[GY_DESCRIPTORS_MOST];
    uint64_t bytes[GY_DESCRIPTORS_MOST];
};

void gy_descriptors_close(struct gy_descriptors *descriptors);
/* Returns true if their memory has so many bytes together. */
bool gy_descriptors_have(const struct gy_descriptors *descriptors, uint64_t bytes);
/* Starts the thread for a user of it, and writes its name. Returns false with a sentence in `why`. Thread-safe. */
bool gy_descriptors_begin(char name_p[GY_DESCRIPTORS_NAME], char *why, size_t why_bytes);
/* Ends a use; the last one ends the thread. In a forked child it does nothing. Thread-safe. */
void gy_descriptors_end(void);
/* Gives them to every process that asks for `number`, until it is withdrawn. Takes them over on success. False: no
 * memory. Thread-safe. */
bool gy_descriptors_offer(uint64_t number, const struct gy_descriptors *descriptors);
/* Closes them. Thread-safe. */
void gy_descriptors_withdraw(uint64_t number);
/* Takes what process `pid` offers under that name; the caller closes them. Returns false with a sentence in `why` and
 * none. Waits for two seconds at most. Thread-safe. */
bool gy_descriptors_take(const char *name, int32_t pid, uint64_t number, struct gy_descriptors *descriptors_p,
                         char *why, size_t why_bytes);

#endif
