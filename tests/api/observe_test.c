/* Topology, counters and traces, by the public interface, on the ranks that gyre-run starts.
 *   observe_test          one host, as it is
 *   observe_test hosts    ranks 0, 2, … say that they are on one host, the others on another */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gyre/gyre.h>

static int rank, size, hosts;

#define CHECK(condition, ...)                                                      \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "rank %d, line %d: %s: ", rank, __LINE__, #condition); \
            fprintf(stderr, __VA_ARGS__);                                          \
            fprintf(stderr, "\n");                                                 \
            exit(1);                                                               \
        }                                                                          \
    } while (0)
#define MUST(call)                                                                                          \
    do {                                                                                                    \
        gyre_status must_status = (call);                                                                   \
        CHECK(must_status == GYRE_SUCCESS, "%s: %s", gyre_status_name(must_status), gyre_last_error(comm)); \
    } while (0)

static void places(gyre_comm *comm)
{
    gyre_rank_place place = {.size = sizeof(place)};
    for (int r = 0; r < size; r++) {
        MUST(gyre_comm_topology(comm, r, &place));
        CHECK(place.size == sizeof(place) && place.world_rank == r && place.hosts == hosts, "rank %d: %d of %d hosts",
              r, place.world_rank, place.hosts);
        CHECK(place.host == r % hosts && place.local == r / hosts, "rank %d: host %d, local %d", r, place.host,
              place.local);
        CHECK(place.locals == (size - r % hosts + hosts - 1) / hosts, "rank %d has %d local ranks", r, place.locals);
        CHECK(place.same_host == (r % hosts == rank % hosts), "rank %d: same_host %d", r, place.same_host);
        CHECK(place.process > 0, "rank %d has process %lld", r, (long long)place.process);
        CHECK((strcmp(place.transport, "self") == 0) == (r == rank), "rank %d is reached by %s", r, place.transport);
        if (!place.same_host)
            CHECK(strcmp(place.transport, "tcp") == 0, "rank %d is reached by %s", r, place.transport);
    }

    gyre_comm *child; /* the other way round, without rank 0 */
    MUST(gyre_comm_split(comm, rank == 0 ? -1 : 0, -rank, &child));
    if (child) {
        MUST(gyre_comm_topology(child, 0, &place));
        CHECK(place.world_rank == size - 1 && place.host == 0 && place.local == 0, "world rank %d", place.world_rank);
        MUST(gyre_comm_topology(child, size - 2, &place));
        CHECK(place.world_rank == 1 && place.local == place.locals - 1, "world rank %d, local %d of %d",
              place.world_rank, place.local, place.locals);
    }
    gyre_comm_destroy(child);
    CHECK(gyre_comm_topology(comm, size, &place) == GYRE_INVALID_ARGUMENT, "a rank too high");
    CHECK(gyre_comm_topology(comm, -1, &place) == GYRE_INVALID_ARGUMENT, "a rank too low");
    CHECK(gyre_comm_topology(comm, 0, NULL) == GYRE_INVALID_ARGUMENT, "NULL");
    place.size = 0;
    CHECK(gyre_comm_topology(comm, 0, &place) == GYRE_INVALID_ARGUMENT, "no size");
    CHECK(strstr(gyre_last_error(comm), "size is 0"), "%s", gyre_last_error(comm));
}

/* Programs of a later version have a longer struct: what this version does not know is zero. */
static void longer(gyre_comm *comm)
{
    struct {
        gyre_counters counters;
        uint64_t more[4];
    } newer;
    memset(&newer, 0x5a, sizeof(newer));
    newer.counters.size = sizeof(newer);
    MUST(gyre_comm_counters(comm, &newer.counters));
    for (int i = 0; i < 4; i++)
        CHECK(newer.more[i] == 0, "word %d behind what this version knows is not zero", i);
    CHECK(newer.counters.size == sizeof(newer) && newer.counters.started > 0, "size or counters were lost");
}

#define ELEMENTS 4000 /* of 4 bytes: four equal blocks, and more than travels in a line */

