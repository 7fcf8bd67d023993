/* gyre-run: starts the ranks of a program on this machine or on several. The work is in launch.c and hosts_job.c; here
 * is the command line. */
#include <stdlib.h>
#include <string.h>

#include <gyre/gyre.h>

#include "common/options.h"
#include "run/agent.h"
#include "run/gpu_list.h"
#include "run/hosts_job.h"
#include "run/launch.h"

enum { KEY_HOSTFILE = 256, KEY_SSH, KEY_AGENT, KEY_GPUS };

struct settings {
    struct gy_launch launch;
    struct gy_hosts hosts;
    bool agent;
};

static const struct argp_option table[] = {
    {"ranks", 'n', "N", 0, "number of ranks to start (required, unless hosts are given)", 0},
    {"np", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"label", 'l', NULL, 0, "begin each line of output with the rank that wrote it", 0},
    {"bind", 'b', NULL, 0, "keep rank i on the i-th usable core, counted round", 0},
    {"gpus", KEY_GPUS, "auto|none|LIST", 0,
     "let rank i see the i-th GPU alone, counted round: of those that are there, or of a list (0,1,...); none: no GPU",
     0},
    {"elastic", 'e', NULL, 0, "start a rank that fails again, to join the running world, and let the others go on", 0},
    {"min", 'm', "N", 0, "... as long as N of them are there (default 1)", 0},
    {"restarts", 'r', "N", 0, "... at most N times in a row for a rank (default 5)", 0},
    {"chaos", 'c', "SEED,RATE", 0, "kill and stop ranks and cut their connections at random, RATE times a second", 0},
    {"hosts", 'H', "HOST:N,...", 0, "start the ranks on these hosts over ssh, N on each (1 without a number)", 0},
    {"host", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"hostfile", KEY_HOSTFILE, "FILE", 0, "... on the hosts of a file, each a line 'HOST slots=N' or 'HOST:N'", 0},
    {"machinefile", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"export", 'x', "NAME[=VALUE]", 0, "... with this variable of the environment, beside those named GYRE_*", 0},
    {"ssh", KEY_SSH, "COMMAND", 0, "... by this command instead of ssh", 0},
    {"agent", KEY_AGENT, NULL, OPTION_HIDDEN, NULL, 0},
    {0},
};

static void add_hosts(struct settings *settings, const char *list, const char *path)
{
    char why[512] = "";
    bool good = list ? gy_host_list_parse(&settings->hosts.list, list, why, sizeof why)
                     : gy_host_list_read(&settings->hosts.list, path, why, sizeof why);
    if (!good)
        gy_options_refuse("%s: %s", list ? "--hosts" : "--hostfile", why);
}

/* "NAME=VALUE" also sets the variable here. */
static void add_variable(struct gy_hosts *hosts, const char *text)
{
    const char *equals = strchr(text, '=');
    char *name = equals ? strndup(text, (size_t)(equals - text)) : strdup(text);
    char **names = realloc(hosts->names, (hosts->name_count + 1) * sizeof *names);
    if (!name || !names || !*name || (equals && setenv(name, equals + 1, 1)) || !getenv(name))
        gy_options_refuse("-x '%s' is no variable of the environment and no NAME=VALUE", text);
    hosts->names = names;
    hosts->names[hosts->name_count++] = name;
}

static void free_hosts(struct gy_hosts *hosts)
{
    for (size_t i = 0; i < hosts->name_count; i++)
        free(hosts->names[i]);
    free(hosts->names);
    gy_host_list_free(&hosts->list);
}

static void check_hosts(struct settings *settings)
{
    struct gy_launch *launch = &settings->launch;
    int wanted = launch->ranks;
    if (launch->elastic || launch->chaos.rate > 0)
        gy_options_refuse("--elastic and --chaos are for ranks on this machine alone");
    launch->ranks = gy_host_list_place(&settings->hosts.list, wanted);
    if (launch->ranks == 0)
        gy_options_refuse("-n %d is more than the hosts have slots: HOST:N has N of them", wanted);
}

