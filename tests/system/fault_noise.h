/* How late a process gets its core that has nothing to do with gyre. */
#ifndef GYRE_TESTS_SYSTEM_FAULT_NOISE_H
#define GYRE_TESTS_SYSTEM_FAULT_NOISE_H

#include <stdint.h>
#include <sys/types.h>

/* The control: processes, one pinned to each of the first cores, that do nothing but sleep a millisecond at a time,
 * from begin to end. */
void fault_noise_begin(void);
void fault_noise_end(void);
/* By how much the worst of their sleeps between two times was too long; waits until they have all passed `to`. */
int64_t fault_noise(int64_t from, int64_t to);

/* What a process has had of the cores since it began, and how long it wanted one while others had them. */
struct fault_turns {
    int64_t used_ns, waited_ns;
};
/* Of one that has not been waited for; zero where the kernel does not say. */
struct fault_turns fault_turns_of(pid_t pid);

#endif
