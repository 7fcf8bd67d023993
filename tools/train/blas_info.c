/* An OpenBLAS that is older than the processor does not recognise its number. It then uses kernels of 2004, SSE3,
 * whatever the processor could do. OpenBLAS 0.3.21 of Debian 12 does so on Emerald Rapids, at a third of the speed.
 * OpenBLAS reads its choice of kernels from OPENBLAS_CORETYPE once, when it is loaded. So if it fell back on a
 * processor with AVX2 or AVX-512, the program executes itself again with that variable set. A value that the user
 * has set stays. */
#include "train/blas_info.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FALLBACK "Prescott"

void kernels_choose(char **argv)
{
#ifdef __x86_64__
    void *symbol = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    char *(*corename)(void);
    if (!symbol || getenv("OPENBLAS_CORETYPE"))
        return;
    memcpy(&corename, &symbol, sizeof(corename));
    if (strcmp(corename(), FALLBACK) != 0 || !__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return;
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                __builtin_cpu_supports("avx512cd");
    char path[4096]; /* of the file: started as /proc/self/exe, the program would be called "exe" in top and pgrep */
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (length < 0 || setenv("OPENBLAS_CORETYPE", wide ? "SkylakeX" : "Haswell", 1) != 0)
        return;
    path[length] = '\0';
    execv(path, argv); /* if exec fails, the run goes on with the kernels at hand */
#else
    (void)argv;
#endif
}
