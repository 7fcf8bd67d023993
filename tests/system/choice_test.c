/* One rank of the test of what is forced and what is chosen (GYRE_ALGORITHM, the selector):
 *
 *   names     a collective, or an algorithm, that does not exist, or not for one another: no world, and an error
 *             message that says what there is
 *   calls     an algorithm that cannot do a call (order, counts, no shared memory): that call is an error which says
 *             why and what there is; nothing else is taken in its stead, and the communicator goes on
 *   choices   small blocks of all_to_all between many ranks over links travel by Bruck's algorithm, and arrive
 *   tiles     what goes from host to host and on is sent in tiles that are a small part of it
 *
 * Argument: "shm" or "links": can these ranks share memory? Or links of a kind: "hosts", every rank is one;
 * "groups", they are on two; "oversubscribed", on one core; "pair", two on one host; "part", the first four are on one
 * host, and two on others. */
#include "support/rank.h"

static gyre_comm *comm;
static int rank, size;
static bool shm;

static void no_world(const char *setting, const char *phrase)
{
    gyre_comm *none = NULL;
    setenv("GYRE_ALGORITHM", setting, 1);
    gyre_status status = gyre_comm_create(NULL, &none);
    if (status != GYRE_BAD_CONFIGURATION || none || !strstr(gyre_last_error(NULL), phrase))
        rank_fail("GYRE_ALGORITHM=%s: %s, '%s' without '%s'", setting, gyre_status_name(status), gyre_last_error(NULL),
                  phrase);
    unsetenv("GYRE_ALGORITHM");
}

static void refused(gyre_status status, const char *phrase, const char *other)
{
    const char *sentence = gyre_last_error(comm);
    if (status != GYRE_UNSUPPORTED || !strstr(sentence, phrase) || !strstr(sentence, other))
        rank_fail("%s, '%s' without '%s' and '%s'", gyre_status_name(status), sentence, phrase, other);
    OK(comm, gyre_barrier(comm));
}

static void test_names(void)
{
    no_world("all_reduce:rong", "all_reduce has no algorithm rong; it has direct_one_shot, direct_two_shot, ring,");
    no_world("all_reduces:ring", "GYRE_ALGORITHM=all_reduces:ring is invalid");
    no_world("all_gather:binomial", "all_gather has no algorithm binomial; it has direct_two_shot, ring,");
    no_world("all_reduce:ring,broadcast:pairwise", "broadcast has no algorithm pairwise");
}

static void keep_left(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    (void)user, (void)right;
    memmove(result, left, count * gyre_dtype_size(dtype));
}

static void test_calls(void)
{
    int32_t in[16] = {rank}, out[16 * 16];
    size_t counts[16] = {1, 2};
    gyre_op first;
    OK(comm, gyre_op_create(comm, keep_left, NULL, 0, &first));
    OK(comm, gyre_comm_set(comm, "algorithm", "all_reduce:ring,reduce_scatter:ring,all_gather:bruck"));
    OK(comm, gyre_all_reduce(comm, in, out, 3, GYRE_INT32, GYRE_SUM));
    CHECK(out[0] == size * (size - 1) / 2);
    refused(gyre_all_reduce(comm, in, out, 3, GYRE_INT32, first), "all_reduce:ring", "does not commute; there is");
    refused(gyre_reduce_scatterv(comm, in, out, counts, GYRE_INT32, first), "rank order", "canonical");
    refused(gyre_all_gatherv(comm, in, out, counts, NULL, GYRE_INT32), "with counts of their own", "ring");
    OK(comm, gyre_comm_set(comm, "order", "canonical"));
    refused(gyre_all_reduce(comm, in, out, 3, GYRE_INT32, GYRE_SUM), "in canonical order; there is",
            "recursive_doubling");
    OK(comm, gyre_comm_set(comm, "order", "shape"));
    OK(comm, gyre_comm_set(comm, "algorithm", "all_reduce:direct_one_shot"));
    gyre_status status = gyre_all_reduce(comm, in, out, 3, GYRE_INT32, GYRE_SUM);
    if (shm)
        OK(comm, status);
    else
        refused(status, "without shared memory", "recursive_doubling");
    OK(comm, gyre_comm_set(comm, "algorithm", ""));
    OK(comm, gyre_all_reduce(comm, in, out, 3, GYRE_INT32, first));
    CHECK(out[0] == 0);
}

