/* gyre-footprint: the time to make a communicator, and the memory that it holds.
 *
 *     gyre-run -n 64 gyre-footprint [ROUNDS]          5; GYRE_TRANSPORT says over what
 *
 * Time: every rank records when it calls gyre_comm_create and when that returns (CLOCK_MONOTONIC: one host). The time
 * is from the latest call to the latest return. The first time is that of processes that have just started. In the
 * rounds after it the ranks wait for one another in the communicator of the round before.
 *
 * Memory, of a rank, from /proc/self/smaps_rollup: resident bytes of this process alone (private), and its share of
 * the bytes that several processes use (PSS − private). In steps: the communicator has been made; every rank has
 * exchanged 4 bytes with every other (which makes a connection between any two); 4 KiB; then an all_reduce of 16
 * MiB, in the regions of a host or over the links. Kernel memory of sockets belongs to no process and is not
 * counted. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "turns.h"

#define SMALL 4096
#define LARGE ((size_t)16 << 20)

/* KiB: of this process alone, and its part of what is shared. */
struct memory {
    double alone, shared;
};

static struct memory memory_now(void)
{
    struct memory memory = {0};
    double pss = 0, value;
    char line[256];
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    if (!file) {
        perror("gyre-footprint: /proc/self/smaps_rollup");
        exit(1);
    }
    while (fgets(line, sizeof line, file)) {
        if (sscanf(line, "Pss: %lf", &value) == 1)
            pss = value;
        else if (sscanf(line, "Private_Clean: %lf", &value) == 1 || sscanf(line, "Private_Dirty: %lf", &value) == 1)
            memory.alone += value;
    }
    fclose(file);
    memory.shared = pss > memory.alone ? pss - memory.alone : 0;
    return memory;
}

/* Returns the mean over all ranks. No rank begins its next step before all have measured. */
static struct memory mean_memory(gyre_comm *comm)
{
    EXPECT(comm, gyre_barrier(comm));
    struct memory mine = memory_now(), all;
    double sum[2] = {mine.alone, mine.shared};
    EXPECT(comm, gyre_all_reduce(comm, sum, sum, 2, GYRE_FLOAT64, GYRE_SUM));
    all = (struct memory){sum[0] / gyre_comm_size(comm), sum[1] / gyre_comm_size(comm)};
    return all;
}

/* gyre_comm_create waits for a rank that does not arrive until GYRE_MEET_TIMEOUT. The communicator of the round before
 * knows at once that it has died. */
struct watch {
    gyre_comm *comm; /* NULL: no round before */
    atomic_bool over;
};

static void *watch(void *argument)
{
    struct watch *it = argument;
    while (!atomic_load(&it->over)) {
        EXPECT(it->comm, gyre_progress(it->comm));
        usleep(10000);
    }
    return NULL;
}

/* Milliseconds. */
static double make(gyre_comm *before, gyre_comm **comm_p)
{
    pthread_t thread;
    struct watch watched = {.comm = before};
    bool watches = before && pthread_create(&thread, NULL, watch, &watched) == 0;
    int64_t times[2] = {turns_now(), 0}, latest[2];
    EXPECT(NULL, gyre_comm_create(NULL, comm_p));
    times[1] = turns_now();
    atomic_store(&watched.over, true);
    if (watches)
        pthread_join(thread, NULL);
    EXPECT(*comm_p, gyre_all_reduce(*comm_p, times, latest, 2, GYRE_INT64, GYRE_MAX));
    return (double)(latest[1] - latest[0]) / 1e6;
}

static void say(const gyre_comm *comm, const char *what, struct memory now, struct memory before, int parts,
                const char *part)
{
    if (gyre_comm_rank(comm) == 0)
        printf("%-44s %10.0f %10.0f   more per %s: %.1f alone, %.1f shared\n", what, now.alone, now.shared, part,
               (now.alone - before.alone) / parts, (now.shared - before.shared) / parts);
}

static void exchange(gyre_comm *comm, size_t bytes, char *input, char *output)
{
    EXPECT(comm, gyre_all_to_all(comm, input, output, bytes, GYRE_UINT8));
}

static void weigh(gyre_comm *comm)
{
    size_t ranks = (size_t)gyre_comm_size(comm);
    char *input = malloc(2 * ranks * SMALL + 2 * LARGE), *output = input + ranks * SMALL,
         *large = input + 2 * ranks * SMALL;
    if (!input) {
        fprintf(stderr, "gyre-footprint: no memory\n");
        exit(1);
    }
    memset(input, 1, 2 * ranks * SMALL + 2 * LARGE); /* resident from now on */
    int peers = ranks > 1 ? (int)ranks - 1 : 1;
    struct memory made = mean_memory(comm);
    say(comm, "made, buffers included", made, made, 1, "rank");
    exchange(comm, 4, input, output);
    struct memory tiny = mean_memory(comm);
    say(comm, "4 bytes with every other rank", tiny, made, peers, "connection");
    for (int i = 0; i < 20; i++)
        exchange(comm, SMALL, input, output);
    struct memory small = mean_memory(comm);
    say(comm, "20 times 4 KiB with every other rank", small, made, peers, "connection");
    EXPECT(comm, gyre_all_reduce(comm, large, large + LARGE, LARGE, GYRE_UINT8, GYRE_MAX));
    say(comm, "all_reduce of 16 MiB", mean_memory(comm), small, 1, "rank");
    free(input);
}

int main(int argc, char **argv)
{
    size_t rounds = argc > 1 ? (size_t)turns_number("gyre-footprint", argv[1], TURNS_MOST) : 5;
    gyre_comm *comm;
    double first = make(NULL, &comm), times[TURNS_MOST];
    bool speaks = gyre_comm_rank(comm) == 0;
    if (speaks)
        printf("# %d ranks of one host; a communicator, ms from the last call to the last return\n%-44s %10.1f\n",
               gyre_comm_size(comm), "by processes that have just started", first);
    for (size_t i = 0; i < rounds; i++) {
        gyre_comm *next;
        EXPECT(comm, gyre_barrier(comm));
        times[i] = make(comm, &next);
        gyre_comm_destroy(comm);
        comm = next;
    }
    struct turns_quartiles q = turns_quartiles(times, rounds);
    if (speaks)
        printf("%-44s %10.1f   (%.1f to %.1f)\n# KiB of a rank                                      alone  shared\n",
               "once more, median (quartiles)", q.middle, q.low, q.high);
    weigh(comm);
    gyre_comm_destroy(comm);
    return 0;
}
