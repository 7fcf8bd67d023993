/* Learning rates: a pure function of the schedule and the step, so a resumed run needs no state of it. */
#include "base/require.h"
#include <gyre/nn.h>
#include <math.h>

double gyre_nn_schedule_rate(const struct gyre_nn_schedule *schedule, uint64_t step)
{
    GY_NN_REQUIRE_OR(NAN, schedule);
    if (step < schedule->warmup)
        return schedule->rate * (double)(step + 1) / (double)schedule->warmup;
    uint64_t after = step - schedule->warmup;
    switch (schedule->kind) {
    case GYRE_NN_STEP: {
        uint64_t stairs = schedule->every ? after / schedule->every : 0;
        return schedule->rate * pow(schedule->factor, (double)stairs);
    }
    case GYRE_NN_COSINE: {
        if (schedule->total <= schedule->warmup || step >= schedule->total)
            return schedule->floor;
        double part = (double)after / (double)(schedule->total - schedule->warmup);
        return schedule->floor + (schedule->rate - schedule->floor) * (1 + cos(3.14159265358979323846 * part)) / 2;
    }
    default: return schedule->rate;
    }
}
