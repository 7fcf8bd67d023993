/* gyre-background: the cost of an all_reduce in flight for a rank that computes meanwhile.
 *
 *     GYRE_PROGRESS_THREAD=1 scripts/hosts 2 200mbit 0 gyre-background [MIB [ROUNDS]]    8, 15; perf/progress_thread.sh
 *
 * A round has two parts. First, products of small matrices, for 7/10 of the time of an all_reduce of MIB MiB, with
 * nothing in flight. Then the same products while such an all_reduce, started before them, is moved by the progress
 * thread. If it ends before the products do, the round is not counted and the next has fewer products.
 * The cost is the time with / the time without − 1. Further columns: the same in the thread's own processor time
 * (interrupts for the network, caches); the processor time of the other threads of the process, in percent of that
 * time; and how often they slept. With two ranks also, in turns, the same for two threads that send and receive as
 * many bytes over a plain socket (bare.h): the cost of the machine itself. Medians of the rounds with quartiles, of
 * the worst rank in each. */
#include <sys/resource.h>

#include "bare.h"
#include "turns.h"

#define EDGE 96 /* three matrices in the second-level cache */

static float a[EDGE][EDGE], b[EDGE][EDGE], c[EDGE][EDGE];

static void product(void)
{
    for (int i = 0; i < EDGE; i++)
        for (int k = 0; k < EDGE; k++)
            for (int j = 0; j < EDGE; j++)
                c[i][j] += a[i][k] * b[k][j];
    __asm__ volatile("" ::: "memory"); /* each of them is wanted */
}

/* Nanoseconds by the clock of the wall, and what of them this thread had the processor. */
struct span {
    double wall, own;
};

static struct span compute(long products)
{
    int64_t wall = turns_now(), own = turns_clock(CLOCK_THREAD_CPUTIME_ID);
    for (long i = 0; i < products; i++)
        product();
    return (struct span){(double)(turns_now() - wall), (double)(turns_clock(CLOCK_THREAD_CPUTIME_ID) - own)};
}

/* Of all threads but this one: nanoseconds of the processor, and sleeps. */
struct usage {
    double busy, sleeps;
};

static struct usage others(void)
{
    struct rusage all, own;
    getrusage(RUSAGE_SELF, &all);
    getrusage(RUSAGE_THREAD, &own);
    return (struct usage){(double)(turns_clock(CLOCK_PROCESS_CPUTIME_ID) - turns_clock(CLOCK_THREAD_CPUTIME_ID)),
                          (double)(all.ru_nvcsw - own.ru_nvcsw)};
}

struct background {
    gyre_comm *comm;
    size_t count;
    float *input, *output;
    long products; /* of a round */
    struct bare bare;
};

static gyre_request *start(const struct background *it)
{
    gyre_request *request;
    EXPECT(it->comm,
           gyre_all_reduce_start(it->comm, it->input, it->output, it->count, GYRE_FLOAT32, GYRE_SUM, &request));
    return request;
}

/* Nanoseconds. At most some tenths of a second pass in which this rank does not see a death, on a slow build, too. */
static double time_of_product(void)
{
    long products = 1;
    struct span span = compute(products);
    while (span.wall < 5e7) {
        products *= 2;
        span = compute(products);
    }
    return span.wall / (double)products;
}

static void calibrate(struct background *it)
{
    gyre_request *request = start(it); /* connects */
    EXPECT(it->comm, gyre_wait(&request));
    EXPECT(it->comm, gyre_barrier(it->comm));
    int64_t begun = turns_now();
    request = start(it);
    EXPECT(it->comm, gyre_wait(&request));
    double whole = (double)(turns_now() - begun), products = 0.7 * whole / time_of_product();
    EXPECT(it->comm, gyre_all_reduce(it->comm, &products, &products, 1, GYRE_FLOAT64, GYRE_MIN));
    it->products = (long)products + 1;
}

/* Of a round; OVER: it does not count. */
enum { COST, SLOWER, BUSY, SLEEPS, WHOLE, BARE_COST, BARE_BUSY, BARE_SLEEPS, OVER, FIGURES };

struct beside {
    struct span with;
    struct usage spent;
};

/* The products, and what all other threads had meanwhile. */
static struct beside compute_beside(long products)
{
    struct usage before = others();
    struct span with = compute(products);
    struct usage after = others();
    return (struct beside){with, {after.busy - before.busy, after.sleeps - before.sleeps}};
}

