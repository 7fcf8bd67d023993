/* Every strategy of this library; a new one is a file and a line here and in strategy.c. */
#ifndef GY_NN_STRATEGIES_H
#define GY_NN_STRATEGIES_H

#include <gyre/nn.h>

extern const gyre_nn_strategy gy_nn_sync;

#endif
