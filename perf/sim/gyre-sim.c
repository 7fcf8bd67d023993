/* gyre-sim: predicts the time of a collective on a cluster that does not exist.
 *
 *     gyre-sim all_reduce --cluster FILE --set hosts=64 -b 4 -e 64M -f 16
 *     gyre-sim all_reduce --hosts 1000,10000,100000 --json out.json
 *
 * A row per size, number of hosts and algorithm: predicted time, bus bandwidth, source of the prediction, and a star
 * at the fastest of its size. Source: `simgrid`, all ranks' schedules in SimGrid; or `formula`, where that would be too
 * many messages. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "case.h"
#include "collectives/schedule/tile.h"
#include "collectives/select/cost_model.h"
#include "common/options.h"
#include "common/output.h"

#define COLUMNS 64
#define MESSAGES_MOST 200e3 /* what SimGrid carries in some seconds */
#define SIMULATED_MOST 2048 /* ranks: each has a few simulated processes with stacks */
#define RANKS_MOST 1000000

enum { KEY_CLUSTER = 256, KEY_SET, KEY_HOSTS, KEY_ALGORITHM, KEY_TILE, KEY_JSON, KEY_ENGINE };

static const struct argp_option table[] = {
    {"cluster", KEY_CLUSTER, "FILE", 0, "the cluster's description: name = value per line", 0},
    {"set", KEY_SET, "NAME=VALUE", 0, "one value of it; may be repeated", 0},
    {"hosts", KEY_HOSTS, "N,...", 0, "one prediction for each", 0},
    {"min", 'b', "BYTES", 0, "smallest size, default 8", 0},
    {"max", 'e', "BYTES", 0, "largest size, default 64M", 0},
    {"factor", 'f', "FACTOR", 0, "between sizes, default 8", 0},
    {"root", 'r', "RANK", 0, "default 0", 0},
    {"algorithm", KEY_ALGORITHM, "NAME", 0, "one only; default: every one that works over links", 0},
    {"tile", KEY_TILE, "BYTES", 0, "the most, as GYRE_TCP_TILE, default 256k", 0},
    {"engine", KEY_ENGINE, "simgrid|formula|auto", 0, "default auto: SimGrid as far as it goes", 0},
    {"json", KEY_JSON, "FILE", 0, "also write one object per row; - is stdout", 0},
    {0},
};

struct arguments {
    struct gy_cluster cluster;
    const char *collective, *hosts, *algorithm, *json;
    size_t least, most, tile;
    long factor, root;
    int engine; /* 0 simgrid, 1 formula, 2 auto */
};