static void measure_bare(struct background *it, struct span without, double figures[FIGURES])
{
    EXPECT(it->comm, gyre_barrier(it->comm));
    bare_start(&it->bare);
    struct beside bare = compute_beside(it->products);
    bare_wait(&it->bare);
    figures[BARE_COST] = 100 * (bare.with.wall / without.wall - 1);
    figures[BARE_BUSY] = 100 * bare.spent.busy / bare.with.wall;
    figures[BARE_SLEEPS] = bare.spent.sleeps / (bare.with.wall / 1e9);
}

/* The worst of all ranks in each. */
static void measure(struct background *it, double figures[FIGURES])
{
    EXPECT(it->comm, gyre_barrier(it->comm));
    struct span without = compute(it->products);
    EXPECT(it->comm, gyre_barrier(it->comm));
    int64_t begun = turns_now();
    gyre_request *request = start(it);
    struct beside gyre = compute_beside(it->products);
    figures[OVER] = gyre_test(&request) != GYRE_IN_PROGRESS;
    EXPECT(it->comm, gyre_wait(&request));
    figures[WHOLE] = (double)(turns_now() - begun) / 1e6;
    figures[COST] = 100 * (gyre.with.wall / without.wall - 1);
    figures[SLOWER] = 100 * (gyre.with.own / without.own - 1);
    figures[BUSY] = 100 * gyre.spent.busy / gyre.with.wall;
    figures[SLEEPS] = gyre.spent.sleeps / (gyre.with.wall / 1e9);
    figures[BARE_COST] = figures[BARE_BUSY] = figures[BARE_SLEEPS] = 0;
    if (it->bare.fd >= 0)
        measure_bare(it, without, figures);
    EXPECT(it->comm, gyre_all_reduce(it->comm, figures, figures, FIGURES, GYRE_FLOAT64, GYRE_MAX));
    if (figures[OVER] > 0)
        it->products = it->products * 3 / 4 + 1;
}

static void print(const char *what, double *values, size_t count)
{
    struct turns_quartiles q = turns_quartiles(values, count);
    printf("%-60s %10.2f   (%.2f to %.2f)\n", what, q.middle, q.low, q.high);
}

static int report(struct background *it, size_t rounds)
{
    static double kept[FIGURES][TURNS_MOST];
    size_t counted = 0;
    for (size_t round = 0; round <= rounds; round++) { /* the first warms up */
        double figures[FIGURES];
        measure(it, figures);
        if (round == 0 || figures[OVER] > 0)
            continue;
        for (int f = 0; f < FIGURES; f++)
            kept[f][counted] = figures[f];
        counted++;
    }
    if (gyre_comm_rank(it->comm) != 0)
        return counted == 0;
    printf("# %d ranks, all_reduce of %zu MiB; %zu of %zu rounds count; median (quartiles) of the worst rank\n",
           gyre_comm_size(it->comm), it->count * sizeof *it->input >> 20, counted, rounds);
    if (counted == 0)
        return 1;
    print("cost: more time for the same products, %", kept[COST], counted);
    print("of that while the thread itself had the processor, %", kept[SLOWER], counted);
    print("processor of the other threads, % of that time", kept[BUSY], counted);
    print("their sleeps per second", kept[SLEEPS], counted);
    print("the all_reduce, ms", kept[WHOLE], counted);
    if (it->bare.fd < 0)
        return 0;
    print("a bare exchange of as many bytes: cost, %", kept[BARE_COST], counted);
    print("its threads' processor, % of that time", kept[BARE_BUSY], counted);
    print("their sleeps per second", kept[BARE_SLEEPS], counted);
    return 0;
}

int main(int argc, char **argv)
{
    struct background it = {0};
    size_t bytes = (size_t)(argc > 1 ? turns_number("gyre-background", argv[1], 1024) : 8) << 20;
    size_t rounds = argc > 2 ? (size_t)turns_number("gyre-background", argv[2], TURNS_MOST) : 15;
    EXPECT(NULL, gyre_comm_create(NULL, &it.comm));
    it.count = bytes / sizeof *it.input;
    it.input = calloc(it.count, sizeof *it.input);
    it.output = calloc(it.count, sizeof *it.output);
    if (!it.input || !it.output) {
        fprintf(stderr, "gyre-background: no memory\n");
        exit(1);
    }
    bare_open(&it.bare, it.comm, it.input, it.output, bytes);
    calibrate(&it);
    int status = report(&it, rounds);
    free(it.input);
    free(it.output);
    gyre_comm_destroy(it.comm);
    return status;
}
