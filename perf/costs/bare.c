#include "bare.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "turns.h"

#define LEAST (128 << 10) /* bytes that end the receiver's sleep */
#define PATIENCE_MS 20000
#define WORLD_NAPS 500 /* of a millisecond */

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* Rank 0's half: listens, says where, accepts. */
static int await(gyre_comm *comm, struct sockaddr_in *name)
{
    int32_t port = 0;
    socklen_t bytes = sizeof(*name);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    name->sin_port = 0;
    if (listener >= 0 && bind(listener, (struct sockaddr *)name, bytes) == 0 && listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)name, &bytes) == 0)
        port = ntohs(name->sin_port);
    EXPECT(comm, gyre_broadcast(comm, &port, &port, 1, GYRE_INT32, 0));
    struct pollfd wait = {.fd = listener, .events = POLLIN};
    int fd = port && poll(&wait, 1, PATIENCE_MS) == 1 ? accept(listener, NULL, NULL) : -1;
    close(listener);
    return fd;
}

static int dial(gyre_comm *comm, struct sockaddr_in *name)
{
    int32_t port = 0;
    EXPECT(comm, gyre_broadcast(comm, &port, &port, 1, GYRE_INT32, 0));
    int fd = port ? socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) : -1;
    name->sin_port = htons((uint16_t)port);
    if (fd >= 0 && connect(fd, (struct sockaddr *)name, sizeof(*name)) != 0)
        fail("bare: connect");
    return fd;
}

void bare_open(struct bare *bare, gyre_comm *comm, void *out, void *in, size_t bytes)
{
    const char *address = getenv("MASTER_ADDR");
    struct sockaddr_in name = {.sin_family = AF_INET};
    int least = LEAST;
    *bare = (struct bare){.comm = comm, .fd = -1, .out = out, .in = in, .bytes = bytes};
    if (gyre_comm_size(comm) != 2 || !address || inet_pton(AF_INET, address, &name.sin_addr) != 1)
        return;
    bare->fd = gyre_comm_rank(comm) == 0 ? await(comm, &name) : dial(comm, &name);
    if (bare->fd < 0)
        fail("bare: no connection");
    if (setsockopt(bare->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least)) != 0)
        fail("bare: SO_RCVLOWAT");
}

/* Runs in a thread, which must not call gyre: the first failure is kept for bare_wait. The end of the socket ends
 * the other thread. */
static void *give_up(struct bare *bare, const char *what, int problem)
{
    const char *none = NULL;
    if (atomic_compare_exchange_strong(&bare->failed, &none, what))
        bare->problem = problem;
    (void)shutdown(bare->fd, SHUT_RDWR);
    return NULL;
}

static void *send_all(void *argument)
{
    struct bare *bare = argument;
    for (size_t sent = 0; sent < bare->bytes;) {
        ssize_t now = send(bare->fd, bare->out + sent, bare->bytes - sent, MSG_NOSIGNAL);
        if (now <= 0)
            return give_up(bare, "send", errno);
        sent += (size_t)now;
    }
    return NULL;
}

static void *receive_all(void *argument)
{
    struct bare *bare = argument;
    for (size_t got = 0; got < bare->bytes;) {
        int least = bare->bytes - got < LEAST ? (int)(bare->bytes - got) : LEAST;
        struct pollfd wait = {.fd = bare->fd, .events = POLLIN};
        if (least < LEAST)
            (void)setsockopt(bare->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
        if (poll(&wait, 1, PATIENCE_MS) != 1)
            return give_up(bare, "poll", ETIMEDOUT);
        ssize_t now = recv(bare->fd, bare->in + got, bare->bytes - got, MSG_DONTWAIT);
        if (now == 0 || (now < 0 && errno != EAGAIN && errno != EINTR))
            return give_up(bare, "recv", now == 0 ? 0 : errno);
        got += now > 0 ? (size_t)now : 0;
    }
    int least = LEAST;
    (void)setsockopt(bare->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
    return NULL;
}

void bare_start(struct bare *bare)
{
    if (pthread_create(&bare->sender, NULL, send_all, bare) != 0 ||
        pthread_create(&bare->receiver, NULL, receive_all, bare) != 0)
        fail("bare: no thread");
}

void bare_wait(struct bare *bare)
{
    pthread_join(bare->sender, NULL);
    pthread_join(bare->receiver, NULL);
    if (!bare->failed)
        return;
    for (int nap = 0; nap < WORLD_NAPS; nap++) { /* the news of a death may come later than the end of the socket */
        EXPECT(bare->comm, gyre_progress(bare->comm));
        usleep(1000);
    }
    fprintf(stderr, "bare: %s: %s\n", bare->failed, bare->problem ? strerror(bare->problem) : "the connection ended");
    exit(1);
}
