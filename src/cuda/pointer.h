/* The kind of memory that an address lies in. In a process that has not loaded the CUDA driver all memory is host
 * memory. A look-up never loads or initialises CUDA. */
#ifndef GY_CUDA_POINTER_H
#define GY_CUDA_POINTER_H

#include "cuda/driver.h"

enum gy_pointer_kind {
    GY_POINTER_HOST,    /* host memory that CUDA has neither allocated nor registered */
    GY_POINTER_PINNED,  /* host memory that CUDA has allocated or registered */
    GY_POINTER_MANAGED, /* managed memory: the driver migrates it between host and devices */
    GY_POINTER_DEVICE,
};

struct gy_pointer {
    enum gy_pointer_kind kind;
    int device;                /* −1: GY_POINTER_HOST */
    unsigned long long buffer; /* the driver's buffer id of the allocation, unique in a process; 0: GY_POINTER_HOST */
    uintptr_t base;            /* start of the allocation, or of the range of virtual addresses that it is mapped in */
    size_t bytes;
};

/* Never fails: an address that the driver does not know, or gives an error for, is host memory. Thread-safe. */
struct gy_pointer gy_pointer_look(const void *address);
/* Empties this thread's cache of ranges. For tests that replace the driver. */
void gy_pointer_forget(void);

#endif
