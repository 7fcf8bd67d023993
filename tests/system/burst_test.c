/* What gyre-tune takes for a shaper's burst, and for none: tools/burst.h. */
#include "common/burst.h"

#include "support/rank.h"

/* Of a message of 64 KiB at 24 MB/s; one without bytes takes 50 us. */
static double burst(double seconds)
{
    return gy_burst((struct gy_timed){65536, seconds}, 50e-6, 24e6);
}

static bool is(double value, double wanted)
{
    return value > 0.999 * wanted && value < 1.001 * wanted;
}

int main(void)
{
    CHECK(is(burst(50e-6 + 32768 / 24e6), 32768)); /* half of it took no time */
    CHECK(is(burst(60e-6), 65536 - 240));
    CHECK(burst(50e-6) <= 65536 && burst(40e-6) <= 65536); /* all of it, and no more than that */
    CHECK(burst(50e-6 + 65536 / 24e6) == 0);               /* no shaper */
    CHECK(burst(50e-6 + 65536 / 26e6) == 0);               /* a bandwidth that is 8 % off makes none */
    CHECK(burst(9e-3) == 0);                               /* disturbed */
    return 0;
}
