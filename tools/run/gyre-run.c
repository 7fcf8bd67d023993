/* gyre-run: starts N ranks of a program on this machine. The work is in launch.c; here is the command line. */
#include <string.h>

#include <gyre/gyre.h>

#include "common/options.h"
#include "run/launch.h"

enum { KEY_HOSTS = 256 };

static const struct argp_option table[] = {
    {"ranks", 'n', "N", 0, "number of ranks to start (required)", 0},
    {"np", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"label", 'l', NULL, 0, "begin each line of output with the rank that wrote it", 0},
    {"bind", 'b', NULL, 0, "keep rank i on the i-th usable core, counted round", 0},
    {"elastic", 'e', NULL, 0, "start a rank that fails again, to join the running world, and let the others go on", 0},
    {"min", 'm', "N", 0, "... as long as N of them are there (default 1)", 0},
    {"restarts", 'r', "N", 0, "... at most N times in a row for a rank (default 5)", 0},
    {"chaos", 'c', "SEED,RATE", 0, "kill and stop ranks and cut their connections at random, RATE times a second", 0},
    {"host", 'H', "HOSTS", OPTION_HIDDEN, NULL, 0},
    {"hosts", KEY_HOSTS, "HOSTS", OPTION_HIDDEN, NULL, 0},
    {"hostfile", KEY_HOSTS, "FILE", OPTION_HIDDEN, NULL, 0},
    {"machinefile", KEY_HOSTS, "FILE", OPTION_HIDDEN, NULL, 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct gy_launch *launch = state->input;
    switch (key) {
    case ARGP_KEY_INIT: gy_options_init(state); return 0;
    case 'n': launch->ranks = (int)gy_options_integer("-n", text, 1, GY_LAUNCH_RANKS_MOST); return 0;
    case 'l': launch->label = true; return 0;
    case 'b': launch->bind = true; return 0;
    case 'e': launch->elastic = true; return 0;
    case 'm': launch->least = (int)gy_options_integer("--min", text, 1, GY_LAUNCH_RANKS_MOST); return 0;
    case 'r': launch->restarts = (int)gy_options_integer("--restarts", text, 0, 1000000); return 0;
    case 'c':
        if (!gy_chaos_parse(text, &launch->chaos))
            gy_options_refuse("--chaos '%s' is no SEED,RATE, such as 7,0.5", text);
        return 0;
    case 'H':
    case KEY_HOSTS:
        gy_options_refuse("all ranks start on this machine: hosts are the business of mpirun, srun and torchrun, whose "
                          "ranks need no gyre-run");
    case ARGP_KEY_ARG: /* the program: everything behind it is its own */
        launch->path = text;
        launch->argv = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (launch->ranks == 0)
            gy_options_refuse("the number of ranks is missing: gyre-run -n N program");
        if (!launch->path)
            gy_options_refuse("the program to run is missing: gyre-run -n N program");
        if ((launch->least >= 0 || launch->restarts >= 0) && !launch->elastic)
            gy_options_refuse("--min and --restarts go with --elastic");
        if (launch->least > launch->ranks)
            gy_options_refuse("--min %d is more than the %d ranks of -n", launch->least, launch->ranks);
        launch->least = launch->least < 0 ? 1 : launch->least;
        launch->restarts = launch->restarts < 0 ? 5 : launch->restarts;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* "-np", as mpirun has it, becomes "-n". Only before the program, whose arguments are its own. */
static void accept_np(int argc, char **argv)
{
    static char plain[] = "-n";
    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-np") == 0)
            argv[i] = plain;
        i += strlen(argv[i]) == 2 && strchr("nmrcH", argv[i][1]) != NULL;
    }
}

int main(int argc, char **argv)
{
    struct gy_launch launch = {.tool = "gyre-run", .least = -1, .restarts = -1};
    const struct argp argp = {
        .options = table,
        .parser = parse,
        .args_doc = "-n N [--] PROGRAM [ARGUMENT...]",
        .doc = "Starts N ranks of PROGRAM on this machine, with the environment that torchrun gives: RANK, WORLD_SIZE, "
               "LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and with a secret of their own "
               "in a descriptor that they inherit (GYRE_SECRET_FILE). With --elastic a rank that fails is started "
               "again with GYRE_JOIN=1, after a pause that "
               "doubles from "
               "0.25 s to 10 s; ten seconds without a failure begin anew.\v"
               "When a rank fails, the others have two seconds to report, then they are ended; the last line says who "
               "failed and how. Exit status: 0, or that of the first rank that failed, 128 + the signal's number if it "
               "was killed, 126 or 127 if the program cannot be started, 2 for a wrong argument. With --elastic it is "
               "0 when a rank has "
               "ended with 0, else that of the last one to fail.",
    };
    accept_np(argc, argv);
    gy_options_parse("gyre-run", &argp, ARGP_IN_ORDER, argc, argv, &launch);
    gy_options_check_environment();
    return gy_launch_run(&launch);
}