static void set(struct arguments *arguments, const char *option, const char *setting)
{
    const char *why;
    if (!gy_cluster_set(&arguments->cluster, setting, &why))
        gy_options_refuse("%s: %s", option, why);
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    static const char *const engines[] = {"simgrid", "formula", "auto", NULL};
    struct arguments *a = state->input;
    const char *why;
    switch (key) {
    case ARGP_KEY_INIT: gy_options_init(state); return 0;
    case KEY_CLUSTER:
        if (!gy_cluster_read(text, &a->cluster, &why))
            gy_options_refuse("--cluster %s: %s", text, why);
        return 0;
    case KEY_SET: set(a, "--set", text); return 0;
    case KEY_HOSTS: a->hosts = text; return 0;
    case KEY_ALGORITHM: a->algorithm = text; return 0;
    case KEY_TILE: a->tile = gy_options_bytes("--tile", text, 1 << 20); return 0;
    case KEY_ENGINE: a->engine = gy_options_choice("--engine", text, engines); return 0;
    case KEY_JSON: a->json = text; return 0;
    case 'b': a->least = gy_options_bytes("--min", text, (size_t)1 << 40); return 0;
    case 'e': a->most = gy_options_bytes("--max", text, (size_t)1 << 40); return 0;
    case 'f': a->factor = gy_options_integer("--factor", text, 2, 1024); return 0;
    case 'r': a->root = gy_options_integer("--root", text, 0, RANKS_MOST); return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0)
            return ARGP_ERR_UNKNOWN;
        a->collective = text;
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* nccl-tests' factor from algbw to busbw. */
static double bus_factor(enum gy_collective collective, int ranks)
{
    double n = ranks;
    switch (collective) {
    case GY_ALL_REDUCE: return 2 * (n - 1) / n;
    case GY_ALL_GATHER:
    case GY_REDUCE_SCATTER:
    case GY_ALL_TO_ALL: return (n - 1) / n;
    default: return 1;
    }
}

struct row {
    enum gy_algorithm algorithm;
    double seconds;
    const char *engine;
};

static void print(FILE *json, const struct sim_case *it, size_t bytes, const struct row *row, bool best)
{
    double algbw = (double)bytes / row->seconds / 1e9;
    printf("%12zu %8.0f %8d  %-20s %14.2f %10.3f %10.3f  %-8s%s\n", bytes, it->cluster->hosts, it->ranks,
           gy_algorithm_name(row->algorithm), row->seconds * 1e6, algbw, algbw * bus_factor(it->collective, it->ranks),
           row->engine, best ? " *" : "");
    if (json)
        fprintf(
            json,
            "{\"collective\":\"%s\",\"algorithm\":\"%s\",\"hosts\":%.0f,\"ranks\":%d,\"bytes\":%zu,\"time_us\":%.6g,"
            "\"algbw\":%.6g,\"busbw\":%.6g,\"engine\":\"%s\",\"best\":%s}\n",
            gy_collective_name(it->collective), gy_algorithm_name(row->algorithm), it->cluster->hosts, it->ranks, bytes,
            row->seconds * 1e6, algbw, algbw * bus_factor(it->collective, it->ranks), row->engine,
            best ? "true" : "false");
}

static bool is_for_links(enum gy_algorithm algorithm)
{
    return !gy_is_over_shm(algorithm);
}

static double formula(const struct sim_case *it)
{
    struct gy_cost_case same = {.cluster = it->cluster,
                                .collective = it->collective,
                                .algorithm = it->algorithm,
                                .ranks = it->ranks,
                                .root = it->root,
                                .ranks_per_host = it->cluster->ranks_per_host,
                                .total = it->total,
                                .tile = it->tile,
                                .element = SIM_ELEMENT};
    double seconds = gy_cost(&same);
    return seconds < 0 ? NAN : seconds;
}

static double predict(const struct arguments *a, const struct sim_case *it, const char **engine_p)
{
    bool simulated = a->engine == 0 ||
                     (a->engine == 2 && it->ranks <= SIMULATED_MOST && simulate_messages(it) <= MESSAGES_MOST);
    *engine_p = simulated ? "simgrid" : "formula";
    return simulated ? simulate(it) : formula(it);
}

static bool by_rank(enum gy_collective collective)
{
    return collective == GY_ALL_GATHER || collective == GY_REDUCE_SCATTER || collective == GY_ALL_TO_ALL ||
           collective == GY_GATHER_TO || collective == GY_SCATTER_FROM;
}

/* One size on one cluster, by every algorithm. */
static bool compare(const struct arguments *a, FILE *json, struct sim_case *it, size_t bytes)
{
    struct row rows[GY_ALGORITHMS];
    int count = 0, best = -1;
    size_t elements = bytes / SIM_ELEMENT, ranks = (size_t)it->ranks;
    it->total = by_rank(it->collective) ? elements / ranks * ranks : elements;
    for (int algorithm = 0; algorithm < GY_ALGORITHMS; algorithm++) {
        it->algorithm = (enum gy_algorithm)algorithm;
        int members = gy_is_hierarchical(it->algorithm) ? (int)it->cluster->ranks_per_host : 1;
        it->tile = gy_tile_bytes(it->collective, it->ranks, members, it->total * SIM_ELEMENT, a->tile) / SIM_ELEMENT;
        bool wanted = a->algorithm ? strcmp(a->algorithm, gy_algorithm_name(it->algorithm)) == 0
                                   : is_for_links(it->algorithm);
        if (!wanted || !gy_schedule_exists(it->collective, it->algorithm, it->ranks))
            continue;
        struct row *row = &rows[count];
        row->algorithm = it->algorithm;
        row->seconds = predict(a, it, &row->engine);
        if (isnan(row->seconds))
            continue;
        if (best < 0 || row->seconds < rows[best].seconds)
            best = count;
        count++;
    }
    for (int i = 0; i < count; i++) {
        it->algorithm = rows[i].algorithm;
        print(json, it, bytes, &rows[i], i == best);
    }
    return count > 0;
}

static double ranks_of(const struct arguments *a)
{
    return a->cluster.hosts * a->cluster.ranks_per_host;
}

static bool compare_sizes(struct arguments *a, FILE *json, enum gy_collective collective)
{
    struct sim_case it = {
        .cluster = &a->cluster, .collective = collective, .ranks = (int)ranks_of(a), .root = (int)a->root};
    bool any = false;
    size_t bytes = collective == GY_BARRIER ? 0 : a->least;
    for (;;) {
        any |= compare(a, json, &it, bytes);
        if (collective == GY_BARRIER || bytes > a->most / (size_t)a->factor)
            return any;
        bytes *= (size_t)a->factor;
    }
}

/* The first number of the list, to the cluster; returns the rest, NULL: none is left. */
static const char *set_hosts(struct arguments *a, const char *list)
{
    char setting[COLUMNS];
    if (!list)
        return NULL;
    size_t length = strcspn(list, ",");
    snprintf(setting, sizeof(setting), "hosts=%.*s", (int)length, list);
    set(a, "--hosts", setting);
    return list[length] ? list + length + 1 : NULL;
}

/* What is wrong is said before anything is printed. */
static void check_worlds(struct arguments *a)
{
    const char *next = a->hosts;
    do {
        next = set_hosts(a, next);
        if (ranks_of(a) > RANKS_MOST)
            gy_options_refuse("%.0f ranks are more than %d", ranks_of(a), RANKS_MOST);
        if ((double)a->root >= ranks_of(a))
            gy_options_refuse("--root: %.0f ranks have no rank %ld", ranks_of(a), a->root);
    } while (next);
}

int main(int argc, char **argv)
{
    static const struct argp argp = {
        table, parse, "COLLECTIVE", "Predicts how long a collective takes on a described cluster.", NULL, NULL, NULL};
    struct arguments a = {
        .cluster = gy_cluster_default(), .least = 8, .most = 64 << 20, .factor = 8, .tile = 256 << 10, .engine = 2};
    enum gy_collective collective;
    gy_options_parse("gyre-sim", &argp, 0, argc, argv, &a);
    if (!a.collective || !gy_collective_find(a.collective, &collective) || gy_is_point_to_point(collective))
        gy_options_refuse(
            "which collective? all_reduce, reduce_scatter, all_gather, broadcast, barrier, reduce, gather, "
            "scatter or all_to_all");
    if (a.tile < SIM_ELEMENT || a.least < SIM_ELEMENT || a.least > a.most)
        gy_options_refuse("--tile and --min are 4 bytes or more, and --max is not less than --min");
    check_worlds(&a);
    FILE *json = !a.json ? NULL : strcmp(a.json, "-") == 0 ? stdout : fopen(a.json, "we");
    if (a.json && !json)
        gy_options_refuse("--json: %s cannot be written", a.json);
    printf("#    bytes    hosts    ranks  algorithm                 time (us) algbw(GB/s) busbw(GB/s) engine\n");
    bool any = false;
    const char *next = a.hosts;
    do {
        next = set_hosts(&a, next);
        any |= compare_sizes(&a, json, collective);
    } while (next);
    bool arrived = gy_output_close("gyre-sim", json, a.json ? a.json : "the output");
    arrived &= json == stdout || gy_output_arrived("gyre-sim", stdout, "the output");
    if (!any && a.algorithm)
        gy_options_refuse(
            "%s has no algorithm \"%s\" over links for so many ranks: without --algorithm all that there are "
            "are compared",
            a.collective, a.algorithm);
    if (!any)
        gy_options_refuse(
            "%s has no closed form, and so many messages are not simulated unless --engine simgrid asks for it",
            a.collective);
    return arrived ? 0 : 1;
}
