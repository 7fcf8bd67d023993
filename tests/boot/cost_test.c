/* What a meeting and an overlay cost each rank, at 8 and 64 ranks: sockets held at once, sockets held in the end,
 * messages sent. Observed from outside, at the system calls, by functions that the linker puts in front of them
 * (--wrap), and in the end by /proc/self/fd; the library's own counters are not asked.
 *
 * The claim: all grow with log2 N, but for one thing that is linear, rank 0's answers to N − 1 registrations, of which
 * at most 16 are under way at once. Handshakes count as messages. */
#include <dirent.h>
#include <errno.h>
#include <sys/socket.h>

#include "ranks.h"

#define GUESTS 16
#define FILES 1024

enum found { FOUND_NOW, FOUND_MOST, FOUND_SENT, FOUND_OPEN, FOUND_MADE };

static bool is_socket[FILES];
static long now, most, sent, made; /* sent: messages; made: all sockets that there were */

int __real_socket(int domain, int type, int protocol);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);
int __real_close(int fd);
ssize_t __real_send(int fd, const void *bytes, size_t count, int flags);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags);
int __wrap_close(int fd);
ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags);

static int opened(int fd)
{
    if (fd >= 0) {
        CHECK(fd < FILES && !is_socket[fd], "descriptor %d", fd);
        is_socket[fd] = true;
        now++;
        made++;
        most = now > most ? now : most;
    }
    return fd;
}

int __wrap_socket(int domain, int type, int protocol)
{
    return opened(__real_socket(domain, type, protocol));
}

/* Rank 0 is late, so that all the others are at its listener at once. */
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *bytes, int flags)
{
    static bool late;

    if (rank_self->rank == 0 && !late)
        usleep(500000);
    late = true;
    return opened(__real_accept4(fd, address, bytes, flags));
}

int __wrap_close(int fd)
{
    if (fd >= 0 && fd < FILES && is_socket[fd]) {
        is_socket[fd] = false;
        now--;
    }
    return __real_close(fd);
}

ssize_t __wrap_send(int fd, const void *bytes, size_t count, int flags)
{
    ssize_t done = __real_send(fd, bytes, count, flags);

    sent += done > 0;
    return done;
}

static long open_sockets(void)
{
    char path[280], target[64];
    struct dirent *entry;
    DIR *folder = opendir("/proc/self/fd");
    long count = 0;

    CHECK(folder, "/proc/self/fd");
    while ((entry = readdir(folder))) {
        ssize_t bytes;

        snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        bytes = readlink(path, target, sizeof(target) - 1);
        target[bytes > 0 ? bytes : 0] = '\0';
        count += strncmp(target, "socket:", 7) == 0;
    }
    closedir(folder);
    return count;
}

/* All have their overlay; no rank has left yet. */
static void look(struct rank *rank, struct gy_poller *poller, struct gy_overlay *overlay)
{
    int64_t deadline = gy_now() + rank->timeout;
    int ready = 0;

    atomic_store(&rank->stage, STAGE_READY);
    while (ready < rank->size) { /* the last handshakes are still answered by us */
        CHECK(gy_now() < deadline && gy_overlay_check(overlay, &rank->error) == GYRE_SUCCESS, "rank %d: %s", rank->rank,
              rank->error.text);
        gy_poller_poll(poller, 5 * GY_MILLISECOND);
        ready = 0;
        for (int i = 0; i < rank->size; i++)
            ready += atomic_load(&rank[i - rank->rank].stage) >= STAGE_READY;
    }
    rank->found[FOUND_NOW] = now;
    rank->found[FOUND_MOST] = most;
    rank->found[FOUND_SENT] = sent;
    rank->found[FOUND_OPEN] = open_sockets();
    rank->found[FOUND_MADE] = made;
}

static void cost(int size, int logs, const char *secret)
{
    char address[96];
    struct rank *ranks;
    long ended = 0, peak = 0, messages = 0;

    ranks_address_tcp(address);
    ranks = ranks_make(size, size, address);
    for (int i = 0; i < size; i++) {
        ranks[i].overlay = ranks[i].together = true;
        ranks[i].body = look;
        ranks[i].secret = secret;
    }
    ranks_run(ranks, size);
    for (int i = 0; i < size; i++) {
        const long *found = ranks[i].found;
        /* While it meets: its listener, the parent or (rank 0) the listener and its registrants, the children; early
         * overlay. */
        long most_allowed = 1 + (i ? 2 : 1 + GUESTS) + logs + 2 * logs;
        /* A handshake is two messages of either side; the registration, the tree, the overlay with its identities. On a
         * busy machine a few handshakes are cut short and tried again. */
        long sent_allowed = 2 + 2 + 2 + 1 + 1 + logs * (2 + 3) + 2 * logs * (2 + 1) + 12;

        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
        CHECK(found[FOUND_NOW] == found[FOUND_OPEN], "rank %d: %ld sockets counted, %ld there are", i, found[FOUND_NOW],
              found[FOUND_OPEN]);
        CHECK(found[FOUND_OPEN] == 2 * logs, "rank %d of %d: %ld sockets at the end", i, size, found[FOUND_OPEN]);
        CHECK(found[FOUND_MOST] <= most_allowed, "rank %d of %d: %ld sockets at once, %ld in all", i, size,
              found[FOUND_MOST], found[FOUND_MADE]);
        CHECK(found[FOUND_SENT] <= sent_allowed + (i ? 0 : 3 * (size - 1)), "rank %d of %d sent %ld", i, size,
              found[FOUND_SENT]);
        ended = found[FOUND_OPEN] > ended ? found[FOUND_OPEN] : ended;
        peak = i && found[FOUND_MOST] > peak ? found[FOUND_MOST] : peak;
        messages = i && found[FOUND_SENT] > messages ? found[FOUND_SENT] : messages;
    }
    printf("%2d ranks%s: a rank sends at most %ld messages, has at most %ld sockets at once and %ld in the end; "
           "rank 0 %ld, %ld and %ld\n",
           size, secret ? "" : ", no secret", messages, peak, ended, ranks[0].found[FOUND_SENT],
           ranks[0].found[FOUND_MOST], ranks[0].found[FOUND_OPEN]);
}

int main(void)
{
    ranks_begin(230);
    setenv("GYRE_LOG", "warn", 0);
    cost(8, 3, SECRET);
    cost(64, 6, SECRET);
    cost(64, 6, NULL);
    return 0;
}
