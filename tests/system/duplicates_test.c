/* Ranks that destroy thousands of communicators end in order, and none takes that for a death: ctest looks for "died"
 * in what they print. Each destroyed communicator is announced to all members, so that more announcements are under way
 * than sockets hold when the first rank leaves. The orders differ in their pace, which the list of communicators sets:
 *
 *   forward    as they were made: slow
 *   backward   quick
 *   apart      each rank begins elsewhere, so that the ranks end at different times
 *   world      the world's communicator first */
#include "support/rank.h"

#define COLLECTIVES_EVERY 97

static void destroy(gyre_comm **comms, int count, int first, int step)
{
    for (int i = 0; i < count; i++)
        OK(NULL, gyre_comm_destroy(comms[(first + i * step + count) % count]));
}

int main(int argc, char **arguments)
{
    CHECK(argc == 3);
    int count = atoi(arguments[1]);
    const char *order = arguments[2];
    gyre_comm *world = rank_begin(200), **comms = calloc((size_t)count, sizeof(gyre_comm *));
    CHECK(comms != NULL);
    int part = gyre_comm_rank(world) * (count / gyre_comm_size(world));
    for (int i = 0; i < count; i++) {
        OK(world, gyre_comm_duplicate(i % 3 == 2 ? comms[i - 1] : world, &comms[i]));
        if (i % COLLECTIVES_EVERY == 0)
            OK(comms[i], gyre_barrier(comms[i]));
    }
    if (strcmp(order, "world") == 0)
        OK(NULL, gyre_comm_destroy(world));
    if (strcmp(order, "backward") == 0)
        destroy(comms, count, count - 1, -1);
    else
        destroy(comms, count, strcmp(order, "apart") == 0 ? part : 0, 1);
    if (strcmp(order, "world") != 0)
        OK(NULL, gyre_comm_destroy(world));
    free(comms);
    return 0;
}
