/* gyre-choice: tests whether the algorithm that gyre chooses is the fastest one. perf/choice/run starts its ranks.
 *
 * Every algorithm has a communicator of its own, on which it is forced; the choice has another one. For each collective
 * and size all of them are called in turns, so that changes over time affect all. A first pass drops the algorithms
 * that take more than FAR times the least; then the rest have more turns. The least of many noisy figures looks better
 * than it is. So where the choice seems slower than SUSPICIOUS times, it is measured again against the best one alone,
 * and only that counts. The chosen algorithm is also forced on another communicator, with the same schedule. The
 * difference between those two is the error of the method. The choice counts as slow only where both of them are.
 *
 * A call's time is from the latest start to the latest end over all ranks, on one clock: hosts are namespaces of one
 * machine. Where ranks share cores it is from the earliest start: some ranks end before the last one has had its
 * turn to start. All ranks compute the same times from the same stamps, and so decide the same. Over shaped links
 * every call comes after a pause that fills the shapers' buckets, so that no algorithm is affected by the one
 * before. Rank 0 prints a JSON object per case. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "algorithms.h"
#include "collective.h"
#include "compare/arena.h"

#define FAR 1.5
#define HOPELESS 4 /* of a first call, where that is long: it is not tried again */
#define HOPELESS_NS 20e6
#define SUSPICIOUS 1.05
#define LOOK_LEAST 3
#define LOOK_MOST 15
#define TURNS_LEAST 5
#define TURNS_MOST 400
#define SIZES_MOST 32

static const char *const algorithms[] = {"", GY_PERF_ALGORITHMS}; /* "": gyre's own choice */
#define CONTENDERS (sizeof algorithms / sizeof *algorithms)

struct contender {
    gyre_comm *comm;
    bool exists;                     /* for the collective of the moment */
    bool runs;                       /* for the case of the moment, and is not too far behind */
    double times[TURNS_MOST], first; /* ns */
    size_t turns;
};

static struct {
    struct gy_arena arena;
    bool oversubscribed;
    useconds_t rest_us; /* before a call */
    double budget;      /* ns of a case, twice where the choice meets the best alone */
    uint64_t calls;
    struct gy_case it;
    struct contender contenders[CONTENDERS];
} self;

/* The arena's way to say that it is over. */
void gy_die(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

void gy_die(const char *format, ...)
{
    va_list arguments;
    char text[1024];
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "gyre-choice: rank %d: %s\n", self.it.rank, text);
    _exit(1);
}

static void must(gyre_comm *comm, gyre_status status)
{
    if (status != GYRE_SUCCESS)
        gy_die("%s: %s", gyre_status_name(status), gyre_last_error(comm));
}

/* What all ranks have stamped for the last call. */
static double span(size_t slot)
{
    int64_t earliest = INT64_MAX, latest = INT64_MIN, end = INT64_MIN;
    for (int rank = 0; rank < self.it.size; rank++) {
        const struct gy_stamps *stamps = &self.arena.stamps[rank];
        earliest = stamps->start[slot] < earliest ? stamps->start[slot] : earliest;
        latest = stamps->start[slot] > latest ? stamps->start[slot] : latest;
        end = stamps->end[slot] > end ? stamps->end[slot] : end;
    }
    int64_t begin = self.oversubscribed ? earliest : latest;
    return end > begin ? (double)(end - begin) : 0;
}