static void expect_chosen(const char *collective, size_t bytes, const char *name)
{
    const char *chosen = gyre_comm_algorithm(comm, collective, bytes, GYRE_UINT8);
    if (!chosen || strcmp(chosen, name) != 0)
        rank_fail("%s of %zu bytes between %d ranks: %s instead of %s", collective, bytes, size,
                  chosen ? chosen : "none", name);
}

static void expect_choice(size_t bytes, const char *name)
{
    expect_chosen("all_to_all", bytes, name);
}

/* Three ranks on hosts of their own: nothing that is long halves and doubles, which would send it twice. */
static void test_three_hosts(void)
{
    CHECK(size == 3);
    expect_chosen("all_reduce", 8192, "recursive_doubling");
    expect_chosen("all_reduce", 16384, "canonical");
    expect_chosen("all_reduce", 65536, "ring");
    expect_chosen("reduce_scatter", 1024, "halving_doubling");
    expect_chosen("reduce_scatter", 6144, "canonical");
    expect_chosen("reduce_scatter", 21844, "ring");
    expect_chosen("all_gather", 21844, "bruck");
    expect_chosen("all_gather", 65536, "ring");
    expect_chosen("broadcast", 16384, "binomial");
    expect_chosen("broadcast", 32768, "double_tree");
    expect_chosen("broadcast", 65536, "ring");
    expect_chosen("reduce", 32768, "double_tree");
    expect_chosen("reduce", 65536, "ring");
}

/* To a root in canonical order: parts, as soon as what a tree's root hears more than once is long. */
static void test_three_hosts_in_order(void)
{
    OK(comm, gyre_comm_set(comm, "order", "canonical"));
    expect_chosen("reduce", 16384, "binomial");
    expect_chosen("reduce", 32768, "canonical");
    OK(comm, gyre_comm_set(comm, "order", "shape"));
}

/* What lies between the ranks of a communicator counts, not what lies between others of the world. */
static void test_part(void)
{
    gyre_comm *world = comm;
    CHECK(size == 6);
    OK(world, gyre_comm_set(world, "order", "canonical"));
    expect_chosen("reduce", 32768, "canonical");
    OK(world, gyre_comm_split(world, rank >= 4, rank, &comm));
    if (rank < 4) {
        size = 4;
        expect_chosen("reduce", 32768, "binomial");
        expect_chosen("reduce", 65536, "canonical");
        size = 6;
    }
    OK(world, gyre_comm_destroy(comm));
    comm = world;
    OK(world, gyre_comm_set(world, "order", "shape"));
}

/* Two hosts, of two ranks and of one: halves are swapped whole, but of what is long in lots, one inside while one is
 * outside. */
static void test_groups(void)
{
    expect_chosen("all_reduce", 524288, "hierarchical_halving");
    expect_chosen("all_reduce", 2097152, "hierarchical");
}

/* Four ranks on two cores: few messages for what is short, neighbours alone for what is long. */
static void test_oversubscribed(void)
{
    CHECK(size == 4);
    expect_chosen("broadcast", 262144, "binary_tree");
    expect_chosen("broadcast", 524288, "ring");
    expect_chosen("reduce", 4194304, "ring");
    expect_chosen("all_reduce", 524288, "halving_doubling");
    expect_chosen("all_reduce", 4194304, "ring");
    expect_chosen("all_gather", 131072, "halving_doubling");
    expect_chosen("all_gather", 262144, "ring");
    expect_chosen("reduce_scatter", 1048576, "ring");
}

/* Two ranks over TCP: what just needs a grant goes in halves that do not; what both add goes whole from there on, but
 * for long. */
/* Where two ranks of a host have only sockets a vector goes whole as long as no grant is needed; where they may have
 * more, in halves that need none. */
