/* Every allocation of libgyre-nn, one by one, and of the JSON library and zlib on its behalf, fails once: opening data,
 * building a model, training with checkpoints, resuming. The call that it hits says GYRE_NO_MEMORY and gives an error
 * message, or does without; nothing is left that is half done; and the same call again, with memory, ends with the bits
 * of a run that lacked nothing.
 *
 * The linker's --wrap leads nn's own calls of the malloc family here; those of other libraries do not come by. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <zlib.h>

#include <gyre/nn.h>

#include "../support/rank.h"

#define MOST 5000

#pragma GCC visibility push(default) /* a sanitizer's library may refer to them */

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
int __real_posix_memalign(void **memory_p, size_t align, size_t bytes);
void *__real_aligned_alloc(size_t align, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **memory_p, size_t align, size_t bytes);
void *__wrap_aligned_alloc(size_t align, size_t bytes);
int __real_inflateInit2_(z_stream *stream, int bits, const char *version, int bytes);
int __wrap_inflateInit2_(z_stream *stream, int bits, const char *version, int bytes);

#pragma GCC visibility pop

extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static long allocations, fail_at;
static long step;

static bool fails(void)
{
    if (++allocations != fail_at)
        return false;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return fails() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __real_calloc(count, bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __real_realloc(memory, bytes);
}

char *__wrap_strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = fails() ? NULL : __real_malloc(bytes);
    return copy ? memcpy(copy, text, bytes) : NULL;
}

int __wrap_posix_memalign(void **memory_p, size_t align, size_t bytes)
{
    return fails() ? ENOMEM : __real_posix_memalign(memory_p, align, bytes);
}

void *__wrap_aligned_alloc(size_t align, size_t bytes)
{
    return fails() ? NULL : __real_aligned_alloc(align, bytes);
}

static void *zlib_alloc(void *user, unsigned count, unsigned bytes)
{
    (void)user;
    return fails() ? NULL : __real_calloc(count, bytes);
}

static void zlib_free(void *user, void *memory)
{
    (void)user;
    free(memory);
}

int __wrap_inflateInit2_(z_stream *stream, int bits, const char *version, int bytes)
{
    stream->zalloc = zlib_alloc;
    stream->zfree = zlib_free;
    return __real_inflateInit2_(stream, bits, version, bytes);
}

static char folder[64], file[96];
static gyre_comm *comm;
static unsigned failures;
static const gyre_nn_strategy *strategy; /* NULL: sync */
static const char *settings;
static bool images; /* a cnn instead of an mlp */

/* Nothing but the checkpoint, whole if it is there. */
static void check_folder(void)
{
    DIR *entries = opendir(folder);
    CHECK(entries != NULL);
    for (struct dirent *entry; (entry = readdir(entries));)
        if (entry->d_name[0] != '.' && strcmp(entry->d_name, "checkpoint") != 0)
            rank_fail("step %ld: %s is left", step, entry->d_name);
    closedir(entries);
}

/* After a call: true when it has to be repeated, with memory. */
static bool failed(gyre_status status, const char *what)
{
    check_folder();
    if (status == GYRE_SUCCESS)
        return false;
    if (status != GYRE_NO_MEMORY || !*gyre_nn_last_error())
        rank_fail("step %ld: %s gave %s: '%s'", step, what, gyre_status_name(status), gyre_nn_last_error());
    if (allocations < fail_at)
        rank_fail("step %ld: %s failed, and nothing had: %s", step, what, gyre_nn_last_error());
    failures++;
    return true;
}

static gyre_nn_dataset *open_data(void)
{
    gyre_nn_dataset *data = NULL;
    while (failed(gyre_nn_dataset_open("digits", &data), "dataset_open"))
        CHECK(data == NULL);
    return data;
}

static gyre_nn_model *build(void)
{
    gyre_nn_model *model = NULL;
    size_t hidden = 12, channels = 2;
    const struct gyre_nn_image image = {.height = 8, .width = 8, .channels = 1};
    gyre_status status;
    do {
        status = images ? gyre_nn_cnn(&image, &channels, 1, &hidden, 1, 0, 10, GYRE_FLOAT32, 7, &model)
                        : gyre_nn_mlp(64, &hidden, 1, GYRE_NN_RELU, 10, GYRE_FLOAT32, 7, &model);
        CHECK(status == GYRE_SUCCESS || model == NULL);
    } while (failed(status, "build"));
    return model;
}

