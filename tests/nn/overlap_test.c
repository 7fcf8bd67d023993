/* A hidden fraction that says what it seems to say stands alone; any other stands with its reason. */
#include "overlap.h"

#include <criterion/criterion.h>
#include <string.h>

/* Milliseconds: a step of 30, of it backward 20, with an update of 1. */
static struct gyre_nn_overlap measured(double communication, double overlapped)
{
    struct gyre_nn_overlap o = {.compute = 0.030, .backward = 0.020, .communication = communication / 1e3, .rounds = 5};
    o.serial = 0.031 + o.communication;
    o.overlapped = overlapped / 1e3;
    o.hidden = (o.serial - o.overlapped) / (o.communication < o.backward ? o.communication : o.backward);
    o.hidden_low = o.hidden - 0.1;
    o.hidden_high = o.hidden + 0.1;
    return o;
}

static void doubted(const struct gyre_nn_overlap *o, const char *why)
{
    const char *doubt = overlap_doubt(o);
    cr_assert(doubt && strstr(doubt, why), "%.2f: '%s' instead of '%s'", o->hidden, doubt ? doubt : "", why);
}

Test(overlap, a_fraction_that_can_be_read_stands_alone)
{
    struct gyre_nn_overlap half = measured(10, 36), all = measured(20, 31.01), none = measured(10, 41);
    cr_assert_null(overlap_doubt(&half), "%s", overlap_doubt(&half));
    cr_assert_null(overlap_doubt(&all));
    cr_assert_null(overlap_doubt(&none));
}

Test(overlap, behind_forward_too)
{
    struct gyre_nn_overlap o = measured(28, 33);
    cr_assert_float_eq(o.hidden, 1.3, 1e-9);
    doubted(&o, "hides behind the next forward too");
}

Test(overlap, more_than_there_is)
{
    struct gyre_nn_overlap short_one = measured(10, 27.1), long_one = measured(100, 70);
    cr_assert_float_eq(short_one.hidden, 1.39, 1e-9);
    doubted(&short_one, "more than there is to hide");
    doubted(&long_one, "more than there is to hide"); /* 61 ms behind 31 of computation */
}

Test(overlap, less_than_nothing)
{
    struct gyre_nn_overlap o = measured(10, 43);
    doubted(&o, "below 0");
}

Test(overlap, quartiles_far_apart)
{
    struct gyre_nn_overlap o = measured(10, 36);
    o.hidden_high = o.hidden_low + 0.6;
    doubted(&o, "too busy to tell");
}
