/* The rule of the deadline. A survivor has to be told within 100 ms. From the kill to its return three processes run
 * one after the other: the victim, to end; a neighbour, to see it and pass it on; the survivor. On a machine that is
 * busy with something else each of them waits for a core, and that is not gyre's time. So a control process on each
 * core sleeps a millisecond at a time. The longest delay of one of them between the kill and the last report is the
 * noise of this round. A detection of more than 100 ms + 3 × noise fails, but for the exception below. Noise is
 * measured without gyre, so a detection that is broken gets no time from it, and the number of those that needed
 * some is printed.
 *
 * A sleeping process is scheduled earlier than a computing one. Where others have the cores, the kernel's figures
 * for the three themselves count too: how long they wanted a core and had none, less all that the ranks used of the
 * cores meanwhile. The time that they made one another wait is gyre's own. */
#include "fault_times.h"

#include <stdio.h>
#include <stdlib.h>

#include "support/rank.h"

struct times {
    int64_t *ns;
    size_t count, room;
};

static struct times told, since_end; /* from the kill on; from the end of the victim's process on */
static size_t over;
static int64_t worst_noise, worst_wait;

static void add(struct times *times, int64_t ns)
{
    if (times->count == times->room) {
        times->room = times->room ? 2 * times->room : 1024;
        times->ns = realloc(times->ns, times->room * sizeof *times->ns);
        CHECK(times->ns);
    }
    times->ns[times->count++] = ns;
}

bool fault_times_count(int64_t took_ns, int64_t noise_ns, int64_t waited_ns)
{
    add(&told, took_ns);
    over += took_ns > FAULT_DEADLINE_NS;
    if (noise_ns > worst_noise)
        worst_noise = noise_ns;
    if (waited_ns > worst_wait)
        worst_wait = waited_ns;
    return took_ns <= FAULT_DEADLINE_NS + 3 * noise_ns + waited_ns;
}

void fault_times_count_end(int64_t took_ns)
{
    add(&since_end, took_ns > 0 ? took_ns : 0);
}

uint64_t fault_times_counted(void)
{
    return told.count;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Of those that have been sorted; milliseconds. */
static double at(const struct times *times, double share)
{
    size_t place = (size_t)(share * (double)times->count);
    return (double)times->ns[place < times->count ? place : times->count - 1] / 1e6;
}

void fault_times_print(const char *what)
{
    static const double edges_ms[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100};
    const size_t edges = sizeof edges_ms / sizeof *edges_ms;
    if (told.count == 0)
        return;
    qsort(told.ns, told.count, sizeof *told.ns, compare);
    printf("%s: time until a survivor was told\n", what);
    for (size_t i = 0, from = 0; i <= edges; i++) {
        size_t to = from;
        while (to < told.count && (i == edges || (double)told.ns[to] / 1e6 < edges_ms[i]))
            to++;
        if (i < edges)
            printf("  below %5.1f ms %6zu\n", edges_ms[i], to - from);
        else
            printf("  over  100.0 ms %6zu\n", to - from);
        from = to;
    }
    printf("%s: %zu detections: median %.2f ms, p99 %.2f ms, max %.2f ms; %zu over 100 ms; worst noise %.2f ms, wait "
           "for others' "
           "turns %.2f ms\n",
           what, told.count, at(&told, 0.5), at(&told, 0.99), at(&told, 1), over, (double)worst_noise / 1e6,
           (double)worst_wait / 1e6);
    if (since_end.count > 0) {
        qsort(since_end.ns, since_end.count, sizeof *since_end.ns, compare);
        printf("%s: from the end of the victim's process on: median %.2f ms, p99 %.2f ms, max %.2f ms\n", what,
               at(&since_end, 0.5), at(&since_end, 0.99), at(&since_end, 1));
    }
    fflush(stdout);
}
