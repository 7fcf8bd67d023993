/* Memory that processes share through a descriptor. Its pages are reserved before use, so that a host without free
 * memory causes an error and no SIGBUS. */
#ifndef GY_CORE_MEMFD_H
#define GY_CORE_MEMFD_H

#include "base.h"

/* A sparse one of `bytes` bytes that can be sealed; −1 and errno. EFBIG: the process may have no file of that size
 * (ulimit -f), which the kernel would punish by SIGXFSZ. */
int gy_memfd_make(const char *name, uint64_t bytes);
/* Reserves the pages of [offset, offset + bytes), which keep their contents. Extends a shorter file, within the same
 * limit. Returns 0, or an errno. Signals are blocked meanwhile where they would interrupt it for ever. */
int gy_memfd_reserve(int fd, uint64_t offset, uint64_t bytes);

#endif