static void counters(gyre_comm *comm)
{
    static float input[ELEMENTS], output[ELEMENTS];
    gyre_counters before = {.size = sizeof(before)}, after = {.size = sizeof(after)};
    MUST(gyre_comm_set(comm, "algorithm", "all_reduce:ring"));
    MUST(gyre_comm_counters(comm, &before));
    CHECK(before.started == before.done + before.failed, "nothing is under way");
    for (int i = 0; i < 3; i++)
        MUST(gyre_all_reduce(comm, input, output, ELEMENTS, GYRE_FLOAT32, GYRE_SUM));
    MUST(gyre_comm_counters(comm, &after));
    CHECK(after.started - before.started == 3 && after.done - before.done == 3 && after.failed == 0, "%llu started",
          (unsigned long long)(after.started - before.started));
    CHECK(after.bytes - before.bytes == 3 * sizeof(input), "%llu bytes",
          (unsigned long long)(after.bytes - before.bytes));
    CHECK(after.window_bytes == before.window_bytes, "a ring does not go through windows");
    /* A ring sends 2 (N − 1) blocks of one N-th to the next rank. */
    gyre_rank_place next = {.size = sizeof(next)};
    MUST(gyre_comm_topology(comm, (rank + 1) % size, &next));
    uint64_t sent = 3 * 2 * (uint64_t)(size - 1) * sizeof(input) / (uint64_t)size;
    bool shm = strcmp(next.transport, "shm") == 0;
    CHECK((shm ? after.shm_bytes - before.shm_bytes : after.tcp_bytes - before.tcp_bytes) == sent,
          "sent %llu by shm and %llu by tcp, expected %llu by %s",
          (unsigned long long)(after.shm_bytes - before.shm_bytes),
          (unsigned long long)(after.tcp_bytes - before.tcp_bytes), (unsigned long long)sent, next.transport);
    CHECK((shm ? after.tcp_bytes - before.tcp_bytes : after.shm_bytes - before.shm_bytes) == 0,
          "nothing by the other one");

    MUST(gyre_comm_set(comm, "algorithm", ""));
    MUST(gyre_comm_counters(comm, &before));
    MUST(gyre_all_reduce(comm, input, output, 1, GYRE_FLOAT32, GYRE_SUM)); /* the shortest way */
    MUST(gyre_all_reduce(comm, input, output, ELEMENTS, GYRE_FLOAT32, GYRE_SUM));
    MUST(gyre_comm_counters(comm, &after));
    bool windows = strncmp(gyre_comm_algorithm(comm, "all_reduce", ELEMENTS, GYRE_FLOAT32), "direct", 6) == 0;
    CHECK(after.window_bytes - before.window_bytes == (windows ? 4 + sizeof(input) : 0), "%llu bytes through windows",
          (unsigned long long)(after.window_bytes - before.window_bytes));

    before = after;
    gyre_comm *child;
    MUST(gyre_comm_duplicate(comm, &child));
    after.size = sizeof(after);
    MUST(gyre_comm_counters(child, &after));
    CHECK(after.started == 0 && after.bytes == 0, "a new communicator has done nothing");
    gyre_comm_destroy(child);
}

#define EVENTS 64

struct seen {
    int count;
    gyre_trace_event event[EVENTS];
};

static void note(void *user, const gyre_trace_event *event)
{
    struct seen *seen = user;
    if (seen->count < EVENTS)
        seen->event[seen->count] = *event;
    seen->count++;
}

/* Two events of one operation, one after the other. */
static void pair(const struct seen *seen, int at, const char *collective, uint64_t count, gyre_op op)
{
    const gyre_trace_event *start = &seen->event[at], *end = &seen->event[at + 1];
    CHECK(start->size == sizeof(*start) && !start->ended && start->status == GYRE_IN_PROGRESS, "event %d is no start",
          at);
    CHECK(end->ended && end->status == GYRE_SUCCESS, "event %d is no end: status %d", at + 1, end->status);
    for (int i = 0; i < 2; i++)
        CHECK(strcmp(start[i].collective, collective) == 0 && start[i].count == count &&
                  start[i].dtype == GYRE_FLOAT32 && (start[i].op == op || strcmp(collective, "all_reduce") != 0),
              "event %d is %s of %llu, expected %s of %llu", at + i, start[i].collective,
              (unsigned long long)start[i].count, collective, (unsigned long long)count);
    CHECK(start->sequence == end->sequence && start->sequence > 0, "numbers %llu and %llu",
          (unsigned long long)start->sequence, (unsigned long long)end->sequence);
    CHECK(start->began > 0 && start->time == start->began && end->began == start->began && end->time >= end->began,
          "times %lld %lld, %lld %lld", (long long)start->began, (long long)start->time, (long long)end->began,
          (long long)end->time);
}

