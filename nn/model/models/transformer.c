/* A decoder in the manner of GPT-2 (Radford et al., 2019): symbols and places → blocks → layer norm → the next symbol.
 *
 *     block:   x ─┬─ norm ─ attention ─ dropout ─ + ─┬─ norm ─ 4·width, gelu ─ width ─ dropout ─ + ─
 *                 └───────────────────────────────┘  └───────────────────────────────────────────┘ */
#include "base/error.h"
#include "base/require.h"
#include <gyre/nn.h>

#define MOST_BLOCKS 4096

static gyre_nn_layer *end_branch(gyre_nn_layer *net, const gyre_nn_layer *from, double dropout)
{
    if (dropout != 0)
        net = gyre_nn_dropout(net, dropout);
    return gyre_nn_residual(net, from);
}

static gyre_nn_layer *block(gyre_nn_layer *net, size_t width, size_t heads, double dropout)
{
    const gyre_nn_layer *from = net;
    net = end_branch(gyre_nn_attention(gyre_nn_layer_norm(net), heads, true), from, dropout);
    from = net;
    net = gyre_nn_dense(gyre_nn_layer_norm(net), 4 * width, GYRE_NN_GELU);
    return end_branch(gyre_nn_dense(net, width, GYRE_NN_IDENTITY), from, dropout);
}

gyre_status gyre_nn_transformer(size_t steps, size_t symbols, size_t width, size_t heads, size_t blocks, double dropout,
                                gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p)
{
    GY_NN_REQUIRE(model_p);
    if (blocks > MOST_BLOCKS)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT, "%zu blocks; at most %d are allowed", blocks, MOST_BLOCKS);
    gyre_nn_layer *net = gyre_nn_position(gyre_nn_embedding(gyre_nn_input_sequence(steps, 1), symbols, width));
    for (size_t i = 0; i < blocks; i++)
        net = block(net, width, heads, dropout);
    net = gyre_nn_layer_norm(net);
    return gyre_nn_new(gyre_nn_cost(net, symbols, GYRE_NN_CROSS_ENTROPY), dtype, seed, model_p);
}
