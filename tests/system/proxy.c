/* The proxy of proxy.h: a process, a thread for each direction of each connection, blocking calls. Everything that
 * waits ends with the ranks or with proxy_stop. */
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net/address.h"
#include "net/socket.h"
#include "transport/sealed_frames.h"

#define SAID_BY_DIALER (GY_HANDSHAKE_BYTES_1 + GY_HANDSHAKE_BYTES_3)
#define SAID_BY_ACCEPTOR (GY_HANDSHAKE_BYTES_2 + GY_HANDSHAKE_BYTES_3)
#define PATIENCE_MS 200 /* for bytes to swap with */
#define PIECE 65536

int __real_gy_socket_connect_from(const struct gy_endpoint *endpoint, const struct sockaddr_storage *from);
int __wrap_gy_socket_connect_from(const struct gy_endpoint *endpoint, const struct sockaddr_storage *from);
int __wrap_gy_socket_connect(const struct gy_endpoint *endpoint);

static struct proxy *self;

struct connection {
    int end[2];          /* 0: the initiator's, 1: the acceptor's */
    _Atomic int purpose; /* 0: not heard yet */
    _Atomic int users;
};

struct direction {
    struct connection *connection;
    int from; /* index into end */
    uint64_t random;
};

/* ---- the ranks' side ---- */

int __wrap_gy_socket_connect(const struct gy_endpoint *endpoint)
{
    return __wrap_gy_socket_connect_from(endpoint, NULL);
}

int __wrap_gy_socket_connect_from(const struct gy_endpoint *endpoint, const struct sockaddr_storage *from)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}, to = own;
    socklen_t bytes = sizeof(own);
    if (!self || from || endpoint->is_unix || endpoint->address.ss_family != AF_INET)
        return __real_gy_socket_connect_from(endpoint, from);
    unsigned route = atomic_fetch_add(&self->routes, 1) % PROXY_ROUTES;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    to.sin_port = htons(self->port);
    if (bind(fd, (struct sockaddr *)&own, bytes) || getsockname(fd, (struct sockaddr *)&own, &bytes)) {
        close(fd);
        return -1;
    }
    self->route[route].target = endpoint->address;
    atomic_store(&self->route[route].source, own.sin_port);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

/* ---- moving bytes ---- */

static bool write_all(int fd, const uint8_t *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0)
            return false;
        bytes += sent;
        count -= (size_t)sent;
    }
    return true;
}

/* How many of `count` came, before the end or, if patience_ms >= 0, before so long a silence. */
static size_t read_some(int fd, uint8_t *bytes_p, size_t count, int patience_ms)
{
    size_t had = 0;
    while (had < count) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (patience_ms >= 0 && poll(&ready, 1, patience_ms) <= 0)
            break;
        ssize_t got = recv(fd, bytes_p + had, count - had, 0);
        if (got <= 0)
            break;
        had += (size_t)got;
    }
    return had;
}

/* As they come: no message waits for what its peer says only later. */
static bool pass(int from, int to, uint64_t count)
{
    uint8_t bytes[4096];
    while (count > 0) {
        ssize_t got = recv(from, bytes, count < sizeof(bytes) ? (size_t)count : sizeof(bytes), 0);
        if (got <= 0 || !write_all(to, bytes, (size_t)got))
            return false;
        count -= (uint64_t)got;
    }
    return true;
}

static void pass_rest(struct direction *direction, int from, int to)
{
    static const size_t most = PIECE;
    uint8_t *bytes = malloc(most);
    for (ssize_t got; bytes;) {
        size_t want = most;
        if (self->plan.fault == PROXY_DELAY) {
            direction->random = direction->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
            want = 1 + (direction->random >> 33) % 40000;
            nanosleep(&(struct timespec){.tv_nsec = (long)((direction->random >> 20) % 500000)}, NULL);
        }
        got = recv(from, bytes, want, 0);
        if (got <= 0 || !write_all(to, bytes, (size_t)got))
            break;
    }
    free(bytes);
}

/* ---- faults ---- */