/* Trains from the start, or from the checkpoint, to `stop` steps; a failed try leaves a model that moved, so each
 * begins with a new one. */
static uint64_t train(const gyre_nn_dataset *data, bool resume, uint64_t stop)
{
    struct gyre_nn_train_options options = gyre_nn_train_defaults();
    struct gyre_nn_train_result result = {0};
    gyre_nn_model *model = build();
    options.batch = 200;
    options.strategy = strategy;
    options.settings = settings;
    options.epochs = 1;
    options.checkpoint = file;
    options.checkpoint_every = 100; /* at the end: each is flushed to the disk, which takes its time */
    options.stop_after = stop;
    options.resume = resume ? file : NULL;
    while (failed(gyre_nn_train(model, data, comm, &options, &result), "train")) {
        gyre_nn_free(model);
        model = build();
    }
    CHECK(result.steps == stop && result.params_xxh3 == gyre_nn_params_hash(model));
    gyre_nn_free(model);
    return result.params_xxh3;
}

static uint64_t run(void)
{
    gyre_nn_dataset *data = open_data();
    train(data, false, 3);
    uint64_t hash = train(data, true, 6);
    gyre_nn_dataset_free(data);
    return hash;
}

/* Each strategy by itself, with the ways of compressing: the data are there already. */
static void sweep_strategies(void)
{
    static const char *const ways[] = {"by=bf16", "by=int8", "by=topk", "by=powersgd"};
    fail_at = 0;
    gyre_nn_dataset *data = open_data();
    for (size_t i = 0, way = 0; (strategy = gyre_nn_strategy_at(i)); way = 0, i++)
        do {
            settings = strcmp(strategy->name, "compressed") == 0 ? ways[way++] : NULL;
            fail_at = 0;
            uint64_t wanted = train(data, false, 2);
            for (step = 1; step < MOST; step += __lsan_do_recoverable_leak_check ? 5 : 1) { /* a check takes its time */
                unlink(file);
                allocations = 0;
                fail_at = step;
                if (train(data, false, 2) != wanted)
                    rank_fail("step %ld, %s: the run ended with other parameters", step, strategy->name);
                if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
                    rank_fail("step %ld, %s: memory is left", step, strategy->name);
                if (allocations < fail_at)
                    break;
            }
            CHECK(step > 20 && step < MOST);
            printf("%s %s: %ld allocations\n", strategy->name, settings ? settings : "", step - 1);
        } while (settings && way < sizeof ways / sizeof ways[0]);
    gyre_nn_dataset_free(data);
}

static void sweep_run(void)
{
    uint64_t wanted = run();
    long total = allocations;
    for (step = 1; step < MOST; step++) {
        unlink(file);
        allocations = 0;
        fail_at = step;
        uint64_t hash = run();
        if (hash != wanted)
            rank_fail("step %ld: the run ended with other parameters", step);
        if (__lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check())
            rank_fail("step %ld: memory is left", step);
        if (allocations < fail_at)
            break;
    }
    CHECK(step > 30 && step < MOST);
    printf("%ld allocations (%ld in a whole run), %u failures were reported\n", step - 1, total, failures);
}

/* Argument "strategies": these, else a run with checkpoint and resume, with "cnn" of that model. Checkpoints are
 * flushed, which is for nothing in memory. */
int main(int argc, char **argv)
{
    const gyre_config alone = {.size = sizeof alone, .world_size = 1};
    alarm(280);
    snprintf(folder, sizeof folder, "%s/gyre-nn-exhaustion-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    CHECK(mkdtemp(folder) != NULL);
    snprintf(file, sizeof file, "%s/checkpoint", folder);
    json_set_alloc_funcs(__wrap_malloc, free);
    OK(NULL, gyre_comm_create(&alone, &comm));
    if (argc > 1 && strcmp(argv[1], "strategies") == 0)
        sweep_strategies();
    else {
        images = argc > 1 && strcmp(argv[1], "cnn") == 0;
        sweep_run();
    }
    unlink(file);
    CHECK(rmdir(folder) == 0);
    OK(NULL, gyre_comm_destroy(comm));
    return failures > 20 ? 0 : 1;
}
