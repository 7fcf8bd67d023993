/* Memory that processes share through a descriptor. Its pages are reserved before they are touched, so that a host without
 * room is an error and no SIGBUS. */
#ifndef GY_CORE_MEMFD_H
#define GY_CORE_MEMFD_H

#include "base.h"

/* A sparse one of `bytes` bytes that can be sealed; −1 and errno. EFBIG: the process may have no file of that size
 * (ulimit -f), which the kernel would punish by SIGXFSZ. */
int gy_memfd_make(const char *name, uint64_t bytes);
/* Whole pages in [offset, offset + bytes), which keep what is in them; grows a descriptor that ends before, within the same
 * limit. 0, or an errno. Signals are held back for the time of it where they would keep it from its end. */
int gy_memfd_reserve(int fd, uint64_t offset, uint64_t bytes);

#endif
