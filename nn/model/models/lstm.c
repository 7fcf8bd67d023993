/* symbols → vectors → lstm → … → lstm → the next symbol, at every step: a character model. */
#include "base/require.h"
#include <gyre/nn.h>

gyre_status gyre_nn_character_lstm(size_t steps, size_t symbols, size_t width, const size_t *hidden, size_t nhidden,
                                   double dropout, gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p)
{
    GY_NN_REQUIRE(model_p);
    if (nhidden > 0)
        GY_NN_REQUIRE(hidden);
    gyre_nn_layer *net = gyre_nn_embedding(gyre_nn_input_sequence(steps, 1), symbols, width);
    for (size_t i = 0; i < nhidden; i++) {
        net = gyre_nn_lstm(net, hidden[i]);
        if (dropout != 0)
            net = gyre_nn_dropout(net, dropout);
    }
    return gyre_nn_new(gyre_nn_cost(net, symbols, GYRE_NN_CROSS_ENTROPY), dtype, seed, model_p);
}
