/* What tools print: the build, the machine, the transports and why one is missing. */
#include <stdio.h>

#include "collectives/comm/communicator.h"
#include "collectives/select/selector.h"
#include "core/config.h"
#include "core/topology.h"
#include "cuda/device.h"
#include "cuda/image.h"
#include "transport/registry/registry.h"

#ifdef __clang__
#define GY_COMPILER __VERSION__ /* names clang itself */
#else
#define GY_COMPILER "GCC " __VERSION__
#endif

void gyre_info(gyre_print_func print, void *user)
{
    char line[256];
    struct gy_config config;
    struct gy_error error = {.quiet = true};
    if (!print)
        return;
    snprintf(line, sizeof(line), "gyre %s, wire version %d, built with " GY_COMPILER, gyre_version(), GY_WIRE_VERSION);
    print(user, line);
    gy_topology_describe(print, user);
    for (int t = 0; gy_transports[t]; t++) {
        char why[160] = "";
        bool there = gy_transports[t]->available(why, sizeof(why));
        snprintf(line, sizeof(line), "transport %s: %s%s", gy_transports[t]->name,
                 there ? "built in" : "unavailable: ", why);
        print(user, line);
    }
    bool is_read = gy_config_read(&config, &error) == GYRE_SUCCESS;
    if (is_read)
        gy_transports_describe(&config, print, user);
    gy_devices_describe(print, user);
    gy_image_describe(is_read ? config.cuda_kernels : "", print, user);
}

void gyre_config_describe(gyre_print_func print, void *user)
{
    if (print)
        gy_config_describe(print, user);
}

gyre_status gyre_config_check(char *text, size_t text_bytes)
{
    struct gy_config config;
    struct gy_error error = {.quiet = true};
    gyre_status status = gy_config_read_strict(&config, &error);
    if (status == GYRE_SUCCESS)
        status = gy_transports_check(config.transports, &error);
    if (status == GYRE_SUCCESS)
        status = gy_select_check(config.algorithm, &error);
    if (text && text_bytes > 0)
        snprintf(text, text_bytes, "%s", error.text);
    return status;
}
