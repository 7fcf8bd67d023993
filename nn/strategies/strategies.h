/* Every strategy of this library; a new one is a file and a line here and in run/strategy_registry.c. */
#ifndef GY_NN_STRATEGIES_H
#define GY_NN_STRATEGIES_H

#include <gyre/nn.h>

/* The settings of sync; and whether it goes ahead with such a value. The same answer on every rank. */
enum { GY_NN_SYNC_AHEAD };
bool gy_nn_sync_goes_ahead(double value, double clip_norm, gyre_comm *comm);

extern const gyre_nn_strategy gy_nn_sync, gy_nn_average, gy_nn_bmuf, gy_nn_easgd, gy_nn_admm, gy_nn_slowmo,
    gy_nn_diloco, gy_nn_deterministic, gy_nn_zero, gy_nn_compressed, gy_nn_pipeline, gy_nn_stale, gy_nn_async;

/* The choices of a setting that is a whole number: they have no names (gyre_nn_setting). */
static const char *const gy_nn_whole[] = {NULL};

#endif
