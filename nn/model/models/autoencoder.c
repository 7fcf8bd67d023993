/* features – hidden[0] – … – hidden[n−1] – … – hidden[0] – features, against its own input: a deep autoencoder. Its
 * code, the narrowest layer, is linear. */
#include "base/require.h"
#include <gyre/nn.h>

gyre_status gyre_nn_autoencoder(size_t features, const size_t *hidden, size_t nhidden, gyre_nn_activation activation,
                                gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p)
{
    GY_NN_REQUIRE(model_p);
    if (nhidden > 0)
        GY_NN_REQUIRE(hidden);
    gyre_nn_layer *net = gyre_nn_input(features);
    for (size_t i = 0; i < nhidden; i++)
        net = gyre_nn_dense(net, hidden[i], i + 1 < nhidden ? activation : GYRE_NN_IDENTITY);
    for (size_t i = nhidden; i-- > 1;)
        net = gyre_nn_dense(net, hidden[i - 1], activation);
    return gyre_nn_new(gyre_nn_cost(net, features, GYRE_NN_RECONSTRUCTION), dtype, seed, model_p);
}
