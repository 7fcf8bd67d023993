/* What gyre calls, by the public interface, on the ranks that gyre-run starts: the replaceable log and allocator, and
 * an operation that forks. Each of the allocator's pieces begins with a mark, so that memory which comes from here and
 * goes to libc's free, or the other way, is found. */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gyre/gyre.h>

#define CHECK(condition, ...)                                             \
    do {                                                                  \
        if (!(condition)) {                                               \
            fprintf(stdout, "hooks_test:%d: %s: ", __LINE__, #condition); \
            fprintf(stdout, __VA_ARGS__);                                 \
            fprintf(stdout, "\n");                                        \
            exit(1);                                                      \
        }                                                                 \
    } while (0)

/* ---- memory ---- */

#define MARK 0x6d656d6f72792121u

struct piece {
    uint64_t mark;
    size_t bytes;
    void *whole;
};

static struct tally {
    _Atomic long pieces, given;
    _Atomic int refuse; /* from now on there is no memory */
} tally;

static struct piece *piece_of(void *memory)
{
    struct piece *piece = (struct piece *)memory - 1;
    CHECK(piece->mark == MARK, "%p was not allocated here, or was freed", memory);
    return piece;
}

static void *allocate(void *user, size_t bytes, size_t align)
{
    struct tally *own = user;
    CHECK(own == &tally && bytes > 0 && align > 0 && (align & (align - 1)) == 0, "%zu bytes at %zu", bytes, align);
    if (own->refuse)
        return NULL;
    char *whole = malloc(bytes + align + sizeof(struct piece));
    uintptr_t at = ((uintptr_t)whole + sizeof(struct piece) + align - 1) & ~(uintptr_t)(align - 1);
    struct piece *piece = (struct piece *)at - 1;
    *piece = (struct piece){MARK, bytes, whole};
    own->pieces++;
    own->given++;
    memset((void *)at, 0x5a, bytes); /* what gyre does not fill is not zero */
    return (void *)at;
}

static void release(void *user, void *memory)
{
    struct tally *own = user;
    struct piece *piece = piece_of(memory);
    piece->mark = 0;
    own->pieces--;
    free(piece->whole);
}

static void *resize(void *user, void *memory, size_t bytes)
{
    struct piece *old = piece_of(memory);
    void *made = allocate(user, bytes, _Alignof(max_align_t));
    if (made) {
        memcpy(made, memory, old->bytes < bytes ? old->bytes : bytes);
        release(user, memory);
    }
    return made;
}

static const gyre_allocator allocator = {sizeof(gyre_allocator), allocate, resize, release, &tally};

static void wrong_allocators(void)
{
    gyre_allocator wrong = allocator;
    wrong.size = 0;
    CHECK(gyre_allocator_set(&wrong) == GYRE_INVALID_ARGUMENT, "a size that was not set");
    wrong = allocator;
    wrong.resize = NULL;
    CHECK(gyre_allocator_set(&wrong) == GYRE_INVALID_ARGUMENT, "a function that is missing");
}

static void work(gyre_comm *comm)
{
    static double input[20000], output[20000];
    int size = gyre_comm_size(comm);
    gyre_comm *child;
    gyre_request *request;
    for (int i = 0; i < 20000; i++)
        input[i] = i;
    for (size_t count = 1; count <= 20000; count *= 9) {
        CHECK(gyre_all_reduce_start(comm, input, output, count, GYRE_FLOAT64, GYRE_SUM, &request) == GYRE_SUCCESS, "%s",
              gyre_last_error(comm));
        CHECK(gyre_wait(&request) == GYRE_SUCCESS, "%s", gyre_last_error(comm));
        CHECK(output[count - 1] == (double)(count - 1) * size, "%g", output[count - 1]);
    }
    CHECK(gyre_comm_split(comm, 0, 0, &child) == GYRE_SUCCESS, "%s", gyre_last_error(comm));
    CHECK(gyre_broadcast(child, input, output, 20000, GYRE_FLOAT64, 0) == GYRE_SUCCESS, "%s", gyre_last_error(child));
    gyre_comm_destroy(child);
}

static void memory(void)
{
    gyre_comm *comm;
    wrong_allocators();
    CHECK(gyre_allocator_set(&allocator) == GYRE_SUCCESS, "nothing is allocated yet");
    CHECK(gyre_comm_create(NULL, &comm) == GYRE_SUCCESS, "%s", gyre_last_error(NULL));
    CHECK(tally.pieces > 0, "the communicator came from elsewhere");
    CHECK(gyre_allocator_set(NULL) == GYRE_INVALID_ARGUMENT, "while a communicator lives");
    work(comm);
    gyre_comm_destroy(comm);
    CHECK(tally.pieces == 0, "%ld pieces were not given back", tally.pieces);
    CHECK(gyre_allocator_set(NULL) == GYRE_SUCCESS, "all of it was given back");
}

static void no_memory(void)
{
    gyre_config alone = {.size = sizeof(alone), .world_size = 1};
    gyre_comm *comm = NULL;
    long before = tally.given;
    CHECK(gyre_comm_create(&alone, &comm) == GYRE_SUCCESS, "%s", gyre_last_error(NULL));
    CHECK(tally.given == before, "the allocator is asked although it was taken away");
    gyre_comm_destroy(comm);
    CHECK(gyre_allocator_set(&allocator) == GYRE_SUCCESS, "all of libc's was given back");
    tally.refuse = 1;
    gyre_status status = gyre_comm_create(&alone, &comm);
    CHECK(status == GYRE_NO_MEMORY, "%s: %s", gyre_status_name(status), gyre_last_error(NULL));
    tally.refuse = 0;
    CHECK(tally.pieces == 0 && gyre_allocator_set(NULL) == GYRE_SUCCESS, "%ld pieces", tally.pieces);
}

/* ---- log ---- */

struct lines {
    int count;
    gyre_log_level level;
    char last[400];
};

static void note(void *user, gyre_log_level level, const char *line)
{
    struct lines *lines = user;
    lines->count++;
    lines->level = level;
    snprintf(lines->last, sizeof(lines->last), "%s", line);
}

/* An unknown setting is a warning. Its line, or what came to standard error for it. */
static void provoke(char *text_p, size_t bytes)
{
    gyre_config alone = {.size = sizeof(alone), .world_size = 1};
    gyre_comm *comm = NULL;
    FILE *file = tmpfile();
    int kept = dup(2);
    dup2(fileno(file), 2);
    setenv("GYRE_TIMEOUTS", "1", 1);
    gyre_status status = gyre_comm_create(&alone, &comm);
    unsetenv("GYRE_TIMEOUTS");
    dup2(kept, 2);
    close(kept);
    CHECK(status == GYRE_SUCCESS, "%s", gyre_last_error(NULL));
    gyre_comm_destroy(comm);
    rewind(file);
    text_p[fread(text_p, 1, bytes - 1, file)] = '\0';
    fclose(file);
}

static void log_lines(void)
{
    struct lines lines = {0};
    char text[1000];
    gyre_log_set(note, &lines);
    provoke(text, sizeof(text));
    CHECK(lines.count == 1 && lines.level == GYRE_LOG_WARN, "%d lines, level %d", lines.count, lines.level);
    CHECK(strstr(lines.last, "GYRE_TIMEOUTS") && !strchr(lines.last, '\n'), "%s", lines.last);
    CHECK(text[0] == '\0', "standard error has: %s", text);
    gyre_log_set(NULL, NULL);
    provoke(text, sizeof(text));
    CHECK(lines.count == 1, "%d lines, after the function was taken away", lines.count);
    CHECK(strstr(text, "GYRE_TIMEOUTS") && text[strlen(text) - 1] == '\n', "standard error has: %s", text);
}

/* ---- a fork inside ---- */

static void *idle(void *descriptor)
{
    char byte;
    (void)!read(*(int *)descriptor, &byte, 1);
    return NULL;
}

/* As a function that starts another program does: the child makes no call of gyre. */
static void add_and_fork(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    (void)dtype;
    if (!*(int *)user) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        *(int *)user = child > 0 && waitpid(child, NULL, 0) == child;
    }
    for (size_t i = 0; i < count; i++)
        ((int32_t *)result)[i] = ((const int32_t *)left)[i] + ((const int32_t *)right)[i];
}

