#include "arguments.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "algorithms.h"
#include "launch.h"
#include "meeting.h"
#include "options.h"

#define BYTES_MOST ((size_t)1 << 40)

#define DTYPES \
    "int8, uint8, int32, uint32, int64, uint64, float16, bfloat16, float32, float64, float8_e4m3, float8_e5m2"
#define COLLECTIVES "all_reduce, reduce_scatter, all_gather, broadcast, reduce, gather, scatter, all_to_all, barrier"
#define OPS "sum, product, min, max, average, bit_and, bit_or, bit_xor"

enum { KEY_ALGORITHM = 256, KEY_TRANSPORT, KEY_MEMORY, KEY_MODE, KEY_JSON, KEY_NO_PIN };

static const struct argp_option table[] = {
    {"ranks", 'N', "N", 0, "start N ranks on this machine (otherwise a launcher has: gyre-run, torchrun)", 0},
    {"min", 'b', "BYTES", 0, "smallest size, default 8", 0},
    {"max", 'e', "BYTES", 0, "largest size, default 64M", 0},
    {"factor", 'f', "FACTOR", 0, "between sizes, default 2", 0},
    {"iterations", 'n', "COUNT", 0, "measured calls per row, default 20", 0},
    {"warmup", 'w', "COUNT", 0, "calls before them, default 5", 0},
    {"dtype", 'd', "TYPE", 0, DTYPES "; default float32", 0},
    {"op", 'o', "OP", 0, OPS "; default sum", 0},
    {"root", 'r', "RANK", 0, "of what has a root, default 0", 0},
    {"check", 'c', "0|1", 0, "check every result exactly, default 1", 0},
    {"algorithm", KEY_ALGORITHM, "NAME", 0,
     "direct_one_shot, direct_two_shot, ring, halving_doubling, binary_tree, canonical, recursive_doubling, binomial, "
     "bruck, double_tree, linear, pairwise, hierarchical, hierarchical_halving, hierarchical_tree; default: gyre's "
     "choice",
     0},
    {"transport", KEY_TRANSPORT, "T,...", 0, "transports that may be used: shm, rdma, tcp", 0},
    {"mem", KEY_MEMORY, "private|gyre", 0, "whose memory the buffers are, default private", 0},
    {"mode", KEY_MODE, "MODE", 0,
     "isolated (default): one call at a time, the median; streaming: back to back, the mean", 0},
    {"json", KEY_JSON, "FILE", 0, "also write one object per row and placement; - is stdout", 0},
    {"no-pin", KEY_NO_PIN, NULL, 0, "do not keep each rank on a core of its own", 0},
    {0},
};

struct parsing {
    struct gy_arguments *arguments;
    const char *collective, *algorithm;
};

static const char *const algorithms[] = {GY_PERF_ALGORITHMS, NULL};

/* Each word between commas is looked up by itself. */
static void check_transports(const char *names)
{
    static const char *const known[] = {"self", "shm", "rdma", "tcp", NULL};
    char word[16];
    for (;;) {
        size_t length = strcspn(names, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, names);
        gy_options_choice("--transport", word, known);
        if (!names[length])
            return;
        names += length + 1;
    }
}

/* The values are small and have no gaps. */
static gyre_dtype find_dtype(const char *name)
{
    for (int dtype = 0; gyre_dtype_name((gyre_dtype)dtype); dtype++) {
        if (strcmp(name, gyre_dtype_name((gyre_dtype)dtype)) == 0)
            return (gyre_dtype)dtype;
    }
    gy_options_refuse("--dtype '%s' is none of " DTYPES, name);
}

static gyre_op find_op(const char *name)
{
    for (int op = 0; gyre_op_name((gyre_op)op); op++) {
        if (strcmp(name, gyre_op_name((gyre_op)op)) == 0 && op != GYRE_PREMUL_SUM)
            return (gyre_op)op;
    }
    gy_options_refuse("--op '%s' is none of " OPS, name);
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
    case 'N': to->ranks = (int)gy_options_integer("--ranks", text, 1, GY_LAUNCH_RANKS_MOST); return 0;
    case 'b': to->least = gy_options_bytes("-b", text, BYTES_MOST); return 0;
    case 'e': to->most = gy_options_bytes("-e", text, BYTES_MOST); return 0;
    case 'f': to->factor = gy_options_integer("-f", text, 2, 1 << 20); return 0;
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
    case 'r': to->root = (int)gy_options_integer("--root", text, 0, 1 << 30); return 0;
    case 'c': to->check = choose("--check", text, "0", "1"); return 0;
    case KEY_TRANSPORT:
        check_transports(text);
        to->transport = text;
        return 0;
    case KEY_MEMORY: to->gyre_memory = choose("--mem", text, "private", "gyre"); return 0;
    case KEY_MODE: to->streaming = choose("--mode", text, "isolated", "streaming"); return 0;
    case KEY_JSON: to->json = text; return 0;
    case KEY_NO_PIN: to->pin = false; return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void finish(struct parsing *parsing)
{
    struct gy_arguments *to = parsing->arguments;
    if (!parsing->collective)
        gy_options_refuse("the collective is missing: one of " COLLECTIVES);
    if (to->least == 0 || to->least > to->most)
        gy_options_refuse("-b %zu must be at least 1 and at most -e %zu", to->least, to->most);
    if (to->ranks > 0 && to->root >= to->ranks)
        gy_options_refuse("--root %d is not one of %d ranks", to->root, to->ranks);
    if (parsing->algorithm) {
        char value[128];
        snprintf(value, sizeof value, "%s:%s", parsing->collective, parsing->algorithm);
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
        if (!gy_kind_find(text, &parsing->arguments->kind))
            gy_options_refuse("collective '%s' is none of " COLLECTIVES, text);
        parsing->collective = text;
        return 0;
    case ARGP_KEY_END: finish(parsing); return 0;
    default:
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
        .iterations = 20,
        .warm_up = 5,
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
        .doc = "Measures one of " COLLECTIVES
               ": nccl-tests' columns, out of place and in place, with an exact check of the results.",
    };
    gy_options_parse("gyre-perf", &argp, 0, argc, argv, &parsing);
}
