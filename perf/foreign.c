#include "foreign.h"

#include <stdio.h>
#include <string.h>

#include "common/options.h"

static const struct foreign {
    int key;
    const char *name, *legal, *because;
} options[] = {
    {'t', "-t (--nthreads)", "1", "a rank is a process with one thread"},
    {'g', "-g (--ngpus)", "1", "a rank has one buffer in the memory of its host; --ranks says how many there are"},
    {'m', "-m (--agg_iters)", "1", "calls are not aggregated; MIN:MAX are sizes, as in the OSU benchmarks"},
    {'p', "-p (--parallel_init)", "0", "all ranks meet at the same time"},
    {'z', "-z (--blocking)", "0",
     "each call returns when it is complete; --mode=streaming has no barrier between calls"},
    {'y', "-y (--stream_null)", "0", "there are no streams"},
    {'T', "-T (--timeout)", "0", "GYRE_TIMEOUT bounds each call, and a failed rank ends all of them"},
    {'G', "-G (--cudagraph)", "0", "there are no graphs"},
    {'C', "-C (--report_cputime)", "0", "times are those of the clock"},
    {'S', "-S (--report_timestamps)", "0", "rows have no time of day"},
    {'a', "-a (--average)", "3", "a call takes as long as its slowest rank"},
    {'R', "-R (--local_register)", "0", "--mem=gyre takes the buffers from gyre_mem_alloc"},
    {'M', "-M (--memory)", "0", "memory is not reported; gyre-footprint measures it"},
    {'D', "-D (--device_implementation)", "0", "collectives are those of the library"},
    {'u', "-u (--unalign)", "0", "buffers begin at a page"},
    {GY_FOREIGN_CTAS, "--device_cta_count", "16", "there are no CTAs; each rank has one thread"},
    {'x', "-x (--cta_policy)", "0", "there are no CTAs; warm-up calls are -w"},
    {'I', "-I (--per_iter_timing)", "0", "each isolated call is timed: --json has median, p99 and maximum"},
    {'K', "-K (--per_iter_skip)", "0", "warm-up calls, which do not count, are -w"},
    {GY_FOREIGN_CYCLES, "-N (--run_cycles)", "1", "each size is measured once; --ranks starts ranks"},
};

static void accept(const char *name, const char *text, struct gy_arguments *to)
{
    size_t used = strlen(to->accepted);
    snprintf(to->accepted + used, sizeof to->accepted - used, "%s%.*s %s", used ? ", " : "", (int)strcspn(name, " "),
             name, text);
}

bool gy_foreign_parse(int key, const char *text, struct gy_arguments *to)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const struct foreign *it = &options[i];
        if (key != it->key)
            continue;
        if (strcmp(text, it->legal) != 0)
            gy_options_refuse("%s %s: only %s is possible here: %s", it->name, text, it->legal, it->because);
        accept(it->name, text, to);
        return true;
    }
    return false;
}
