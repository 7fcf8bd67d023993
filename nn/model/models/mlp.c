/* A multi-layer perceptron: dense layers with one activation, and cross entropy on top. Written with public calls
 * only. */
#include "base/require.h"
#include <gyre/nn.h>

gyre_status gyre_nn_mlp(size_t features, const size_t *hidden, size_t nhidden, gyre_nn_activation activation,
                        size_t outputs, gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p)
{
    GY_NN_REQUIRE(model_p);
    if (nhidden > 0)
        GY_NN_REQUIRE(hidden);
    gyre_nn_layer *top = gyre_nn_input(features);
    for (size_t i = 0; i < nhidden; i++)
        top = gyre_nn_dense(top, hidden[i], activation);
    return gyre_nn_new(gyre_nn_cost(top, outputs, GYRE_NN_CROSS_ENTROPY), dtype, seed, model_p);
}
