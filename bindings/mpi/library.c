#include "library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

struct gm_library gm_library;

static void *next(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (function)
        return function;
    fprintf(stderr, "gyre-mpi: the MPI library has no %s\n", name);
    abort();
}

__attribute__((constructor)) static void find(void)
{
#define GM_FIND(name, upper) *(void **)&gm_library.name = next("PMPI_" #name);
    GM_CALL_MAP(GM_FIND)
#undef GM_FIND
}