/* Two stretches in the other order; false: nothing came to swap the first with. */
static bool swap(int from, int to, unsigned count)
{
    uint8_t first[256], second[256];
    size_t a = read_some(from, first, count, -1), b = read_some(from, second, count, PATIENCE_MS);
    bool swapped = a == count && b == count && memcmp(first, second, count) != 0;
    write_all(to, swapped ? second : first, swapped ? b : a);
    write_all(to, swapped ? first : second, swapped ? a : b);
    return swapped;
}

/* Does it to the bytes that come next; false: it could not be done to these. */
static bool strike(int from, int to)
{
    const struct proxy_plan *plan = &self->plan;
    unsigned count = plan->fault == PROXY_FLIP ? 1 : plan->bytes;
    uint8_t bytes[256];
    if (plan->fault == PROXY_SWAP)
        return swap(from, to, count);
    if (plan->fault == PROXY_CLOSE) {
        shutdown(from, SHUT_RDWR);
        shutdown(to, SHUT_RDWR);
        return true;
    }
    if (read_some(from, bytes, count, -1) < count)
        return false;
    if (plan->fault == PROXY_FLIP)
        bytes[0] ^= (uint8_t)(1u << plan->bit % 8);
    if (plan->fault != PROXY_CUT)
        write_all(to, bytes, count);
    if (plan->fault == PROXY_REPEAT)
        write_all(to, bytes, count);
    return true;
}

/* One whole frame of a sealed link whose header can be read; its bytes, 0: there is none. */
static size_t read_frame(int from, uint8_t *bytes_p, int patience_ms)
{
    struct gy_frame frame;
    struct pollfd ready = {.fd = from, .events = POLLIN};
    if (patience_ms >= 0 && poll(&ready, 1, patience_ms) <= 0)
        return 0;
    if (read_some(from, bytes_p, GY_ENVELOPE_HEAD, -1) < GY_ENVELOPE_HEAD ||
        !gy_frame_decode(bytes_p + GY_SEAL_NUMBER_BYTES, &frame))
        return 0;
    size_t rest = gy_envelope_bytes(&frame) - GY_ENVELOPE_HEAD;
    return read_some(from, bytes_p + GY_ENVELOPE_HEAD, rest, -1) == rest ? GY_ENVELOPE_HEAD + rest : 0;
}

static void strike_frame(int from, int to)
{
    size_t most = GY_ENVELOPE_HEAD + GY_FRAME_MAX + GY_SEAL_TAG_BYTES;
    uint8_t *bytes = malloc(2 * most);
    for (uint64_t i = 0; bytes && !atomic_load(&self->struck); i++) {
        size_t count = read_frame(from, bytes, -1), second = 0;
        if (count == 0)
            break;
        bool now = i >= self->plan.at;
        if (now && self->plan.fault == PROXY_FRAME_SWAP)
            second = read_frame(from, bytes + most, PATIENCE_MS);
        write_all(to, bytes + most, second);
        if (!now || self->plan.fault != PROXY_FRAME_CUT)
            write_all(to, bytes, count);
        if (now && self->plan.fault == PROXY_FRAME_REPEAT)
            write_all(to, bytes, count);
        if (now && (self->plan.fault != PROXY_FRAME_SWAP || second > 0))
            atomic_store(&self->struck, true);
    }
    free(bytes);
}

/* ---- connections ---- */

static bool pass_handshake(struct direction *direction, int from, int to)
{
    uint8_t first[8];
    if (direction->from == 1)
        return pass(from, to, SAID_BY_ACCEPTOR);
    if (read_some(from, first, sizeof(first), -1) < sizeof(first))
        return false;
    atomic_store(&direction->connection->purpose, first[7]);
    return write_all(to, first, sizeof(first)) && pass(from, to, SAID_BY_DIALER - sizeof(first));
}

