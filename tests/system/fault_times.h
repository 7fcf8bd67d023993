/* How long the survivors took, and how much of that was the machine's. */
#ifndef GYRE_TESTS_SYSTEM_FAULT_TIMES_H
#define GYRE_TESTS_SYSTEM_FAULT_TIMES_H

#include <stdbool.h>
#include <stdint.h>

#define FAULT_DEADLINE_NS INT64_C(100000000)

/* Counts one detection. False: it took more than a survivor may take while sleepers came `noise_ns` late, and the
 * processes that passed it on had to wait `waited_ns` for a core that others had. */
bool fault_times_count(int64_t took_ns, int64_t noise_ns, int64_t waited_ns);
/* The same detection, from when the victim's process had ended, which is for the kernel to bring about. Only
 * printed. */
void fault_times_count_end(int64_t took_ns);
/* How many were counted. */
uint64_t fault_times_counted(void);
void fault_times_print(const char *what);

#endif
