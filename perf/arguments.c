#include "arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algorithms.h"
#include "common/options.h"
#include "exact.h"
#include "foreign.h"
#include "run/launch.h"
#include "run/rendezvous_env.h"
#include "sendrecv.h"

#define BYTES_MOST ((size_t)1 << 40)

#define DTYPES \
    "int8, uint8, int32, uint32, int64, uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2, bool"
#define COLLECTIVES                                                                                               \
    "all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all, barrier, sendrecv, " \
    "latency, "                                                                                                   \
    "bandwidth, bibandwidth, sendrecv_ring"
#define OPS "sum, product, min, max, average, bit_and, bit_or, bit_xor"

enum {
    KEY_ALGORITHM = 256,
    KEY_TRANSPORT,
    KEY_MEMORY,
    KEY_MODE,
    KEY_NO_PIN,
    KEY_SIZES,
    KEY_RANKS,
    KEY_STEP,
    KEY_DEVICE,
    KEY_SHARE
};

static const struct argp_option table[] = {
    {"ranks", KEY_RANKS, "N", 0, "start N ranks on this machine (otherwise a launcher has: gyre-run, torchrun)", 0},
    {NULL, 'N', NULL, OPTION_ALIAS, NULL, 0},
    {"min", 'b', "BYTES", 0, "smallest size, default 8", 0},
    {"minbytes", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"max", 'e', "BYTES", 0, "largest size, default 64M", 0},
    {"maxbytes", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"factor", 'f', "FACTOR", 0, "between sizes, default 2", 0},
    {"stepfactor", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"stepbytes", KEY_STEP, "BYTES", 0, "between sizes, instead of a factor", 0},
    {NULL, 'i', NULL, OPTION_ALIAS, NULL, 0},
    {"iterations", 'n', "COUNT", 0, "measured calls per row, default 20", 0},
    {"iters", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"warmup", 'w', "COUNT", 0, "calls before them, default 5", 0},
    {"warmup_iters", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"dtype", 'd', "TYPE", 0, DTYPES ", all; default float32", 0},
    {"datatype", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"op", 'o', "OP", 0, OPS ", all; default sum", 0},
    {"root", 'r', "RANK", 0, "of what has a root, or all; default 0", 0},
    {"window-size", 'W', "COUNT", 0, "bandwidths: messages under way at once, default 64", 0},
    {"check", 'c', "0|1", 0, "check every result exactly, default 1", 0},
    {"algorithm", KEY_ALGORITHM, "NAME", 0, GY_PERF_ALGORITHMS_TEXT "or by default gyre's choice", 0},
    {"transport", KEY_TRANSPORT, "T,...", 0, "transports that may be used, as GYRE_TRANSPORT has them", 0},
    {"mem", KEY_MEMORY, "private|gyre", 0, "whose memory the buffers are, default private", 0},
    {"device", KEY_DEVICE, "host|cuda", 0,
     "where the buffers are, default host; cuda: memory of a GPU, calls ordered on a stream", 0},
    {"ranks-per-gpu", KEY_SHARE, "N", 0, "ranks of a host that share a GPU; default: they take GPUs in turns", 0},
    {"mode", KEY_MODE, "MODE", 0,
     "isolated (default): one call at a time, the median; streaming: back to back, the mean", 0},
    {"json", 'J', "FILE", 0, "also write one object per row and placement; - is stdout", 0},
    {"output_file", 0, NULL, OPTION_ALIAS, NULL, 0},
    {"no-pin", KEY_NO_PIN, NULL, 0, "do not keep each rank on a core of its own", 0},
    {"message-size", KEY_SIZES, "[MIN:]MAX", OPTION_HIDDEN, NULL, 0},
    {"help-nccl", 'h', NULL, OPTION_HIDDEN, NULL, 0},
    GY_FOREIGN_OPTIONS,
    {0},
};

/* What -N, -m, -i and -x mean depends on the rest of the line. */
struct parsing {
    struct gy_arguments *arguments;
    const char *collective, *algorithm;
    char *short_n, *short_m, *short_i, *short_x;
};

static const char *const algorithms[] = {GY_PERF_ALGORITHMS NULL};

static int find_dtype(const char *name)
{
    gyre_dtype dtype;
    if (strcmp(name, "all") == 0)
        return GY_ALL;
    if (gyre_dtype_from_name(name, &dtype) != GYRE_SUCCESS)
        gy_options_refuse("--dtype '%s' is none of " DTYPES, name);
    return (int)dtype;
}

static int find_op(const char *name)
{
    gyre_op op;
    if (strcmp(name, "all") == 0)
        return GY_ALL;
    if (gyre_op_from_name(name, &op) != GYRE_SUCCESS || op == GYRE_PREMUL_SUM)
        gy_options_refuse("--op '%s' is none of " OPS, name);
    return (int)op;
}

