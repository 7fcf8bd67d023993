/* gyre-top: shows the state of every rank on this host, and which rank delays which others. The work is in top/:
 * pages are found, judged and shown. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/options.h"
#include "common/output.h"
#include "top/render.h"

#define SOON_MS 250    /* between two looks of --once */
#define LATEST_MS 2000 /* until a rank that has shown no sign of life inside gyre counts as away */

struct options {
    bool once;
    long delay, process;
};

static const struct argp_option table[] = {
    {"once", '1', NULL, 0, "show once, and end", 0},
    {"delay", 'd', "SECONDS", 0, "time between two pictures, 1", 0},
    {"pid", 'p', "PID", 0, "only the job to which this process belongs", 0},
    {0},
};

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT: gy_options_init(state); return 0;
    case '1': options->once = true; return 0;
    case 'd': options->delay = gy_options_integer("--delay", text, 1, 3600); return 0;
    case 'p': options->process = gy_options_integer("--pid", text, 1, 1L << 30); return 0;
    case ARGP_KEY_ARG: gy_options_refuse("unexpected argument '%s'", text);
    default: return ARGP_ERR_UNKNOWN;
    }
}

static void pause_for(long milliseconds)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    nanosleep(&left, NULL);
}

static _Noreturn void out_of_memory(void)
{
    fprintf(stderr, "gyre-top: out of memory\n");
    exit(1);
}

static struct top_look look_now(void)
{
    struct top_look look;
    if (!top_look(&look))
        out_of_memory();
    return look;
}

/* Takes the second snapshot, at the earliest when it can tell which ranks are inside gyre. */
static struct top_look look_again(const struct top_look *before, long milliseconds)
{
    pause_for(milliseconds);
    struct top_look after = look_now();
    for (long waited = milliseconds; waited < LATEST_MS && top_undecided(before, &after); waited += SOON_MS) {
        top_look_free(&after);
        pause_for(SOON_MS);
        after = look_now();
    }
    return after;
}

static bool has_process(const struct top_job *job, long process)
{
    for (int r = 0; r < job->size; r++)
        if (job->states[r].rank && job->states[r].rank->page.process == process)
            return true;
    return process == 0;
}

/* Returns the number of jobs. */
static int show(const struct top_look *before, const struct top_look *after, long process)
{
    int shown = 0;
    for (size_t at = 0; at < after->count;) {
        struct top_job job;
        if (!top_judge(before, after, &at, &job))
            out_of_memory();
        if (has_process(&job, process)) {
            top_show(&job);
            shown++;
        }
        top_job_free(&job);
    }
    if (after->strange)
        printf("%zu ranks of another version of gyre\n", after->strange);
    if (shown == 0)
        printf("no rank of gyre runs here that may be looked at\n");
    return shown;
}

int main(int argc, char **argv)
{
    struct options options = {.delay = 1};
    const struct argp argp = {
        .options = table,
        .parser = parse,
        .doc = "Shows every rank of gyre on this host: whether it moves, waits, computes or is stopped, its operation, "
               "its "
               "rates, and whom it waits for; then, where ranks have waited for a second or more, who holds them up.\v"
               "Ranks are not asked and need not answer: each keeps a page (gyre/page.h) that the same user, and root, "
               "may "
               "read. Exit status: 0, or 1 where --once finds no rank, 2 for a wrong argument.",
    };
    gy_options_parse("gyre-top", &argp, 0, argc, argv, &options);
    gy_options_check_environment();
    struct top_look before = look_now();
    int shown;
    do {
        struct top_look after = look_again(&before, options.once ? SOON_MS : options.delay * 1000);
        if (!options.once && isatty(STDOUT_FILENO))
            printf("\033[H\033[2J");
        shown = show(&before, &after, options.process);
        top_look_free(&before);
        before = after;
        if (!gy_output_arrived("gyre-top", stdout, "the output"))
            return 1;
    } while (!options.once);
    top_look_free(&before);
    return shown == 0;
}