static void check(struct settings *settings)
{
    struct gy_launch *launch = &settings->launch;
    if (settings->agent)
        return;
    if (settings->hosts.list.count > 0)
        check_hosts(settings);
    else if (settings->hosts.ssh)
        gy_options_refuse("--ssh goes with --hosts or --hostfile");
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
    settings->hosts.ssh = settings->hosts.ssh ? settings->hosts.ssh : "ssh";
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct settings *settings = state->input;
    struct gy_launch *launch = &settings->launch;
    switch (key) {
    case ARGP_KEY_INIT: gy_options_init(state); return 0;
    case 'n': launch->ranks = (int)gy_options_integer("-n", text, 1, GY_LAUNCH_RANKS_MOST); return 0;
    case 'l': launch->label = true; return 0;
    case 'b': launch->bind = true; return 0;
    case KEY_GPUS:
        if (!gy_gpu_list_check(text))
            gy_options_refuse("--gpus '%s' is not auto, none or a list of GPUs, such as 0,1 or GPU-UUID", text);
        launch->gpus = text;
        return 0;
    case 'e': launch->elastic = true; return 0;
    case 'm': launch->least = (int)gy_options_integer("--min", text, 1, GY_LAUNCH_RANKS_MOST); return 0;
    case 'r': launch->restarts = (int)gy_options_integer("--restarts", text, 0, 1000000); return 0;
    case 'c':
        if (!gy_chaos_parse(text, &launch->chaos))
            gy_options_refuse("--chaos '%s' is no SEED,RATE, such as 7,0.5", text);
        return 0;
    case 'H': add_hosts(settings, text, NULL); return 0;
    case KEY_HOSTFILE: add_hosts(settings, NULL, text); return 0;
    case 'x': add_variable(&settings->hosts, text); return 0;
    case KEY_SSH:
        if (strspn(text, " ") == strlen(text))
            gy_options_refuse("--ssh is no command");
        settings->hosts.ssh = text;
        return 0;
    case KEY_AGENT: settings->agent = true; return 0;
    case ARGP_KEY_ARG: /* the program: everything behind it is its own */
        launch->path = text;
        launch->argv = state->argv + state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END: check(settings); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* True if the value of the option is the next argument. */
static bool takes_next(const char *option)
{
    static const char *const names[] = {"--ranks", "--np",       "--min",         "--restarts", "--chaos", "--hosts",
                                        "--host",  "--hostfile", "--machinefile", "--export",   "--ssh",   "--gpus"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(option, names[i]) == 0)
            return true;
    return strlen(option) == 2 && strchr("nmrcHx", option[1]);
}

/* "-np", as mpirun has it, becomes "-n". Only before the program, whose arguments are its own. */
static void accept_np(int argc, char **argv)
{
    static char plain[] = "-n";
    for (int i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "-np") == 0)
            argv[i] = plain;
        i += takes_next(argv[i]);
    }
}

int main(int argc, char **argv)
{
    struct settings settings = {.launch = {.tool = "gyre-run", .least = -1, .restarts = -1}};
    const struct argp argp = {
        .options = table,
        .parser = parse,
        .args_doc = "-n N [--] PROGRAM [ARGUMENT...]\n--hosts HOST:N,... [--] PROGRAM [ARGUMENT...]",
        .doc = "Starts N ranks of PROGRAM on this machine, or on several hosts over ssh, with the environment that "
               "torchrun gives: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and with "
               "a secret of their own in a descriptor that they inherit (GYRE_SECRET_FILE). With --elastic a rank that "
               "fails is started again with GYRE_JOIN=1, after a pause that doubles from 0.25 s to 10 s; ten seconds "
               "without a failure begin anew.\v"
               "When a rank fails, the others have two seconds to report (0.7 s on several hosts), then they are "
               "ended; the last line says which rank failed and how. Exit status: 0, or that of the first rank that "
               "failed, 128 + the signal's number if it was killed, 126 or 127 if the program cannot be started, 1 if "
               "a host cannot be reached, 2 for a wrong argument. With --elastic it is 0 when a rank has ended with 0, "
               "else that of the last one to fail.",
    };
    accept_np(argc, argv);
    gy_options_parse("gyre-run", &argp, ARGP_IN_ORDER, argc, argv, &settings);
    gy_options_check_environment();
    if (settings.agent)
        return gy_agent_run();
    int status = settings.hosts.list.count > 0 ? gy_hosts_run(&settings.launch, &settings.hosts)
                                               : gy_launch_run(&settings.launch);
    free_hosts(&settings.hosts);
    return status;
}