/* One call; *time_p in ns. Two slots of stamps alternate, so that a fast rank's next ones meet no slow reader. */
static gyre_status call(struct contender *one, double *time_p)
{
    struct gy_stamps *mine = &self.arena.stamps[self.it.rank];
    size_t slot = self.calls++ % 2;
    struct gy_case it = self.it;
    it.comm = one->comm;
    if (self.rest_us)
        usleep(self.rest_us);
    gy_arena_barrier(&self.arena);
    mine->start[slot] = gy_now();
    gyre_status status = gy_case_call(&it);
    mine->end[slot] = gy_now();
    gy_arena_barrier(&self.arena);
    *time_p = span(slot);
    return status;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

/* Sorts the times: their order is of no use. */
static double median(struct contender *one)
{
    qsort(one->times, one->turns, sizeof *one->times, by_value);
    size_t middle = one->turns / 2;
    return one->turns % 2 ? one->times[middle] : (one->times[middle - 1] + one->times[middle]) / 2;
}

/* Rounds of one call each, from `least` to `most`, until so much time has been spent in calls. */
static void take_turns(size_t least, size_t most, double budget)
{
    double spent = 0;
    for (size_t round = 0; round < most && (round < least || spent < budget); round++)
        for (size_t c = 0; c < CONTENDERS; c++) {
            struct contender *one = &self.contenders[(c + round) % CONTENDERS];
            if (!one->runs || one->turns == TURNS_MOST)
                continue;
            must(one->comm, call(one, &one->times[one->turns]));
            spent += one->times[one->turns++];
        }
}

/* The one on which it is forced what is chosen; CONTENDERS: it does not run. */
static size_t find_same(const char *chosen)
{
    for (size_t c = 1; c < CONTENDERS; c++)
        if (self.contenders[c].runs && strcmp(algorithms[c], chosen) == 0)
            return c;
    return CONTENDERS;
}

/* The best of the others that are forced; CONTENDERS: there is none. */
static size_t best_rival(size_t same)
{
    size_t best = CONTENDERS;
    double least = 0;
    for (size_t c = 1; c < CONTENDERS; c++) {
        struct contender *one = &self.contenders[c];
        if (!one->runs || c == same)
            continue;
        double time = median(one);
        if (best == CONTENDERS || time < least) {
            best = c;
            least = time;
        }
    }
    return best;
}

static void drop_far(size_t same)
{
    size_t best = best_rival(same);
    double least = median(&self.contenders[0]);
    if (best < CONTENDERS && median(&self.contenders[best]) < least)
        least = median(&self.contenders[best]);
    for (size_t c = 1; c < CONTENDERS; c++)
        if (self.contenders[c].runs && c != same && median(&self.contenders[c]) > FAR * least)
            self.contenders[c].runs = false;
}

/* The first call of every rank makes what the size needs for the first time; the second one counts as a try. */
static void begin_case(void)
{
    double least = 0;
    for (size_t c = 0; c < CONTENDERS; c++) {
        struct contender *one = &self.contenders[c];
        one->turns = 0;
        one->runs = one->exists;
        if (!one->runs)
            continue;
        gyre_status status = call(one, &one->first);
        if (status == GYRE_UNSUPPORTED && c > 0) {
            one->runs = one->exists = false; /* over this transport */
            continue;
        }
        must(one->comm, status);
        if (one->first < HOPELESS_NS)
            must(one->comm, call(one, &one->first));
        least = c == 0 || one->first < least ? one->first : least;
    }
    for (size_t c = 1; c < CONTENDERS; c++)
        if (self.contenders[c].first > HOPELESS_NS && self.contenders[c].first > HOPELESS * least)
            self.contenders[c].runs = false;
}

/* The time of what is chosen: the quicker of the choice itself and of the same forced. */
static double time_of_choice(size_t same)
{
    double time = median(&self.contenders[0]);
    return same < CONTENDERS && median(&self.contenders[same]) < time ? median(&self.contenders[same]) : time;
}

static void note(double seen[CONTENDERS])
{
    for (size_t c = 0; c < CONTENDERS; c++)
        if (self.contenders[c].runs)
            seen[c] = median(&self.contenders[c]);
}

static void print_case(const char *chosen, const double seen[CONTENDERS], size_t rival, double ratio)
{
    printf("{\"collective\": \"%s\", \"bytes\": %zu, \"chosen\": \"%s\", \"best\": \"%s\", \"ratio\": %.4f, \"us\": {",
           gy_kind_name(self.it.kind), self.it.bytes, chosen, rival < CONTENDERS ? algorithms[rival] : chosen, ratio);
    for (size_t c = 0; c < CONTENDERS; c++)
        if (seen[c] > 0)
            printf("%s\"%s\": %.3f", c ? ", " : "", c ? algorithms[c] : "choice", seen[c] / 1e3);
    printf("}}\n");
    fflush(stdout);
}

static void measure_case(size_t bytes)
{
    double seen[CONTENDERS] = {0}, ratio = 1;
    gy_case_size(&self.it, bytes);
    const char *chosen = gyre_comm_algorithm(self.it.comm, gy_kind_name(self.it.kind), self.it.count, self.it.dtype);
    chosen = chosen ? chosen : "";
    begin_case();
    size_t same = find_same(chosen);
    take_turns(LOOK_LEAST, LOOK_MOST, self.budget / 4);
    note(seen);
    drop_far(same);
    take_turns(TURNS_LEAST, TURNS_MOST - LOOK_MOST, self.budget);
    note(seen);
    size_t rival = best_rival(same);
    if (rival < CONTENDERS)
        ratio = time_of_choice(same) / seen[rival];
    if (ratio > SUSPICIOUS) {
        for (size_t c = 0; c < CONTENDERS; c++) {
            self.contenders[c].runs = c == 0 || c == rival || c == same;
            self.contenders[c].turns = 0;
        }
        take_turns(TURNS_LEAST + 4, TURNS_MOST, self.budget);
        note(seen);
        ratio = time_of_choice(same) / seen[rival];
    }
    if (self.it.rank == 0)
        print_case(chosen, seen, rival, ratio);
}

/* What does not exist for the collective is refused, on all ranks alike. */
static void force_all(void)
{
    for (size_t c = 0; c < CONTENDERS; c++) {
        char value[128];
        snprintf(value, sizeof value, "%s:%s", gy_kind_name(self.it.kind), algorithms[c]);
        self.contenders[c].exists = c == 0 ||
                                    gyre_comm_set(self.contenders[c].comm, "algorithm", value) == GYRE_SUCCESS;
    }
}

static void join(const char *arena, bool pin)
{
    must(self.it.comm, gyre_comm_create(NULL, &self.it.comm));
    self.it.rank = gyre_comm_rank(self.it.comm);
    self.it.size = gyre_comm_size(self.it.comm);
    self.it.dtype = GYRE_FLOAT32;
    self.it.op = GYRE_SUM;
    self.oversubscribed = self.it.size > sysconf(_SC_NPROCESSORS_ONLN);
    if (pin) /* only now: gyre is to see all cores */
        gy_arena_pin(self.it.rank);
    gy_arena_open(&self.arena, arena, self.it.rank, self.it.size, self.oversubscribed);
    for (size_t c = 0; c < CONTENDERS; c++)
        must(self.it.comm, gyre_comm_duplicate(self.it.comm, &self.contenders[c].comm));
}

static void allocate(size_t bytes)
{
    void *input, *output;
    bytes += 8 * (size_t)self.it.size;
    if (posix_memalign(&input, 4096, bytes) || posix_memalign(&output, 4096, bytes))
        gy_die("no memory for two buffers of %zu bytes", bytes);
    self.it.input = memset(input, 0, bytes);
    self.it.output = memset(output, 0, bytes);
}

static size_t parse_sizes(const char *text, size_t sizes[SIZES_MOST])
{
    size_t count = 0;
    while (*text) {
        char *end;
        unsigned long long value = strtoull(text, &end, 10);
        if (end == text || (*end && *end != ',') || value == 0 || value > (size_t)1 << 32 || count == SIZES_MOST)
            gy_die("'%s' is no list of sizes", text);
        sizes[count++] = (size_t)value;
        text = end + (*end == ',');
    }
    if (count == 0)
        gy_die("there is no size");
    return count;
}

static void measure_all(char *collectives, const size_t *sizes, size_t count)
{
    for (char *rest = NULL, *name = strtok_r(collectives, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (!gy_kind_find(name, &self.it.kind))
            gy_die("'%s' is no collective", name);
        force_all();
        for (size_t i = 0; i < (self.it.kind == GY_KIND_BARRIER ? 1 : count); i++)
            measure_case(sizes[i]);
    }
}

int main(int argc, char **argv)
{
    size_t sizes[SIZES_MOST];
    if (argc != 6) {
        fprintf(stderr, "usage: gyre-choice ARENA pin|REST_US COLLECTIVE,... BYTES,... BUDGET_MS, of each rank "
                        "(perf/choice/run)\n");
        return 2;
    }
    size_t count = parse_sizes(argv[4], sizes), most = 1;
    for (size_t i = 0; i < count; i++)
        most = sizes[i] > most ? sizes[i] : most;
    self.budget = strtod(argv[5], NULL) * 1e6;
    self.rest_us = (useconds_t)strtoul(argv[2], NULL, 10); /* none where it is "pin" */
    join(argv[1], strcmp(argv[2], "pin") == 0);
    allocate(most);
    measure_all(argv[3], sizes, count);
    gy_arena_barrier(&self.arena);
    for (size_t c = CONTENDERS; c-- > 0;)
        gyre_comm_destroy(self.contenders[c].comm);
    gyre_comm_destroy(self.it.comm);
    free(self.it.input);
    free(self.it.output);
    return 0;
}
