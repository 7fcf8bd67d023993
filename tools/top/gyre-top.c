/* gyre-top: shows the state of every rank on this host, and which rank delays which others. The work is in top/:
 * pages are found, judged and shown. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/options.h"
#include "common/output.h"
#include "top/output_file.h"
#include "top/render.h"
#include "top/report_json.h"
#include "top/report_prometheus.h"
#include "top/scrape_server.h"
#include "top/trace_events.h"

#define SOON_MS 250    /* between two looks of --once */
#define LATEST_MS 2000 /* until a rank that has shown no sign of life inside gyre counts as away */

enum form { TEXT, JSON, PROMETHEUS, TRACE };

struct options {
    bool once;
    long delay, process;
    enum form form;
    const char *file; /* NULL: standard output, or the port */
    int port;         /* 0: none */
    int listener;
};

/* What is judged from two looks. */
struct picture {
    struct top_job *jobs;
    size_t count, strange;
};

static const struct argp_option table[] = {
    {"once", '1', NULL, 0, "show once, and end", 0},
    {"delay", 'd', "SECONDS", 0, "time between two pictures, 1", 0},
    {"pid", 'p', "PID", 0, "only the job to which this process belongs", 0},
    {"json", 'j', NULL, 0, "a line of JSON for each picture", 0},
    {"prometheus", 'm', "FILE|PORT", 0,
     "keep FILE in Prometheus' text format, or serve it at http://127.0.0.1:PORT/metrics", 0},
    {"trace", 't', "FILE", 0, "write the last operations of all ranks as trace events, for ui.perfetto.dev, and end",
     0},
    {0},
};

static void choose(struct options *options, enum form form)
{
    if (options->form != TEXT)
        gy_options_refuse("--json, --prometheus and --trace exclude one another");
    options->form = form;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT: gy_options_init(state); return 0;
    case '1': options->once = true; return 0;
    case 'd': options->delay = gy_options_integer("--delay", text, 1, 3600); return 0;
    case 'p': options->process = gy_options_integer("--pid", text, 1, 1L << 30); return 0;
    case 'j': choose(options, JSON); return 0;
    case 'm':
        choose(options, PROMETHEUS);
        if (*text && strspn(text, "0123456789") == strlen(text))
            options->port = (int)gy_options_integer("--prometheus", text, 1, 65535);
        else
            options->file = text;
        return 0;
    case 't':
        choose(options, TRACE);
        options->once = true;
        options->file = text;
        return 0;
    case ARGP_KEY_ARG: gy_options_refuse("unexpected argument '%s'", text);
    case ARGP_KEY_END:
        if (options->port && options->once)
            gy_options_refuse("--once has no meaning for a port");
        return 0;
    default: return ARGP_ERR_UNKNOWN;
    }
}

/* What a port answers between two looks. */
struct answer {
    int listener; /* −1: none */
    char *text;   /* malloc; NULL: none yet */
    size_t length;
};

static void pause_for(long milliseconds, const struct answer *answer)
{
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    if (answer->listener >= 0)
        top_scrape_serve(answer->listener, answer->text, answer->length, milliseconds);
    else
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
static struct top_look look_again(const struct top_look *before, long milliseconds, const struct answer *answer)
{
    pause_for(milliseconds, answer);
    struct top_look after = look_now();
    for (long waited = milliseconds; waited < LATEST_MS && top_undecided(before, &after); waited += SOON_MS) {
        top_look_free(&after);
        pause_for(SOON_MS, answer);
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

static struct picture draw(const struct top_look *before, const struct top_look *after, long process)
{
    struct picture picture = {.strange = after->strange};
    picture.jobs = calloc(after->count + 1, sizeof *picture.jobs); /* at most a job for each rank */
    if (!picture.jobs)
        out_of_memory();
    for (size_t at = 0; at < after->count;) {
        struct top_job *job = &picture.jobs[picture.count];
        if (!top_judge(before, after, &at, job))
            out_of_memory();
        if (has_process(job, process))
            picture.count++;
        else
            top_job_free(job);
    }
    return picture;
}

static void picture_free(struct picture *picture)
{
    for (size_t j = 0; j < picture->count; j++)
        top_job_free(&picture->jobs[j]);
    free(picture->jobs);
}

static void show_text(const struct picture *picture, bool clear)
{
    if (clear)
        printf("\033[H\033[2J");
    for (size_t j = 0; j < picture->count; j++)
        top_show(&picture->jobs[j]);
    if (picture->strange)
        printf("%zu ranks of another version of gyre\n", picture->strange);
    if (picture->count == 0)
        printf("no rank of gyre runs here that may be looked at\n");
}

/* Writes the picture in memory. The text is for free(). */
static char *print(const struct picture *picture, enum form form, size_t *length_p)
{
    char *text = NULL;
    FILE *stream = open_memstream(&text, length_p);
    if (!stream)
        out_of_memory();
    if (form == JSON)
        top_json(stream, picture->jobs, picture->count, picture->strange);
    else if (form == PROMETHEUS)
        top_prometheus(stream, picture->jobs, picture->count);
    else
        top_trace(stream, picture->jobs, picture->count);
    if (fclose(stream))
        out_of_memory();
    return text;
}

/* Shows a picture in its form, and keeps the text that a port serves. Returns false where it cannot be written. */
static bool show(const struct picture *picture, const struct options *options, struct answer *answer)
{
    if (options->form == TEXT) {
        show_text(picture, !options->once && isatty(STDOUT_FILENO));
        return gy_output_arrived("gyre-top", stdout, "the output");
    }
    free(answer->text);
    answer->text = print(picture, options->form, &answer->length);
    if (options->port)
        return true;
    if (options->file)
        return top_output_file(options->file, answer->text, answer->length);
    fwrite(answer->text, 1, answer->length, stdout);
    return gy_output_arrived("gyre-top", stdout, "the output");
}

/* Returns the exit status. */
static int watch(const struct options *options)
{
    struct answer answer = {.listener = options->listener};
    struct top_look before = look_now();
    bool good, any;
    do {
        struct top_look after = look_again(&before, options->once ? SOON_MS : options->delay * 1000, &answer);
        struct picture picture = draw(&before, &after, options->process);
        good = show(&picture, options, &answer);
        any = picture.count > 0;
        picture_free(&picture);
        top_look_free(&before);
        before = after;
    } while (good && !options->once);
    free(answer.text);
    top_look_free(&before);
    return !good || !any;
}

int main(int argc, char **argv)
{
    struct options options = {.delay = 1, .listener = -1};
    const struct argp argp = {
        .options = table,
        .parser = parse,
        .doc = "Shows every rank of gyre on this host: whether it moves, waits, computes or is stopped, its operation, "
               "its rates, and the rank that it waits for; then, where ranks have waited for a second or more, which "
               "rank holds them up.\v"
               "Ranks are not asked and need not answer: each keeps a page (gyre/page.h) that the same user, and root, "
               "may read. Exit status: 0, or 1 where --once finds no rank, 2 for a wrong argument.",
    };
    gy_options_parse("gyre-top", &argp, 0, argc, argv, &options);
    gy_options_check_environment();
    if (options.port && (options.listener = top_scrape_listen(options.port)) < 0) {
        fprintf(stderr, "gyre-top: cannot listen at 127.0.0.1:%d: %s\n", options.port, strerror(errno));
        return 1;
    }
    return watch(&options);
}
