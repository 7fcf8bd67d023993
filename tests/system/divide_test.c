/* One rank of the tests of communicators made of communicators, one suite per run (the argument):
 *   shapes   split by colour and key, sub-communicators from lists, children of children; each computes on its own
 *   many     a thousand splits leave memory and descriptors as they were, and keep windows right while readers lag
 *   left     a member that destroys its part while another waits in it is named, though it lives
 *   lists    ranks that give different lists, wrong ranks and doubles get an error, and the communicator stays */
#include <dirent.h>
#include <malloc.h>

#include "support/rank.h"

static gyre_comm *world;
static int rank, size;

/* Sum of world ranks, order of a gather, and a broadcast from the last: wrong members or a wrong order cannot pass. */
static void compute(gyre_comm *comm, const int *members, int count, size_t elements)
{
    int32_t *input = malloc(elements * sizeof(*input)), *output = malloc(elements * (size_t)count * sizeof(*output));
    CHECK(input && output);
    CHECK(gyre_comm_size(comm) == count && members[gyre_comm_rank(comm)] == rank);
    int32_t sum = 0;
    for (int r = 0; r < count; r++)
        sum += members[r];
    for (size_t i = 0; i < elements; i++)
        input[i] = rank + (int32_t)i;
    OK(comm, gyre_all_reduce(comm, input, output, elements, GYRE_INT32, GYRE_SUM));
    for (size_t i = 0; i < elements; i++)
        CHECK(output[i] == sum + count * (int32_t)i);
    OK(comm, gyre_all_gather(comm, input, output, elements, GYRE_INT32));
    for (int r = 0; r < count; r++)
        CHECK(output[(size_t)r * elements] == members[r]);
    OK(comm, gyre_broadcast(comm, input, output, elements, GYRE_INT32, count - 1));
    CHECK(output[0] == members[count - 1]);
    OK(comm, gyre_barrier(comm));
    free(input);
    free(output);
}

static void compute_all(gyre_comm *comm, const int *members, int count)
{
    static const size_t elements[] = {1, 12, 13, 3000, 200000};
    for (size_t i = 0; i < sizeof(elements) / sizeof(elements[0]); i++)
        compute(comm, members, count, elements[i]);
}

static void shapes(void)
{
    int members[64], count = 0;
    gyre_comm *parity, *reversed, *none, *inner;
    OK(world, gyre_comm_split(world, rank % 2, -rank, &parity));
    for (int r = size - 1; r >= 0; r--)
        if (r % 2 == rank % 2)
            members[count++] = r;
    compute_all(parity, members, count);
    int reversal[64];
    for (int r = 0; r < size; r++)
        reversal[r] = size - 1 - r;
    OK(world, gyre_comm_sub(world, reversal, size, &reversed));
    compute_all(reversed, reversal, size);
    int list[2] = {size - 1, 0};
    OK(world, gyre_comm_sub(world, list, 2, &none));
    CHECK((none != NULL) == (rank == 0 || rank == size - 1));
    if (none)
        compute_all(none, list, 2);
    /* children of children: the first of each half, by the number that it has there */
    OK(parity, gyre_comm_split(parity, gyre_comm_rank(parity) == 0 ? 0 : -1, 0, &inner));
    CHECK((inner != NULL) == (members[0] == rank));
    if (inner)
        compute_all(inner, &rank, 1);
    compute_all(parity, members, count);
    OK(world, gyre_comm_destroy(inner));
    OK(world, gyre_comm_destroy(none));
    OK(world, gyre_comm_destroy(reversed));
    OK(world, gyre_comm_destroy(parity));
}

static int descriptors(void)
{
    DIR *fds = opendir("/proc/self/fd");
    int count = 0;
    CHECK(fds != NULL);
    while (readdir(fds))
        count++;
    closedir(fds);
    return count;
}

