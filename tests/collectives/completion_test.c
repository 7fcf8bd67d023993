/* Uniform ends without the links that they need, as where there was no memory for one: the operation waits, for the
 * world, which has been told, is about to end. */
#include <criterion/criterion.h>

#include "collectives/lifecycle/uniform_completion.h"

Test(completion, results_are_not_spread_without_links)
{
    static struct gy_channel *channels[3];
    static struct gyre_comm comm = {
        .size = 3, .region = -1, .channels = channels, .completion = {.started = 1, .complete = 1}};
    static struct gyre_request request = {.comm = &comm, .completion = 1, .phase = GY_CONFIRMS};
    cr_assert_not(gy_uniform_advance(&request));
    cr_assert_not(request.complete);
}