static void test_pair(bool sockets)
{
    CHECK(size == 2);
    expect_chosen("reduce", 32768, "binomial");
    expect_chosen("reduce", 65536, sockets ? "binomial" : "double_tree");
    expect_chosen("reduce", 65540, "binomial");
    expect_chosen("broadcast", 32768, "binomial");
    expect_chosen("broadcast", 65536, sockets ? "binomial" : "hierarchical");
    expect_chosen("all_reduce", 65536, sockets ? "recursive_doubling" : "halving_doubling");
    expect_chosen("all_reduce", 65540, sockets ? "recursive_doubling" : "halving_doubling");
    expect_chosen("all_reduce", 1048576, sockets ? "recursive_doubling" : "ring");
    expect_chosen("all_reduce", 1048580, "ring");
}

static uint64_t bytes_sent(void)
{
    gyre_counters counters = {.size = sizeof(counters)};
    OK(comm, gyre_comm_counters(comm, &counters));
    return counters.tcp_bytes;
}

/* A chain of three: while it lasts its root has sent whole tiles, each a 48th of the vector, which no power of two
 * is. */
static void test_tiles(void)
{
    enum { TILE = 682 * 64, BYTES = 48 * TILE };
    static unsigned char vector[BYTES];
    uint64_t before = bytes_sent(), least = BYTES;
    gyre_request *request;
    memset(vector, rank == 0 ? 7 : 0, BYTES);
    expect_chosen("broadcast", BYTES, "ring");
    OK(comm, gyre_broadcast_start(comm, vector, vector, BYTES, GYRE_UINT8, 0, &request));
    for (gyre_status status = GYRE_IN_PROGRESS; status == GYRE_IN_PROGRESS;) {
        uint64_t sent = bytes_sent() - before;
        if (rank == 0 && sent % TILE != 0)
            rank_fail("%llu bytes are no tiles of %d", (unsigned long long)sent, TILE);
        least = sent > 0 && sent < least ? sent : least;
        status = gyre_test(&request);
        CHECK(status == GYRE_IN_PROGRESS || status == GYRE_SUCCESS);
    }
    for (size_t i = 0; i < BYTES; i++)
        CHECK(vector[i] == 7);
    CHECK(rank != 0 || least < BYTES);
}

static void test_choices(void)
{
    uint32_t in[64 * 64], out[64 * 64];
    CHECK(size <= 64);
    expect_choice(256, shm ? "direct_two_shot" : size >= 16 ? "bruck" : "pairwise");
    expect_choice(257, shm ? "direct_two_shot" : "pairwise");
    for (size_t count = 1; count <= 64; count += 21) {
        for (size_t i = 0; i < count * (size_t)size; i++)
            in[i] = (uint32_t)(rank << 20) + (uint32_t)i;
        OK(comm, gyre_all_to_all(comm, in, out, count, GYRE_UINT32));
        for (int r = 0; r < size; r++)
            for (size_t i = 0; i < count; i++)
                CHECK(out[(size_t)r * count + i] == (uint32_t)(r << 20) + (uint32_t)((size_t)rank * count + i));
    }
}

int main(int argc, char **argv)
{
    shm = argc > 1 && strcmp(argv[1], "shm") == 0;
    rank = atoi(getenv("RANK"));
    size = atoi(getenv("WORLD_SIZE"));
    if (size < 16)
        test_names();
    comm = rank_begin(150);
    if (size < 16)
        test_calls();
    test_choices();
    const char *place = argc > 1 ? argv[1] : "";
    if (strcmp(place, "hosts") == 0)
        test_three_hosts(), test_three_hosts_in_order(), test_tiles();
    if (strcmp(place, "groups") == 0)
        test_groups();
    if (strcmp(place, "crowded") == 0)
        test_oversubscribed();
    if (strcmp(place, "sockets") == 0 || strcmp(place, "more") == 0)
        test_pair(place[0] == 's');
    if (strcmp(place, "part") == 0)
        test_part();
    OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(comm));
    return 0;
}
