/* A convolutional network in the manner of LeNet (LeCun et al., 1998), with batch norm: for each number of channels a
 * block, and dense layers on what is left of the image.
 *
 *     block:   convolution 3×3, padding 1, no bias ─ batch norm ─ relu ─ max pooling 2×2 */
#include "base/error.h"
#include "base/require.h"
#include <gyre/nn.h>

gyre_status gyre_nn_cnn(const struct gyre_nn_image *image, const size_t *channels, size_t nblocks, const size_t *hidden,
                        size_t nhidden, double dropout, size_t outputs, gyre_dtype dtype, uint64_t seed,
                        gyre_nn_model **model_p)
{
    GY_NN_REQUIRE(image, model_p);
    if (nblocks > 0)
        GY_NN_REQUIRE(channels);
    if (nhidden > 0)
        GY_NN_REQUIRE(hidden);
    size_t least = image->height < image->width ? image->height : image->width;
    if (nblocks >= sizeof(size_t) * 8 || least >> nblocks == 0)
        return gy_nn_fail(GYRE_INVALID_ARGUMENT,
                          "images of %zu×%zu pixels cannot be halved %zu times: take fewer blocks of channels",
                          image->height, image->width, nblocks);
    gyre_nn_layer *net = gyre_nn_input_image(image->height, image->width, image->channels);
    for (size_t i = 0; i < nblocks; i++) {
        net = gyre_nn_conv2d(net, channels[i], 3, 1, 1, false);
        net = gyre_nn_activate(gyre_nn_batch_norm(net), GYRE_NN_RELU);
        net = gyre_nn_max_pool2d(net, 2, 2);
    }
    net = gyre_nn_flatten(net);
    for (size_t i = 0; i < nhidden; i++) {
        net = gyre_nn_dense(net, hidden[i], GYRE_NN_RELU);
        if (dropout != 0)
            net = gyre_nn_dropout(net, dropout);
    }
    return gyre_nn_new(gyre_nn_cost(net, outputs, GYRE_NN_CROSS_ENTROPY), dtype, seed, model_p);
}
