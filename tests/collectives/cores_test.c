/* Which ranks of a host share a core (collectives/engine/core_affinity.h), and how long a rank that waits for one of
 * them polls before it yields (collectives/engine/spin.h). */
#include <criterion/criterion.h>
#include <sched.h>

#include "collectives/engine/core_affinity.h"
#include "collectives/engine/spin.h"

static struct gy_region_control control[2];
static struct gy_region_control *controls[2] = {&control[0], &control[1]};
static struct gy_context ctx = {.oversubscribed = true, .config.spin_ns = -1};
static struct gyre_comm comms[2] = {{.ctx = &ctx, .size = 2, .control = controls},
                                    {.ctx = &ctx, .size = 2, .rank = 1, .control = controls}};

static void go_to(size_t core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    cr_assert_eq(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* Another one that this process may use; CPU_SETSIZE: there is none. */
static size_t other_than(size_t core)
{
    cpu_set_t usable;
    cr_assert_eq(sched_getaffinity(0, sizeof(usable), &usable), 0);
    size_t other = 0;
    while (other < CPU_SETSIZE && (other == core || !CPU_ISSET(other, &usable)))
        other++;
    return other;
}

static void expect_both(bool same, bool apart)
{
    for (int rank = 0; rank < 2; rank++) {
        cr_expect_eq(gy_cores_same(&comms[rank], 1 - rank), same);
        cr_expect_eq(gy_cores_apart(&comms[rank], 1 - rank), apart);
    }
}

/* Known where ranks share cores, of ranks that have told. */
Test(cores, ranks_of_one_core_know_one_another)
{
    size_t here = (size_t)sched_getcpu(), elsewhere = other_than(here);
    expect_both(false, false);
    go_to(here);
    gy_cores_show(&comms[0]);
    expect_both(false, false);
    gy_cores_show(&comms[1]);
    expect_both(true, false);
    if (elsewhere == CPU_SETSIZE)
        return;
    go_to(elsewhere);
    gy_cores_show(&comms[0]);
    expect_both(false, true);
    ctx.oversubscribed = false;
    gy_cores_show(&comms[1]);
    expect_both(false, true);
}

static unsigned looks_of(struct gy_spin patience)
{
    return patience.spins;
}

/* By what they have shown, wherever this test runs. */
Test(cores, ranks_on_other_cores_are_polled_longer)
{
    unsigned usual = looks_of(gy_spin_of(&ctx));
    cr_expect_eq(looks_of(gy_spin_for(&comms[0], 1)), usual, "nobody has told");
    control[0].core = 1;
    cr_expect_eq(looks_of(gy_spin_for(&comms[0], 1)), usual, "the other has not told");
    control[1].core = 1;
    cr_expect_eq(looks_of(gy_spin_for(&comms[0], 1)), usual, "it needs this core");
    control[1].core = 2;
    cr_expect_gt(looks_of(gy_spin_for(&comms[0], 1)), usual);
    cr_expect_eq(looks_of(gy_spin_for(&comms[0], -1)), usual, "more than one is waited for");
    ctx.config.spin_ns = 0;
    cr_expect_eq(looks_of(gy_spin_for(&comms[0], 1)), usual, "whoever asks for it gives way at once");
    ctx.config.spin_ns = -1;
    ctx.oversubscribed = false;
    cr_expect_eq(looks_of(gy_spin_for(&comms[0], 1)), looks_of(gy_spin_of(&ctx)));
}