static void traces(gyre_comm *comm)
{
    static float input[ELEMENTS], output[ELEMENTS];
    static struct seen seen;
    gyre_request *request;
    MUST(gyre_comm_trace(comm, note, &seen));
    MUST(gyre_all_reduce(comm, input, output, 1, GYRE_FLOAT32, GYRE_MAX)); /* the shortest way */
    MUST(gyre_all_reduce(comm, input, output, ELEMENTS, GYRE_FLOAT32, GYRE_SUM));
    MUST(gyre_broadcast_start(comm, input, output, ELEMENTS, GYRE_FLOAT32, 1, &request));
    MUST(gyre_wait(&request));
    MUST(gyre_all_reduce_init(comm, input, output, 100, GYRE_FLOAT32, GYRE_MIN, &request));
    for (int i = 0; i < 2; i++) {
        MUST(gyre_start(request));
        MUST(gyre_wait(&request));
    }
    MUST(gyre_request_free(&request));
    MUST(gyre_sendrecv(comm, input, 7, (rank + 1) % size, output, 7, (rank + size - 1) % size, GYRE_FLOAT32));
    CHECK(seen.count == 14, "%d events, expected 14", seen.count);
    pair(&seen, 0, "all_reduce", 1, GYRE_MAX);
    pair(&seen, 2, "all_reduce", ELEMENTS, GYRE_SUM);
    CHECK(strcmp(seen.event[2].algorithm, gyre_comm_algorithm(comm, "all_reduce", ELEMENTS, GYRE_FLOAT32)) == 0, "%s",
          seen.event[2].algorithm);
    pair(&seen, 4, "broadcast", ELEMENTS, GYRE_SUM);
    CHECK(seen.event[4].root == 1, "root %d", seen.event[4].root);
    pair(&seen, 6, "all_reduce", 100, GYRE_MIN);
    pair(&seen, 8, "all_reduce", 100, GYRE_MIN);
    CHECK(seen.event[8].sequence == seen.event[6].sequence + 1, "a persistent request has a new number each time");
    int starts = 0, from_me = 0;
    for (int i = 10; i < 14; i++) {
        CHECK(strcmp(seen.event[i].collective, "send") == 0 && seen.event[i].count == 7, "event %d: %s", i,
              seen.event[i].collective);
        starts += !seen.event[i].ended;
        from_me += seen.event[i].root == rank;
    }
    CHECK(starts == 2 && from_me == (size == 1 ? 4 : 2), "%d starts, %d of this rank's own", starts, from_me);
    MUST(gyre_comm_trace(comm, NULL, NULL));
    MUST(gyre_barrier(comm));
    CHECK(seen.count == 14, "told of an operation after the end of the trace");
    CHECK(gyre_comm_trace(NULL, note, &seen) == GYRE_INVALID_ARGUMENT, "comm NULL");
}

/* What is under way when the world ends has failed, and is told so. */
static void failure(gyre_comm *comm)
{
    static struct seen seen;
    float input = 1, output;
    gyre_request *request = NULL;
    gyre_counters counters = {.size = sizeof(counters)};
    if (rank == 1) { /* when all are done with what came before */
        for (int r = 0; r < size; r++)
            if (r != 1)
                MUST(gyre_recv(comm, &output, 1, GYRE_FLOAT32, r));
        gyre_comm_abort(comm);
        return;
    }
    if (gyre_send(comm, &input, 1, GYRE_FLOAT32, 1) != GYRE_SUCCESS)
        return;
    if (rank != 0) {
        gyre_recv(comm, &output, 1, GYRE_FLOAT32, 1); /* which never comes */
        return;
    }
    MUST(gyre_comm_trace(comm, note, &seen));
    gyre_status status = gyre_all_reduce_start(comm, &input, &output, 1, GYRE_FLOAT32, GYRE_SUM, &request);
    if (status == GYRE_SUCCESS)
        status = gyre_wait(&request);
    CHECK(status == GYRE_ABORTED, "%s", gyre_status_name(status));
    if (seen.count == 0) /* the others were quicker */
        return;
    CHECK(seen.count == 2 && seen.event[1].ended && seen.event[1].status == GYRE_ABORTED,
          "%d events, the last with status %d", seen.count, seen.event[1].status);
    CHECK(gyre_comm_counters(comm, &counters) == GYRE_SUCCESS && counters.failed == 1, "%llu failed",
          (unsigned long long)counters.failed);
}

int main(int argc, char **argv)
{
    gyre_comm *comm;
    hosts = argc > 1 && strcmp(argv[1], "hosts") == 0 ? 2 : 1;
    if (hosts == 2)
        setenv("GYRE_HOST_ID", atoi(getenv("RANK")) % 2 ? "an odd host" : "an even host", 1);
    if (gyre_comm_create(NULL, &comm) != GYRE_SUCCESS) {
        fprintf(stderr, "%s\n", gyre_last_error(NULL));
        return 1;
    }
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    places(comm);
    counters(comm);
    longer(comm);
    traces(comm);
    failure(comm);
    gyre_comm_destroy(comm);
    return 0;
}
