/* Attributes of communicators, by the public interface, on the ranks that gyre-run starts. What must be the same
 * everywhere changes on all ranks or on none; what is set holds for the next call. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gyre/gyre.h>

static int rank, size;

#define CHECK(condition, ...)                                                      \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "rank %d, line %d: %s: ", rank, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                          \
            fprintf(stderr, "\n");                                                 \
            exit(1);                                                               \
        }                                                                          \
    } while (0)

static void expect(gyre_comm *comm, const char *key, const char *value)
{
    char text[256] = "";
    gyre_status status = gyre_comm_get(comm, key, text, sizeof(text));
    CHECK(status == GYRE_SUCCESS && strcmp(text, value) == 0, "%s is \"%s\", expected \"%s\" (%s)", key, text, value,
          gyre_last_error(comm));
}

static void set(gyre_comm *comm, const char *key, const char *value)
{
    gyre_status status = gyre_comm_set(comm, key, value);
    CHECK(status == GYRE_SUCCESS, "%s = %s: %s", key, value, gyre_last_error(comm));
}

static void refused(gyre_comm *comm, const char *key, const char *value, const char *sentence)
{
    gyre_status status = gyre_comm_set(comm, key, value);
    CHECK(status == GYRE_INVALID_ARGUMENT && strstr(gyre_last_error(comm), sentence), "%s = %s: status %d: %s", key,
          value, status, gyre_last_error(comm));
}

static void sum_is_right(gyre_comm *comm)
{
    float input[300], output[300];
    for (int i = 0; i < 300; i++)
        input[i] = (float)(rank + i);
    gyre_status status = gyre_all_reduce(comm, input, output, 300, GYRE_FLOAT32, GYRE_SUM);
    CHECK(status == GYRE_SUCCESS, "%s", gyre_last_error(comm));
    for (int i = 0; i < 300; i++)
        CHECK(output[i] == (float)(size * (size - 1) / 2 + size * i), "element %d is %g", i, (double)output[i]);
}

static void local_ones(gyre_comm *comm)
{
    char longest[80], small[4];
    memset(longest, 'n', sizeof(longest));
    longest[64] = '\0';
    expect(comm, "name", "");
    expect(comm, "timeout", "1800");
    set(comm, "name", rank == 0 ? "gradients" : "the gradients"); /* every rank its own */
    expect(comm, "name", rank == 0 ? "gradients" : "the gradients");
    set(comm, "timeout", "1.5");
    expect(comm, "timeout", "1.5");
    set(comm, "timeout", "10us");
    expect(comm, "timeout", "0.00001"); /* what get gives, set takes */
    set(comm, "timeout", "0.00001");
    expect(comm, "timeout", "0.00001");
    set(comm, "timeout", "10m");
    expect(comm, "timeout", "600");
    refused(comm, "name", longest, "at most 63 bytes");
    refused(comm, "name", "two\nlines", "one line");
    refused(comm, "timeout", "soon", "a time in seconds");
    refused(comm, "timeout", "0", "a time in seconds");
    refused(comm, "colour", "red", "no attribute \"colour\"");
    CHECK(gyre_comm_set(comm, NULL, "x") == GYRE_INVALID_ARGUMENT, "key NULL");
    CHECK(gyre_comm_set(comm, "name", NULL) == GYRE_INVALID_ARGUMENT, "value NULL");
    CHECK(gyre_comm_set(NULL, "name", "x") == GYRE_INVALID_ARGUMENT, "comm NULL");
    CHECK(gyre_comm_get(comm, "name", small, sizeof(small)) == GYRE_INVALID_ARGUMENT, "a small buffer");
    CHECK(strstr(gyre_last_error(comm), "the buffer has 4"), "%s", gyre_last_error(comm));
    expect(comm, "timeout", "600");

    FILE *file = tmpfile();
    char dump[200] = "";
    CHECK(file && gyre_comm_dump(comm, fileno(file)) == GYRE_SUCCESS, "dump");
    rewind(file);
    CHECK(fgets(dump, sizeof(dump), file) && strstr(dump, "gradients"), "the dump does not say the name: %s", dump);
    fclose(file);
    int full = open("/dev/full", O_WRONLY);
    CHECK(full >= 0 && gyre_comm_dump(comm, full) == GYRE_SYSTEM, "a dump to a full disk");
    CHECK(strstr(gyre_last_error(comm), "cannot be written: No space left on device"), "%s", gyre_last_error(comm));
    close(full);
}

