/* The kernel checks as a plain program: for machines without Criterion, and for emulators. */
#include <stdio.h>

#include "kernel_checks.h"

int main(void)
{
    int failed = 0;

#define RUN(name)                                              \
    {                                                          \
        const char *wrong = gy_check_##name();                 \
        printf("%-36s %s\n", #name, wrong ? wrong : "passed"); \
        fflush(stdout);                                        \
        failed += wrong != NULL;                               \
    }
    GY_KERNEL_CHECKS(RUN)
    return failed > 0;
}
