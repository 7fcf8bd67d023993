/* A thousand unauthenticated connections to the listener of the bootstrap, each of which is made again when it is
 * closed. The ranks, which are behind them in the backlog, bootstrap all the same. The first argument says where:
 * "tcp" (tcp://) or "file" (what a file:// leads to). With the second one "slow" these connections send the
 * beginning of a handshake, a byte every 20 ms; otherwise they send nothing. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "bootstrap/messages.h"
#include "net/address.h"
#include "ranks.h"

#define STRANGERS 1000
#define RANKS 4

static struct gy_endpoint find_endpoint(const char *address)
{
    struct gy_address parsed;
    struct gy_endpoint endpoint = {0};
    uint64_t nonce;
    char why[320] = "";
    bool found = false;

    CHECK(gy_address_parse(address, &parsed), "%s", address);
    if (parsed.kind == GY_ADDRESS_TCP)
        found = gy_address_resolve(parsed.host, parsed.port, &endpoint.address, NULL) == GYRE_SUCCESS;
    for (int64_t limit = gy_now() + 20 * GY_SECOND; !found && gy_now() < limit; usleep(1000))
        found = gy_rendezvous_read(parsed.path, false, &endpoint, &nonce, why, sizeof(why));
    CHECK(found, "%s: %s", address, why);
    return endpoint;
}

/* The next byte of what could be a message 1 of this version, up to its last byte. */
static void send_byte(int fd, unsigned *sent)
{
    static const char foreword[] = {'G', 'Y', 'R', 'E', GY_HANDSHAKE_VERSION, 0, 1, GY_PURPOSE_BOOTSTRAP};
    char byte = *sent < sizeof foreword ? foreword[*sent] : 0;

    if (*sent < GY_HANDSHAKE_BYTES_1 - 1 && send(fd, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
        ++*sent;
}

/* Makes connections, waits for their end, and makes each again when it ends. */
static void stand_there(const struct gy_endpoint *endpoint, bool slow)
{
    static struct pollfd strangers[STRANGERS];
    static unsigned sent[STRANGERS];

    for (int i = 0; i < STRANGERS; i++)
        strangers[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    for (;; poll(strangers, STRANGERS, 20)) {
        for (int i = 0; i < STRANGERS; i++) {
            if (strangers[i].fd >= 0 && strangers[i].revents == 0) {
                if (slow)
                    send_byte(strangers[i].fd, &sent[i]);
                continue;
            }
            if (strangers[i].fd >= 0)
                close(strangers[i].fd);
            strangers[i].fd = gy_socket_connect(endpoint);
            sent[i] = 0;
        }
    }
}

static pid_t call_strangers(const char *address, bool slow)
{
    struct rlimit limit;
    pid_t pid = fork();

    CHECK(pid >= 0, "fork");
    if (pid > 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0, "limit");
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "limit");
    const struct gy_endpoint endpoint = find_endpoint(address);
    stand_there(&endpoint, slow);
    _exit(1);
}

int main(int argc, char **argv)
{
    char address[96];
    struct rank *ranks;
    int64_t begin;
    pid_t strangers;

    ranks_begin(120);
    setenv("GYRE_LOG", "error", 0);
    if (argc > 1 && strcmp(argv[1], "file") == 0)
        ranks_address_file(address);
    else
        ranks_address_tcp(address);
    ranks = ranks_make(RANKS, RANKS, address);
    ranks_start(ranks, 1, true);
    strangers = call_strangers(address, argc > 2 && strcmp(argv[2], "slow") == 0);
    sleep(2);
    begin = gy_now();
    ranks_start(ranks + 1, RANKS - 1, true);
    ranks_end(ranks, RANKS);
    kill(strangers, SIGKILL);
    waitpid(strangers, NULL, 0);
    for (int i = 0; i < RANKS; i++)
        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
    printf("behind %d strangers %d ranks have met in %.1f s\n", STRANGERS, RANKS, (double)(gy_now() - begin) / 1e9);
    return 0;
}
