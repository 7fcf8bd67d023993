/* What kind of memory a pointer names. A process that has not loaded the CUDA driver has host memory only; asking never
 * loads or initialises CUDA. */
#ifndef GY_CUDA_POINTER_H
#define GY_CUDA_POINTER_H

#include "cuda/driver.h"

enum gy_pointer_kind {
    GY_POINTER_HOST,    /* memory that CUDA does not know */
    GY_POINTER_PINNED,  /* host memory that CUDA has allocated or registered */
    GY_POINTER_MANAGED, /* memory that moves between host and devices */
    GY_POINTER_DEVICE,
};

struct gy_pointer {
    enum gy_pointer_kind kind;
    int device;                /* −1: GY_POINTER_HOST */
    unsigned long long buffer; /* the allocation's id, never used twice in a process; 0: GY_POINTER_HOST */
    uintptr_t base;            /* the allocation, or the range of virtual addresses that it is mapped in */
    size_t bytes;
};

/* Never fails: what CUDA does not know, or cannot tell about, is host memory. Thread-safe. */
struct gy_pointer gy_pointer_look(const void *address);
/* The ranges that this thread has cached are forgotten. For tests that replace the driver. */
void gy_pointer_forget(void);

#endif