static void *run_direction(void *argument)
{
    struct direction *direction = argument;
    struct connection *connection = direction->connection;
    const struct proxy_plan *plan = &self->plan;
    int from = connection->end[direction->from], to = connection->end[1 - direction->from];
    bool good = pass_handshake(direction, from, to);
    bool mine = atomic_load(&connection->purpose) == (int)plan->purpose &&
                plan->of_initiator == (direction->from == 0) && plan->fault > PROXY_DELAY &&
                !atomic_load(&self->struck);
    if (good && mine && plan->fault >= PROXY_FRAME_CUT) {
        strike_frame(from, to);
    } else if (good && mine && pass(from, to, plan->at)) {
        for (int attempt = 0; attempt < 20 && !atomic_load(&self->struck); attempt++)
            atomic_store(&self->struck, strike(from, to));
    }
    if (good)
        pass_rest(direction, from, to);
    shutdown(to, SHUT_WR);
    if (atomic_fetch_sub(&connection->users, 1) == 1) {
        close(connection->end[0]);
        close(connection->end[1]);
        free(connection);
    }
    free(direction);
    atomic_fetch_sub(&self->passing, 1);
    return NULL;
}

static int connect_to_listener(uint16_t source)
{
    for (int wait = 0; wait < 1000; wait++, usleep(1000))
        for (unsigned i = 0; i < PROXY_ROUTES; i++)
            if (atomic_load(&self->route[i].source) == source) {
                const struct sockaddr_storage *target = &self->route[i].target;
                int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                if (fd >= 0 && connect(fd, (const struct sockaddr *)target, gy_address_bytes(target)) == 0)
                    return fd;
                close(fd);
                return -1;
            }
    return -1;
}

static void serve(int initiator, uint16_t source)
{
    struct connection *connection = calloc(1, sizeof(*connection));
    int acceptor = connect_to_listener(source);
    if (!connection || acceptor < 0) {
        close(initiator);
        free(connection);
        return;
    }
    connection->end[0] = initiator;
    connection->end[1] = acceptor;
    connection->users = 2;
    for (int i = 0; i < 2; i++) {
        struct direction *direction = calloc(1, sizeof(*direction));
        pthread_t thread;
        if (!direction)
            abort();
        *direction = (struct direction){connection, i, self->plan.seed * 2 + (uint64_t)source + (uint64_t)i};
        atomic_fetch_add(&self->passing, 1);
        if (pthread_create(&thread, NULL, run_direction, direction))
            abort();
        pthread_detach(thread);
    }
}

_Noreturn static void run(int listener)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        struct sockaddr_in from;
        socklen_t bytes = sizeof(from);
        int fd = accept4(listener, (struct sockaddr *)&from, &bytes, SOCK_CLOEXEC);
        if (fd >= 0)
            serve(fd, from.sin_port);
    }
}

void proxy_start(struct proxy *proxy, const struct proxy_plan *plan)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(own);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&own, bytes) || listen(listener, 64) ||
        getsockname(listener, (struct sockaddr *)&own, &bytes)) {
        perror("proxy");
        _exit(1);
    }
    memset(proxy, 0, sizeof(*proxy));
    proxy->plan = *plan;
    proxy->port = ntohs(own.sin_port);
    self = proxy;
    pid_t pid = fork(); /* the child's result must not get into the shared memory */
    if (pid < 0)
        _exit(1);
    if (pid == 0)
        run(listener);
    proxy->pid = pid;
    close(listener);
}

void proxy_settle(const struct proxy *proxy)
{
    for (int tries = 0; tries < 30000 && atomic_load(&proxy->passing) > 0; tries++)
        usleep(1000);
}

void proxy_stop(struct proxy *proxy)
{
    kill(proxy->pid, SIGKILL);
    waitpid(proxy->pid, NULL, 0);
    self = NULL;
}

const char *proxy_fault_name(enum proxy_fault fault)
{
    static const char *const names[PROXY_FAULTS] = {"nothing", "delay", "close",     "flip",         "cut",
                                                    "repeat",  "swap",  "frame cut", "frame repeat", "frame swap"};
    return (unsigned)fault < PROXY_FAULTS ? names[fault] : "?";
}
