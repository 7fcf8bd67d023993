/* How often the progress thread, which shares its core with a program that computes, looks at links on which nothing
 * moves before it sleeps; and how often a caller that waits does. */
#include <criterion/criterion.h>

#include "collectives/engine/progress.h"
#include "collectives/engine/request.h"
#include "collectives/events/upcalls.h"
#include "core/clock.h"
#include "transport/link.h"

static int looked, slept;
static struct gy_link link;
static struct gy_peer peers[1] = {{.link = &link}};
static struct gy_world world = {.size = 1};
static int linked[1];
static struct gy_context ctx = {
    .up = &gy_upcalls, .world = &world, .peers = peers, .linked = linked, .links = 1, .windows = 1};

static bool progress(struct gy_link *at)
{
    (void)at;
    looked++;
    return false;
}

/* The linker puts these in front. */
bool __wrap_gy_overlay_calm(const struct gy_overlay *overlay);
gyre_status __wrap_gy_overlay_check(struct gy_overlay *overlay, struct gy_error *error);
void __wrap_gy_progress_sleep(struct gy_context *context, int64_t timeout_ns);

bool __wrap_gy_overlay_calm(const struct gy_overlay *overlay)
{
    (void)overlay;
    return true;
}

gyre_status __wrap_gy_overlay_check(struct gy_overlay *overlay, struct gy_error *error)
{
    (void)overlay, (void)error;
    return GYRE_SUCCESS;
}

void __wrap_gy_progress_sleep(struct gy_context *context, int64_t timeout_ns)
{
    (void)timeout_ns;
    slept++;
    context->progress_lock.stop = true;
}

static bool has_slept(const void *what)
{
    (void)what;
    return slept > 0;
}

Test(progress, the_thread_sleeps_soon, .timeout = 20)
{
    static const struct gy_transport_ops ops = {.progress = progress};
    ctx.ops[0] = &ops;
    ctx.progressed_at = gy_now() + 60 * GY_SECOND; /* no slow turn, which asks the kernel */
    gy_drive(&ctx);
    cr_assert_eq(slept, 1);
    cr_expect_leq(looked, 3, "%d looks", looked);
    looked = slept = 0;
    ctx.config.spin_ns = 0;
    gy_wait_until(&ctx, has_slept, NULL);
    cr_expect_geq(looked, 64, "%d looks of a caller", looked);
}
