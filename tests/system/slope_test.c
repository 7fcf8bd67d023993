/* Bandwidths of gyre-tune from times that another process on the machine has disturbed: tools/common/link_model.h. */
#include "common/slope.h"

#include "support/rank.h"

static double slope(double shorter, double longer)
{
    return gy_slope((struct gy_timed){2e6, shorter}, (struct gy_timed){10e6, longer});
}

static bool is(double value, double wanted)
{
    return value > 0.999 * wanted && value < 1.001 * wanted;
}

int main(void)
{
    CHECK(is(slope(2e-3, 10e-3), 1e9));
    CHECK(is(slope(3e-3, 11e-3), 1e9));            /* a millisecond each is no bandwidth */
    CHECK(is(slope(1e-3, 17e-3), 5e8));            /* beyond the caches it is slower: by what comes on top */
    CHECK(is(slope(5.9e-3, 10e-3), 8e6 / 4.1e-3)); /* about the least difference that is believed */
    CHECK(is(slope(9e-3, 10e-3), 1e9));            /* disturbed */
    CHECK(is(slope(10e-3, 10e-3), 1e9));           /* no time at all, which would be no number */
    CHECK(is(slope(50e-3, 10e-3), 1e9));
    return 0;
}
