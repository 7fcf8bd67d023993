/* The places of a window on an image: what convolution and pooling have in common. */
#include "base/error.h"
#include "model/modules/module.h"

static bool refuse(const struct gy_nn_module *module, size_t height, size_t width)
{
    size_t kernel = module->config.kernel;
    gy_nn_fail(GYRE_INVALID_ARGUMENT, "a %s of %zu×%zu pixels has no place on images of %zu×%zu with a padding of %zu",
               module->ops->name, kernel, kernel, height, width, module->config.padding);
    return false;
}

struct gy_nn_window gy_nn_window_of(const struct gy_nn_module *module)
{
    const struct gy_nn_config *config = &module->config;
    struct gy_nn_window window = {
        .height = module->in.height,
        .width = module->in.time / module->in.height,
        .channels = module->in.features,
        .kernel = config->kernel,
        .stride = config->stride,
        .padding = config->padding,
    };
    window.rows = (window.height + 2 * config->padding - config->kernel) / config->stride + 1;
    window.cols = (window.width + 2 * config->padding - config->kernel) / config->stride + 1;
    return window;
}

bool gy_nn_plan_window(struct gy_nn_module *module, size_t channels)
{
    size_t height = module->in.height, kernel = module->config.kernel, padded = 2 * module->config.padding;
    if (height == 0) {
        gy_nn_fail(GYRE_INVALID_ARGUMENT, "a %s needs an image below it: its input is %zu steps of %zu values",
                   module->ops->name, module->in.time, module->in.features);
        return false;
    }
    size_t width = module->in.time / height;
    if (kernel > height + padded || kernel > width + padded)
        return refuse(module, height, width);
    struct gy_nn_window window = gy_nn_window_of(module);
    module->out = (struct gy_nn_shape){.time = window.rows * window.cols, .features = channels, .height = window.rows};
    return true;
}
