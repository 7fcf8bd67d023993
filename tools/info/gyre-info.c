/* gyre-info: what this build of gyre is and what it finds on this machine. All lines come from the library. */
#include <stdbool.h>
#include <stdio.h>

#include <gyre/gyre.h>

#include "common/options.h"
#include "common/output.h"
#include "info/bug_report.h"

struct options {
    bool config, report;
};

static const struct argp_option table[] = {
    {"config", 'c', NULL, 0, "every setting with its default, unit and meaning", 0},
    {"bug-report", 'r', NULL, 0, "what a report of a fault needs: build, machine and settings, without secrets", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT: gy_options_init(state); return 0;
    case 'c': options->config = true; return 0;
    case 'r': options->report = true; return 0;
    case ARGP_KEY_ARG: gy_options_refuse("unexpected argument '%s'", text);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void print_line(void *user, const char *line)
{
    fprintf(user, "%s\n", line);
}

int main(int argc, char **argv)
{
    struct options options = {0};
    const struct argp argp = {
        .options = table,
        .parser = parse,
        .doc = "Shows gyre's version and build, the machine as gyre sees it, and each transport with the reason where "
               "it cannot be used.",
    };
    gy_options_parse("gyre-info", &argp, 0, argc, argv, &options);
    if (!options.report) /* which names what is wrong, too */
        gy_options_check_environment();
    if (options.report)
        gy_bug_report(stdout);
    else if (options.config)
        gyre_config_describe(print_line, stdout);
    else
        gyre_info(print_line, stdout);
    return gy_output_arrived("gyre-info", stdout, "the output") ? 0 : 1;
}
