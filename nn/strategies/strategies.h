/* Every strategy of this library; a new one is a file and a line here and in strategy.c. */
#ifndef GY_NN_STRATEGIES_H
#define GY_NN_STRATEGIES_H

#include <gyre/nn.h>

extern const gyre_nn_strategy gy_nn_sync, gy_nn_average, gy_nn_bmuf, gy_nn_easgd, gy_nn_admm, gy_nn_slowmo,
    gy_nn_diloco, gy_nn_deterministic, gy_nn_zero, gy_nn_compressed, gy_nn_pipeline, gy_nn_stale, gy_nn_async;

#endif