/* "MAX" or "MIN:MAX", as the OSU benchmarks have it. */
static void find_sizes(const char *text, struct gy_arguments *to)
{
    char least[32] = "";
    const char *colon = strchr(text, ':');
    if (colon && (size_t)(colon - text) < sizeof least)
        snprintf(least, sizeof least, "%.*s", (int)(colon - text), text);
    if (least[0])
        to->least = gy_options_bytes("--message-size", least, BYTES_MOST);
    to->most = gy_options_bytes("--message-size", colon ? colon + 1 : text, BYTES_MOST);
}

/* Which of two words; true: the second. */
static bool choose(const char *option, const char *text, const char *first, const char *second)
{
    const char *const names[] = {first, second, NULL};
    return gy_options_choice(option, text, names) == 1;
}

static error_t parse_size(int key, char *text, struct gy_arguments *to)
{
    switch (key) {
    case KEY_RANKS: to->ranks = (int)gy_options_integer("--ranks", text, 1, GY_LAUNCH_RANKS_MOST); return 0;
    case 'b': to->least = gy_options_bytes("-b", text, BYTES_MOST); return 0;
    case 'e': to->most = gy_options_bytes("-e", text, BYTES_MOST); return 0;
    case 'f': to->factor = gy_options_integer("-f", text, 2, 1 << 20); return 0;
    case KEY_STEP:
        to->step = gy_options_bytes("-i", text, BYTES_MOST);
        if (to->step == 0)
            gy_options_refuse("-i 0: sizes would not grow");
        return 0;
    case 'W': to->window = (int)gy_options_integer("-W", text, 1, GY_REGION_MOST); return 0;
    case KEY_SIZES: find_sizes(text, to); return 0;
    case 'n': to->iterations = (int)gy_options_integer("-n", text, 1, 100000000); return 0;
    case 'w': to->warm_up = (int)gy_options_integer("-w", text, 0, 100000000); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_what(int key, char *text, struct gy_arguments *to)
{
    switch (key) {
    case 'd': to->dtype = find_dtype(text); return 0;
    case 'o': to->op = find_op(text); return 0;
    case 'r':
        to->root = strcmp(text, "all") == 0 ? GY_ALL : (int)gy_options_integer("--root", text, 0, 1 << 30);
        return 0;
    case 'c': to->check = choose("--check", text, "0", "1"); return 0;
    case KEY_TRANSPORT: to->transport = text; return 0; /* the library knows the names */
    case KEY_MEMORY: to->gyre_memory = choose("--mem", text, "private", "gyre"); return 0;
    case KEY_DEVICE: to->on_device = choose("--device", text, "host", "cuda"); return 0;
    case KEY_SHARE: to->ranks_per_gpu = (int)gy_options_integer("--ranks-per-gpu", text, 1, 1024); return 0;
    case KEY_MODE: to->streaming = choose("--mode", text, "isolated", "streaming"); return 0;
    case 'J': to->json = text; return 0;
    case KEY_NO_PIN: to->pin = false; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* -N: ranks to start, as in gyre-run; under a launcher, nccl-tests' number of cycles. -i and -x: with a name of the
 * OSU benchmarks, iterations and warm-up, and -m is the largest size. Otherwise they are nccl-tests' step, policy
 * and aggregation, but -m gives sizes where it has the form MIN:MAX. */
static void find_short(const struct parsing *parsing, struct gy_arguments *to)
{
    bool osu = strncmp(parsing->collective, "osu_", 4) == 0;
    bool launched = gy_launch_found() && !getenv(GY_ARGUMENTS_STARTED);
    if (parsing->short_n && !launched)
        parse_size(KEY_RANKS, parsing->short_n, to);
    else if (parsing->short_n)
        gy_foreign_parse(GY_FOREIGN_CYCLES, parsing->short_n, to);
    if (parsing->short_m && (osu || strchr(parsing->short_m, ':')))
        find_sizes(parsing->short_m, to);
    else if (parsing->short_m)
        gy_foreign_parse('m', parsing->short_m, to);
    if (parsing->short_i)
        parse_size(osu ? 'n' : KEY_STEP, parsing->short_i, to);
    if (parsing->short_x && osu)
        parse_size('w', parsing->short_x, to);
    else if (parsing->short_x)
        gy_foreign_parse('x', parsing->short_x, to);
}

static void check_messages(const struct parsing *parsing, const struct gy_arguments *to)
{
    if (parsing->algorithm || to->ranks > 2 || to->ranks == 1 || to->streaming)
        gy_options_refuse("%s has two ranks, no --algorithm and no --mode; sendrecv_ring has any number of ranks",
                          parsing->collective);
    if (to->gyre_memory || to->on_device || to->dtype != GYRE_FLOAT32)
        gy_options_refuse("%s moves bytes in private memory: --dtype, --mem and --device are for the others",
                          parsing->collective);
}

static void check_collective(const struct parsing *parsing, const struct gy_arguments *to)
{
    if (to->dtype != GY_ALL && to->op != GY_ALL && gy_kind_reduces(to->kind) &&
        !gy_exact_has((gyre_dtype)to->dtype, (gyre_op)to->op))
        gy_options_refuse("--op %s has no meaning for --dtype %s: --op all takes those that have",
                          gyre_op_name((gyre_op)to->op), gyre_dtype_name((gyre_dtype)to->dtype));
    if (parsing->algorithm && to->kind >= GY_KINDS)
        gy_options_refuse("%s has no --algorithm: it is one message for each rank", parsing->collective);
}

static void check(const struct parsing *parsing, const struct gy_arguments *to)
{
    if (to->least == 0 || to->least > to->most)
        gy_options_refuse("-b %zu must be at least 1 and at most -e %zu", to->least, to->most);
    if (to->ranks > 0 && to->root >= to->ranks)
        gy_options_refuse("--root %d is not one of %d ranks", to->root, to->ranks);
    if (to->on_device && to->gyre_memory)
        gy_options_refuse("--device cuda and --mem gyre: one memory only");
    if (to->ranks_per_gpu && !to->on_device)
        gy_options_refuse("--ranks-per-gpu needs --device cuda");
    (to->messages ? check_messages : check_collective)(parsing, to);
}

static void finish(struct parsing *parsing)
{
    struct gy_arguments *to = parsing->arguments;
    if (!parsing->collective)
        gy_options_refuse("the collective is missing: one of " COLLECTIVES);
    find_short(parsing, to);
    check(parsing, to);
    if (to->iterations < 0 && !to->messages)
        to->iterations = 20;
    if (to->warm_up < 0 && !to->messages)
        to->warm_up = 5;
    if (parsing->algorithm) {
        char value[128];
        snprintf(value, sizeof value, "%s:%s", gy_kind_name(to->kind), parsing->algorithm);
        setenv("GYRE_ALGORITHM", value, 1);
    }
    if (to->transport)
        setenv("GYRE_TRANSPORT", to->transport, 1);
    gy_options_check_environment();
    if (getenv(GY_ARGUMENTS_STARTED)) {
        unsetenv(GY_ARGUMENTS_STARTED);
        to->ranks = 0;
    } else if (to->ranks == 0 && !gy_launch_found()) {
        gy_options_refuse("no launcher started this: give --ranks N, or use gyre-run, torchrun, mpirun or srun");
    }
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    error_t error;
    switch (key) {
    case ARGP_KEY_INIT: gy_options_init(state); return 0;
    case KEY_ALGORITHM: parsing->algorithm = algorithms[gy_options_choice("--algorithm", text, algorithms)]; return 0;
    case ARGP_KEY_ARG:
        if (parsing->collective)
            gy_options_refuse("unexpected argument '%s'", text);
        parsing->arguments->messages = gy_sendrecv_find(text);
        if (!parsing->arguments->messages && !gy_kind_find(text, &parsing->arguments->kind))
            gy_options_refuse("collective '%s' is none of " COLLECTIVES, text);
        parsing->collective = text;
        return 0;
    case 'N': parsing->short_n = text; return 0;
    case 'm': parsing->short_m = text; return 0;
    case 'i': parsing->short_i = text; return 0;
    case 'x': parsing->short_x = text; return 0;
    case ARGP_KEY_END: finish(parsing); return 0;
    case 'h': argp_state_help(state, stdout, ARGP_HELP_STD_HELP); return 0;
    default:
        if (gy_foreign_parse(key, text, parsing->arguments))
            return 0;
        error = parse_size(key, text, parsing->arguments);
        return error == ARGP_ERR_UNKNOWN ? parse_what(key, text, parsing->arguments) : error;
    }
}

void gy_arguments_parse(int argc, char **argv, struct gy_arguments *arguments_p)
{
    *arguments_p = (struct gy_arguments){
        .least = 8,
        .most = (size_t)64 << 20,
        .factor = 2,
        .iterations = -1,
        .warm_up = -1,
        .window = 64,
        .dtype = GYRE_FLOAT32,
        .op = GYRE_SUM,
        .check = true,
        .pin = true,
    };
    struct parsing parsing = {.arguments = arguments_p};
    const struct argp argp = {
        .options = table,
        .parser = parse,
        .args_doc = "COLLECTIVE",
        .doc =
            "Measures one of " COLLECTIVES ": nccl-tests' columns, out of place and in place, with an exact check of "
            "the results. latency, bandwidth and "
            "bibandwidth are those of messages between two ranks, as osu_latency, osu_bw and osu_bibw; sendrecv is all "
            "three. sendrecv_ring sends to the next rank and receives from the one before, as sendrecv_perf.\vNames "
            "and "
            "options of nccl-tests and of the OSU benchmarks are understood: allreduce, float, avg, -g 1, -m 8:1M. "
            "With a "
            "name that begins with osu_, -i and -x are the numbers of iterations and of warm-up calls, -m [MIN:]MAX "
            "sizes. Under a "
            "launcher "
            "-N is nccl-tests' number of cycles, which is 1.",
    };
    gy_options_parse("gyre-perf", &argp, 0, argc, argv, &parsing);
}
