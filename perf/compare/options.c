#include "options.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arena.h"
#include "collective.h"

static const char *const modes[] = {"isolated", "streaming", "osu", NULL};
static const char *const wires[] = {"shm", "tcp", "rdma", NULL};

static const struct argp_option table[] = {
    {"arena", 'a', "PATH", 0, "memory that the ranks share (required)", 0},
    {"store", 's', "FOLDER", 0, "where ranks may meet (required)", 0},
    {"ranks", 'n', "N", 0, "ranks of this launch (required)", 0},
    {"collective", 'c', "NAME,...", 0,
     "all_reduce (default), reduce_scatter, all_gather, broadcast, reduce, all_to_all, barrier", 0},
    {"mode", 'm', "MODE", 0, "isolated (default), streaming, osu", 0},
    {"transport", 't', "shm|tcp|rdma", 0, "what the library was told to use, and is checked to use; default shm", 0},
    {"memory", 'M', "private|own", 0, "heap (default) or the library's own memory", 0},
    {"min", 'b', "BYTES", 0, "smallest size, default 4", 0},
    {"max", 'e', "BYTES", 0, "largest size, default 67108864", 0},
    {"factor", 'f', "FACTOR", 0, "between sizes, default 4", 0},
    {"budget", 'B', "MS", 0, "time to measure a size for, default 100", 0},
    {"calls-min", 'l', "N", 0, "calls per size at least, default 7", 0},
    {"calls-max", 'u', "N", 0, "calls per size at most, default 2000", 0},
    {0},
};

static size_t number(struct argp_state *state, const char *text, size_t least, size_t most)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || *end || end == text || *text == '-' || value < least || value > most)
        argp_error(state, "'%s' is no number from %zu to %zu", text, least, most);
    return (size_t)value;
}

/* Index of `text` in a list that ends with NULL. */
static int choose(struct argp_state *state, const char *text, const char *const *list)
{
    for (int i = 0; list[i]; i++) {
        if (strcmp(text, list[i]) == 0)
            return i;
    }
    argp_error(state, "'%s' is unknown here", text);
    return 0;
}

static void parse_kinds(struct argp_state *state, const char *names, struct gy_options *to)
{
    to->kinds_count = 0;
    for (const char *at = names; *at; at += *at == ',') {
        char name[32];
        size_t length = strcspn(at, ",");
        snprintf(name, sizeof name, "%.*s", (int)length, at);
        if (to->kinds_count == GY_KINDS || !gy_collective_find(name, &to->kinds[to->kinds_count++]))
            argp_error(state, "no collective is called '%s', or there are too many", name);
        at += length;
    }
    if (to->kinds_count == 0)
        argp_error(state, "--collective names none");
}

static void check(struct argp_state *state, const struct gy_options *to)
{
    if (!to->arena || !to->store || to->ranks == 0)
        argp_error(state, "--arena, --store and --ranks are required");
    if (to->least > to->most || to->calls_least > to->calls_most)
        argp_error(state, "a least value is above its largest");
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    static const char *const memories[] = {"private", "own", NULL};
    struct gy_options *to = state->input;
    switch (key) {
    case 'a': to->arena = text; return 0;
    case 's': to->store = text; return 0;
    case 'n': to->ranks = (int)number(state, text, 1, GY_RANKS_MOST); return 0;
    case 'c': parse_kinds(state, text, to); return 0;
    case 'm': to->mode = (enum gy_mode)choose(state, text, modes); return 0;
    case 't': to->wire = (enum gy_wire)choose(state, text, wires); return 0;
    case 'M': to->own_memory = choose(state, text, memories); return 0;
    case 'b': to->least = number(state, text, 4, (size_t)1 << 32); return 0;
    case 'e': to->most = number(state, text, 4, (size_t)1 << 32); return 0;
    case 'f': to->factor = number(state, text, 2, 1 << 20); return 0;
    case 'B': to->budget_ms = (double)number(state, text, 1, 60000); return 0;
    case 'l': to->calls_least = number(state, text, 1, GY_CALLS_MOST); return 0;
    case 'u': to->calls_most = number(state, text, 1, GY_CALLS_MOST); return 0;
    case ARGP_KEY_END: check(state, to); return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

void gy_options_parse(int argc, char **argv, struct gy_options *options_p)
{
    const struct argp argp = {
        .options = table,
        .parser = parse,
        .doc = "One rank of a launch of perf/compare/run, which starts it. Rank 0 prints a JSON object per size.",
    };
    *options_p = (struct gy_options){
        .kinds = {GY_ALL_REDUCE},
        .kinds_count = 1,
        .least = 4,
        .most = (size_t)64 << 20,
        .factor = 4,
        .budget_ms = 100,
        .calls_least = 7,
        .calls_most = 2000,
    };
    argp_parse(&argp, argc, argv, 0, NULL, options_p);
}

const char *gy_options_mode(enum gy_mode mode)
{
    return modes[mode];
}

const char *gy_options_wire(enum gy_wire wire)
{
    return wires[wire];
}
