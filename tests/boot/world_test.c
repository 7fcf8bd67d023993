/* Ranks meet by every kind of address, at several sizes, as threads of one process and as processes. What goes wrong is
 * refusal_test's business, what it costs is cost_test's. */
#include <netinet/in.h>

#include "bootstrap/messages.h"
#include "ranks.h"

static void good(const char *address, const char *secret, int size, bool by_exchange, bool processes)
{
    struct rank *ranks = ranks_make(size, size, address);
    int64_t begin = gy_now();

    for (int i = 0; i < size; i++) {
        ranks[i].overlay = ranks[i].together = true;
        ranks[i].exchange = by_exchange;
        ranks[i].secret = secret;
    }
    ranks_start(ranks, size, processes);
    ranks_end(ranks, size);
    for (int i = 0; i < size; i++) {
        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
        CHECK(ranks[i].job == ranks[0].job && ranks[i].job != 0, "rank %d has another job", i);
        CHECK(ranks[i].nlocals == size && ranks[i].hosts == 1, "rank %d sees %d locals", i, ranks[i].nlocals);
    }
    CHECK(by_exchange || (int)ranks[0].counters.registrations == size - 1, "%lu registrations",
          ranks[0].counters.registrations);
    printf("ok: %2d %s at %s%s: %.1f ms\n", size, processes ? "processes" : "threads",
           by_exchange ? "exchange" : address, secret ? "" : ", no secret", (double)(gy_now() - begin) / 1e6);
}

/* A file that an earlier job has left leads nowhere, and the meeting leaves none. */
static void stale_file(void)
{
    char file[96];
    FILE *stale;

    ranks_address_file(file);
    stale = fopen(file + 7, "w");
    CHECK(stale, "%s", file);
    fprintf(stale, "gyre 1 tcp 127.0.0.1 1 abc\n");
    fclose(stale);
    good(file, SECRET, 8, false, false);
    CHECK(access(file + 7, F_OK) != 0, "%s is still there", file);
}

/* One that leads to a process that accepts every connection and sends nothing: ranks wait there, until rank 0 has
 * its own file. */
static void silent_file(void)
{
    struct gy_endpoint endpoint = {.address.ss_family = AF_INET};
    struct gy_error error = {.rank = -1};
    char file[96];
    int64_t begin;

    ((struct sockaddr_in *)&endpoint.address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int listener = gy_socket_listen(&endpoint);
    ranks_address_file(file);
    struct rank *ranks = ranks_make(3, 3, file);
    CHECK(listener >= 0 && gy_rendezvous_write(file + 7, &endpoint, 7, &error) == GYRE_SUCCESS, "%s", error.text);
    ranks_start(ranks + 1, 2, true);
    usleep(500000);
    begin = gy_now();
    ranks_start(ranks, 1, true);
    ranks_end(ranks, 3);
    for (int i = 0; i < 3; i++)
        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
    printf("ok: a stale file that leads to a silent stranger: %.1f ms\n", (double)(gy_now() - begin) / 1e6);
    close(listener);
}

/* A rank with the largest timeout that can be set waits that long. */
static void patiently(const char *address)
{
    struct rank *ranks = ranks_make(3, 3, address);

    for (int i = 0; i < 3; i++)
        ranks[i].meet_timeout = GY_TIMEOUT_MOST;
    ranks_start(ranks, 3, false);
    ranks_end(ranks, 3);
    for (int i = 0; i < 3; i++)
        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
    puts("ok: ranks of endless patience");
}

/* One world after the other at the same address: a fast rank finds rank 0 still in the one before. */
static void again_and_again(const char *address, bool processes)
{
    struct rank *ranks = ranks_make(6, 6, address);

    for (int i = 0; i < 6; i++)
        ranks[i].again = 29;
    ranks_start(ranks, 6, processes);
    ranks_end(ranks, 6);
    for (int i = 0; i < 6; i++)
        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
    printf("ok: 30 worlds, one after the other, at %s\n", address);
}

int main(void)
{
    char tcp4[96], tcp6[96], file[96];

    ranks_begin(230);
    setenv("GYRE_LOG", "error", 0);
    ranks_address_tcp(tcp4);
    ranks_address_file(file);
    snprintf(tcp6, sizeof(tcp6), "tcp://[::1]:%s", strrchr(tcp4, ':') + 1);
    for (size_t i = 0; i < 5; i++)
        good(tcp4, SECRET, (const int[]){1, 2, 3, 8, 64}[i], false, false);
    good(tcp4, SECRET, 64, false, true);
    good(tcp4, NULL, 8, false, true);
    good(tcp6, SECRET, 8, false, true);
    good(file, NULL, 8, false, false);
    good(file, SECRET, 13, false, true);
    stale_file();
    silent_file();
    patiently(tcp4);
    good("", SECRET, 8, true, false);
    good("", NULL, 64, true, true);
    again_and_again(tcp4, false);
    again_and_again(tcp4, true);
    again_and_again(file, true);
    puts("all meetings as expected");
    return 0;
}