static void note_algorithm(void *user, const gyre_trace_event *event)
{
    *(const char **)user = event->algorithm;
}

/* One element, whose way is as short as can be: it too goes by what is set now. */
static void short_way(gyre_comm *comm, const char *expected)
{
    const char *algorithm = "none";
    float x = 1;
    CHECK(gyre_comm_trace(comm, note_algorithm, (void *)&algorithm) == GYRE_SUCCESS, "trace");
    CHECK(gyre_all_reduce(comm, &x, &x, 1, GYRE_FLOAT32, GYRE_SUM) == GYRE_SUCCESS, "%s", gyre_last_error(comm));
    CHECK(x == (float)size && strcmp(algorithm, expected) == 0, "%s was taken, expected %s", algorithm, expected);
    CHECK(gyre_comm_trace(comm, NULL, NULL) == GYRE_SUCCESS, "trace");
}

static void shared_ones(gyre_comm *comm)
{
    const char *usual = gyre_comm_algorithm(comm, "all_reduce", 1, GYRE_FLOAT32);
    for (int i = 0; i < 3; i++) /* the first of them finds out that there is a short way */
        short_way(comm, usual);
    set(comm, "algorithm", "all_reduce:ring");
    short_way(comm, "ring");
    expect(comm, "algorithm", "all_reduce:ring");
    CHECK(strcmp(gyre_comm_algorithm(comm, "all_reduce", 300, GYRE_FLOAT32), "ring") == 0, "ring was not taken");
    sum_is_right(comm);
    refused(comm, "algorithm", rank == 0 ? "all_reduce:halving_doubling" : "", "other ranks gave another value");
    expect(comm, "algorithm", "all_reduce:ring");
    refused(comm, "algorithm", rank == 1 ? "all_reduce:best" : "",
            rank == 1 ? "all_reduce has no algorithm best" : "one that is wrong");
    expect(comm, "algorithm", "all_reduce:ring");
    refused(comm, "order", rank == 0 ? "alphabetical" : "canonical", rank == 0 ? "alphabetical" : "one that is wrong");
    expect(comm, "order", "shape");
    sum_is_right(comm); /* all ranks are still connected */
    set(comm, "algorithm", "");
    short_way(comm, usual);
    set(comm, "order", "canonical");
    expect(comm, "order", "canonical");
    sum_is_right(comm);
}

static void inherited(gyre_comm *comm)
{
    gyre_comm *child;
    set(comm, "algorithm", "broadcast:ring");
    CHECK(gyre_comm_split(comm, 0, -rank, &child) == GYRE_SUCCESS, "%s", gyre_last_error(comm));
    expect(child, "name", "");
    expect(child, "algorithm", "broadcast:ring");
    expect(child, "order", "canonical");
    expect(child, "timeout", "600");
    set(child, "order", "shape");
    expect(comm, "order", "canonical"); /* each has its own from then on */
    gyre_comm_destroy(child);
    set(comm, "algorithm", "");
}

/* Rank 0 waits for its timeout, and names the late rank; the other ranks arrive only when they are told. */
static void timeout(gyre_comm *comm)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    gyre_status status = GYRE_SUCCESS;
    set(comm, "timeout", rank == 0 ? "0.5" : "600");
    if (rank == 0)
        status = gyre_barrier(comm);
    for (; rank != 0 && status == GYRE_SUCCESS; nanosleep(&pause, NULL))
        status = gyre_progress(comm);
    CHECK(status == GYRE_PEER_LATE, "status %s: %s", gyre_status_name(status), gyre_last_error(comm));
}

int main(void)
{
    gyre_comm *comm;
    if (gyre_comm_create(NULL, &comm) != GYRE_SUCCESS) {
        fprintf(stderr, "%s\n", gyre_last_error(NULL));
        return 1;
    }
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    local_ones(comm);
    shared_ones(comm);
    inherited(comm);
    timeout(comm);
    gyre_comm_destroy(comm);
    return 0;
}
