#include "run/rank_end.h"

#include <stdio.h>
#include <string.h>

const char *gy_rank_end_describe(const struct gy_rank_end *end, char *text, size_t bytes)
{
    if (end->by_signal)
        snprintf(text, bytes, "was killed by signal %d (%s)", end->status, strsignal(end->status));
    else
        snprintf(text, bytes, "ended with exit status %d", end->status);
    return text;
}

int gy_rank_end_status(const struct gy_rank_end *end)
{
    return end->by_signal ? 128 + end->status : end->status;
}
