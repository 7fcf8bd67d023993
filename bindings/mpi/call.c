#include "call.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *const names[GM_CALLS] = {
#define GM_CALL_NAME(name, upper) #name,
    GM_CALL_MAP(GM_CALL_NAME)
#undef GM_CALL_NAME
};

const char *gm_call_name(enum gm_call call)
{
    return names[call];
}

static unsigned bit_of(const char *name, size_t length)
{
    for (unsigned call = 0; call < GM_CALLS; call++)
        if (strlen(names[call]) == length && strncasecmp(names[call], name, length) == 0)
            return 1u << call;
    fprintf(stderr, "gyre-mpi: GYREMPI_PASS: no collective call is named '%.*s'\n", (int)length, name);
    return 0;
}

unsigned gm_call_mask(const char *passed)
{
    unsigned mask = (1u << GM_CALLS) - 1;
    while (passed && *passed) {
        size_t length = strcspn(passed, ",");
        if (length > 0)
            mask &= ~bit_of(passed, length);
        passed += length;
        passed += *passed == ',';
    }
    return mask;
}