/* Where there are threads gyre holds a lock meanwhile, which a fork must not wait for in the thread that has it. */
static void fork_inside(void)
{
    gyre_comm *comm;
    gyre_op op;
    pthread_t thread;
    int ends[2], forked = 0;
    int32_t sum[100], own[100];
    alarm(200);
    CHECK(pipe(ends) == 0 && pthread_create(&thread, NULL, idle, &ends[0]) == 0, "a thread");
    CHECK(gyre_comm_create(NULL, &comm) == GYRE_SUCCESS, "%s", gyre_last_error(NULL));
    CHECK(gyre_op_create(comm, add_and_fork, &forked, 1, &op) == GYRE_SUCCESS, "%s", gyre_last_error(comm));
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++)
            own[i] = gyre_comm_rank(comm) + i;
        CHECK(gyre_all_reduce(comm, own, sum, 100, GYRE_INT32, op) == GYRE_SUCCESS, "%s", gyre_last_error(comm));
        for (int i = 0; i < 100; i++)
            CHECK(sum[i] == gyre_comm_size(comm) * (2 * i + gyre_comm_size(comm) - 1) / 2, "element %d", i);
        forked = 0;
    }
    CHECK(gyre_comm_destroy(comm) == GYRE_SUCCESS, "destroy");
    close(ends[1]);
    pthread_join(thread, NULL);
    close(ends[0]);
    alarm(0);
}

int main(void)
{
    memory();
    no_memory();
    log_lines();
    fork_inside();
    return 0;
}
