#include "pace.h"

#include <stdint.h>

#include "arena.h"
#include "samples.h"

#define TRIES 25
#define LINKS 400
#define ROUNDS 400
#define ADDITIONS 8 /* of a round: more than any core makes at once */

/* The compiler neither joins what stands before with what stands behind, nor knows the value. */
#define KEEP(a, b, c, d) __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d))

static double chain_ns(void)
{
    uint64_t value = 3, x = 0, y = 0, z = 0;
    int64_t begin = gy_now();
    for (int i = 0; i < LINKS; i++) {
        value *= value;
        KEEP(value, x, y, z);
    }
    return (double)(gy_now() - begin) / LINKS;
}

static double work_ns(void)
{
    uint64_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0, step = 3, x = 0, y = 0, z = 0;
    KEEP(step, x, y, z); /* in a register: some processors add a constant for nothing */
    int64_t begin = gy_now();
    for (int i = 0; i < ROUNDS; i++) {
        a += step, b += step, c += step, d += step, e += step, f += step, g += step, h += step;
        KEEP(a, b, c, d);
        KEEP(e, f, g, h);
    }
    return (double)(gy_now() - begin) / ROUNDS / ADDITIONS;
}

struct gy_pace gy_pace_measure(void)
{
    double chain[TRIES], work[TRIES];
    for (int i = 0; i < TRIES; i++) {
        chain[i] = chain_ns();
        work[i] = work_ns();
    }
    return (struct gy_pace){gy_samples_quantile(chain, TRIES, 0.5), gy_samples_quantile(work, TRIES, 0.5)};
}