static void many(void)
{
    size_t before = 0;
    int open_before = 0;
    unsigned seed = 1;
    for (int i = 0; i < 1000; i++) {
        gyre_comm *part;
        int members[64], count = 0, parts = 1 + rand_r(&seed) % 3, root, jitter = rand_r(&seed);
        OK(world, gyre_comm_split(world, rank % parts, 0, &part));
        for (int r = 0; r < size; r++)
            if (r % parts == rank % parts)
                members[count++] = r;
        if (i % 16 == 0)
            compute(part, members, count, 5000);
        /* the root of a broadcast is through at once, destroys its part and makes the next one: a late rank must
         * still find what it sent */
        int32_t value[2000];
        root = jitter % count;
        for (int k = 0; k < 2000; k++)
            value[k] = members[root] == rank ? i + k : -1;
        if ((jitter >> 8) % size == rank)
            usleep(300);
        OK(part, gyre_broadcast(part, value, value, 2000, GYRE_INT32, root));
        for (int k = 0; k < 2000; k++)
            CHECK(value[k] == i + k);
        OK(world, gyre_comm_destroy(part));
        if (i == 99) {
            before = mallinfo2().uordblks;
            open_before = descriptors();
        }
    }
    CHECK(mallinfo2().uordblks < before + 65536);
    CHECK(descriptors() == open_before);
}

static void left(void)
{
    gyre_comm *part;
    int32_t one = 1, sum;
    OK(world, gyre_comm_duplicate(world, &part));
    OK(part, gyre_all_reduce(part, &one, &sum, 1, GYRE_INT32, GYRE_SUM));
    if (rank == size - 1) { /* it lives on, inside gyre, until all have been told */
        OK(world, gyre_comm_destroy(part));
        GIVES(GYRE_PEER_LEFT, world, gyre_barrier(world));
    } else {
        GIVES(GYRE_PEER_LEFT, part, gyre_all_reduce(part, &one, &sum, 1, GYRE_INT32, GYRE_SUM));
        char name[32];
        snprintf(name, sizeof(name), "rank %d", size - 1); /* fewer than ten, and none is another's beginning */
        CHECK(strstr(gyre_last_error(part), name) && strstr(gyre_last_error(part), "destroyed"));
        OK(world, gyre_comm_destroy(part));
    }
}

static void refused_on_all(const int *list, int count, int culprit, const char *why)
{
    gyre_comm *part = NULL;
    GIVES(GYRE_INVALID_ARGUMENT, world, gyre_comm_sub(world, list, count, &part));
    CHECK(part == NULL && strstr(gyre_last_error(world), rank == culprit ? why : "different lists"));
}

/* The others do not wait for whose list is wrong, and that one has its own error message. */
static void wrong_on_one(int *all, int culprit)
{
    int last = all[size - 1];
    refused_on_all(rank == culprit ? NULL : all, size, culprit, "is NULL");
    refused_on_all(all, rank == culprit ? -1 : size, culprit, "a list of -1 ranks");
    all[size - 1] = rank == culprit ? 0 : last;
    refused_on_all(all, size, culprit, "is in the list twice");
    all[size - 1] = last;
}

static void lists(void)
{
    gyre_comm *part = NULL;
    int twice[2] = {0, 0}, wrong[1] = {size}, mine[1] = {rank};
    GIVES(GYRE_INVALID_ARGUMENT, world, gyre_comm_sub(world, twice, 2, &part));
    GIVES(GYRE_INVALID_ARGUMENT, world, gyre_comm_sub(world, wrong, 1, &part));
    GIVES(GYRE_INVALID_ARGUMENT, world, gyre_comm_sub(world, NULL, 1, &part));
    GIVES(GYRE_INVALID_ARGUMENT, world, gyre_comm_sub(world, mine, 1, &part));
    CHECK(part == NULL && strstr(gyre_last_error(world), "different lists"));
    int all[64];
    for (int r = 0; r < size; r++)
        all[r] = r;
    for (int r = 0; r < 2; r++)
        wrong_on_one(all, r);
    OK(world, gyre_comm_sub(world, all, size, &part));
    compute(part, all, size, 100);
    OK(world, gyre_comm_destroy(part));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    world = rank_begin(180);
    rank = gyre_comm_rank(world);
    size = gyre_comm_size(world);
    if (!strcmp(argv[1], "shapes"))
        shapes();
    else if (!strcmp(argv[1], "many"))
        many();
    else if (!strcmp(argv[1], "lists"))
        lists();
    else
        left();
    if (strcmp(argv[1], "left") != 0)
        OK(world, gyre_barrier(world));
    OK(world, gyre_comm_destroy(world));
    return 0;
}
