/* What fuzzers have in common: libFuzzer's entry, a check that sanitizers and replay.c see fail, and callbacks for what
 * an input is free to cause. */
#ifndef GYRE_TESTS_FUZZ_FUZZ_H
#define GYRE_TESTS_FUZZ_FUZZ_H

#include <gyre/gyre.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct gy_stream;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void check(bool holds)
{
    if (!holds)
        abort();
}

/* gyre_log_set: what is refused is logged, millions of times. */
static inline void ignore_log(void *user, gyre_log_level level, const char *text)
{
    (void)user;
    (void)level;
    (void)text;
}

/* gy_stream_open: the other side may hang up. */
static inline void ignore_end(void *user, struct gy_stream *stream, int errnum)
{
    (void)user;
    (void)stream;
    (void)errnum;
}

#endif
