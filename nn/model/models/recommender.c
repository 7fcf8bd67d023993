/* The compound recommender: predicts the next item from a session and from the features of its user.
 *
 *     session   items → vectors ─┬─ lstm ─ + ─────────────────────────┐ a state after each item
 *                                └─────────┘                          ├─ norm ─ attention ─ of the profile ─ next item
 *     features  ─┬─ dense ─ code ─┬───────────────────── profile ─────┘ one step more
 *                │                └─ dense ─ dense ─ reconstruction, a second cost
 *                └───────────────────────────────────┘
 *
 * A sample is `steps` numbers of items followed by `features` sparse features. The autoencoder (Hinton and
 * Salakhutdinov, 2006) makes a dense profile of the features. In the attention (Vaswani et al., 2017) the profile is
 * the query, and the states of the session are the keys: the LSTM's states, with the item itself added. Its weights
 * tell on what the answer rests. The two branches depend only on the input, so a pipeline computes them side by
 * side. */
#include "base/require.h"
#include <gyre/nn.h>

gyre_status gyre_nn_recommender(size_t steps, size_t items, size_t features, size_t width, size_t hidden, size_t heads,
                                gyre_dtype dtype, uint64_t seed, gyre_nn_model **model_p)
{
    GY_NN_REQUIRE(model_p);
    gyre_nn_layer *input = gyre_nn_input(steps + features), *net = gyre_nn_slice(input, input, 0, steps, 1);
    net = gyre_nn_embedding(net, items, width);
    const gyre_nn_layer *vectors = net;
    net = gyre_nn_residual(gyre_nn_lstm(net, width), vectors);
    const gyre_nn_layer *session = net;
    net = gyre_nn_slice(net, input, steps, 1, features);
    const gyre_nn_layer *known = net;
    net = gyre_nn_dense(net, hidden, GYRE_NN_RELU);
    net = gyre_nn_dense(net, width, GYRE_NN_IDENTITY);
    const gyre_nn_layer *code = net;
    net = gyre_nn_dense(net, hidden, GYRE_NN_RELU);
    net = gyre_nn_dense(net, features, GYRE_NN_IDENTITY);
    net = gyre_nn_reconstruct(net, code, known);
    net = gyre_nn_attention(gyre_nn_layer_norm(gyre_nn_join(net, session)), heads, false);
    net = gyre_nn_slice(net, net, 0, 1, width); /* the profile's step is the first */
    return gyre_nn_new(gyre_nn_cost(net, items, GYRE_NN_CROSS_ENTROPY), dtype, seed, model_p);
}
