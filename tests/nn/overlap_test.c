/* Shares that mean something are given; else the reason is. */
#include "train/overlap.h"

#include <criterion/criterion.h>
#include <string.h>

/* Milliseconds: a step of 30 and an update of 1; what communication can hide behind is 31. */
static struct gyre_nn_overlap measured(double communication, double overlapped)
{
    struct gyre_nn_overlap o = {.compute = 0.030, .backward = 0.020, .communication = communication / 1e3, .rounds = 5};
    o.serial = 0.031 + o.communication;
    o.overlapped = overlapped / 1e3;
    o.hidden = (o.serial - o.overlapped) / o.communication;
    o.hidden_low = o.hidden - 0.1;
    o.hidden_high = o.hidden + 0.1;
    return o;
}

static void doubted(const struct gyre_nn_overlap *o, const char *why)
{
    const char *doubt = overlap_doubt(o);
    cr_assert(doubt && strstr(doubt, why), "%.2f: '%s' instead of '%s'", o->hidden, doubt ? doubt : "", why);
}

Test(overlap, shares_of_what_is_hidden)
{
    struct gyre_nn_overlap half = measured(10, 36), all = measured(20, 31.01), none = measured(10, 41),
                           bound = measured(62, 72);
    cr_assert_null(overlap_doubt(&half), "%s", overlap_doubt(&half));
    cr_assert_null(overlap_doubt(&all));
    cr_assert_null(overlap_doubt(&none));
    cr_assert_float_eq(half.hidden, 0.5, 1e-9);
    cr_assert_float_eq(overlap_of_possible(&half), 0.5, 1e-9);
    cr_assert_null(overlap_doubt(&bound)); /* 62 ms of communication, of which 31 could hide, and 21 do */
    cr_assert_float_eq(bound.hidden, 21.0 / 62, 1e-9);
    cr_assert_float_eq(overlap_of_possible(&bound), 21.0 / 31, 1e-9);
}

Test(overlap, more_than_there_is)
{
    struct gyre_nn_overlap short_one = measured(10, 27.1), long_one = measured(100, 70);
    doubted(&short_one, "more was saved than there is to hide");
    doubted(&long_one, "more was saved than there is to hide"); /* 61 ms behind 31 of computation */
}

Test(overlap, less_than_nothing)
{
    struct gyre_nn_overlap o = measured(10, 43);
    doubted(&o, "took longer than steps that wait");
}

Test(overlap, quartiles_far_apart)
{
    struct gyre_nn_overlap o = measured(10, 36);
    o.hidden_high = o.hidden_low + 0.6;
    doubted(&o, "too busy to tell");
}
