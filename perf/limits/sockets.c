/* limit-sockets: what the ways of the kernel to move bytes through TCP give, and cost the processor.
 *
 *     limit-sockets [MIB]                          two processes over loopback; 1024
 *     limit-sockets [MIB] serve ADDRESS            in one network namespace
 *     limit-sockets [MIB] dial ADDRESS             in another: perf/limits/sockets.sh
 *
 * Both ends send MIB MiB to each other at once, in pieces of 256 KiB, as the rounds of a ring do; one thread each:
 *
 *   plain        sendmsg and recvmsg, epoll where nothing moves: what gyre does
 *   sockets N    the same over N sockets, pieces dealt out in turn
 *   zerocopy     sendmsg with MSG_ZEROCOPY, completions from the error queue before a piece is used again
 *   uring        io_uring: one send and one receive under way on each end, a system call submits and waits
 *   uring zc     the same with IORING_OP_SEND_ZC
 *
 * GB/s one way (10^9 bytes), and seconds of both processes' processor per GB carried one way. Kernel time is
 * included as far as it is charged to them. The ways take turns; median of the rounds. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/errqueue.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE ((size_t)256 << 10)
#define PIECES 8 /* buffers for sending, used in turn */
#define SOCKETS_MOST 4
#define ROUNDS 5
#define PORT 29811

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double processor(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

struct end {
    int fd[SOCKETS_MOST], sockets;
    unsigned char *out, *in; /* PIECES pieces; one */
};

/* ---- plain, several sockets, zero-copy ---- */

/* How far one socket is: bytes. */
struct progress {
    size_t sent, received, total;
    uint32_t posted, released; /* zero-copy sends, and those whose memory is free again; numbers of the socket's life */
};

/* Completions of zero-copy sends; the kernel reports ranges of their numbers. */
static void release(int fd, struct progress *p)
{
    char control[128];
    struct msghdr message = {.msg_control = control, .msg_controllen = sizeof control};
    while (recvmsg(fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0) {
        const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        if (head) {
            struct sock_extended_err report;
            memcpy(&report, CMSG_DATA(head), sizeof report);
            if (report.ee_origin == SO_EE_ORIGIN_ZEROCOPY)
                p->released = report.ee_data + 1;
        }
        message.msg_controllen = sizeof control;
    }
}

static bool send_some(const struct end *end, int fd, struct progress *p, bool zerocopy)
{
    size_t piece = p->sent / PIECE, within = p->sent % PIECE;
    if (p->sent == p->total || (zerocopy && p->posted - p->released >= PIECES))
        return false;
    ssize_t sent = send(fd, end->out + piece % PIECES * PIECE + within, PIECE - within,
                        MSG_DONTWAIT | MSG_NOSIGNAL | (zerocopy ? MSG_ZEROCOPY : 0));
    if (sent < 0 && errno != EAGAIN && errno != ENOBUFS)
        fail("send");
    if (sent <= 0)
        return false;
    p->sent += (size_t)sent;
    p->posted += zerocopy;
    return true;
}

static bool receive_some(const struct end *end, int fd, struct progress *p)
{
    size_t within = p->received % PIECE;
    ssize_t got = p->received < p->total ? recv(fd, end->in + within, PIECE - within, MSG_DONTWAIT) : -1;
    if (got == 0)
        fail("the other end is gone");
    if (got < 0)
        return false;
    p->received += (size_t)got;
    return true;
}

static void by_calls(const struct end *end, size_t total, int sockets, bool zerocopy)
{
    static struct progress p[SOCKETS_MOST];
    struct pollfd watch[SOCKETS_MOST];
    for (int s = 0; s < sockets; s++) {
        p[s].sent = p[s].received = 0;
        p[s].total = total / (size_t)sockets;
    }
    for (bool open = true; open;) {
        bool moved = false;
        open = false;
        for (int s = 0; s < sockets; s++) {
            moved |= send_some(end, end->fd[s], &p[s], zerocopy);
            moved |= receive_some(end, end->fd[s], &p[s]);
            if (zerocopy && p[s].released != p[s].posted)
                release(end->fd[s], &p[s]);
            bool writes = p[s].sent < p[s].total && (!zerocopy || p[s].posted - p[s].released < PIECES);
            watch[s] = (struct pollfd){end->fd[s], (short)(POLLIN | (writes ? POLLOUT : 0)), 0};
            open |= p[s].sent < p[s].total || p[s].received < p[s].total || p[s].released != p[s].posted;
        }
        if (open && !moved)
            (void)poll(watch, (nfds_t)sockets, 10); /* an error queue wakes it too */
    }
}

static void plain(const struct end *end, size_t total)
{
    by_calls(end, total, 1, false);
}

static void two_sockets(const struct end *end, size_t total)
{
    by_calls(end, total, 2, false);
}

static void four_sockets(const struct end *end, size_t total)
{
    by_calls(end, total, 4, false);
}

static void zerocopy(const struct end *end, size_t total)
{
    by_calls(end, total, 1, true);
}

/* ---- io_uring, by hand: two entries are all that is ever under way ---- */

struct ring {
    int fd;
    unsigned *sq_tail, *sq_mask, *sq_array, *cq_head, *cq_tail, *cq_mask;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
    unsigned unsubmitted;
};

enum { SENT, RECEIVED };

static void open_ring(struct ring *ring)
{
    struct io_uring_params params = {.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
    ring->fd = (int)syscall(SYS_io_uring_setup, 16, &params);
    if (ring->fd < 0)
        fail("io_uring_setup");
    size_t sq = params.sq_off.array + params.sq_entries * sizeof(unsigned),
           cq = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe), both = sq > cq ? sq : cq;
    char *at = mmap(NULL, both, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, IORING_OFF_SQ_RING);
    ring->sqes = mmap(NULL, params.sq_entries * sizeof *ring->sqes, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd,
                      (off_t)IORING_OFF_SQES);
    if (at == MAP_FAILED || ring->sqes == MAP_FAILED)
        fail("mmap of a ring");
    ring->sq_tail = (unsigned *)(void *)(at + params.sq_off.tail);
    ring->sq_mask = (unsigned *)(void *)(at + params.sq_off.ring_mask);
    ring->sq_array = (unsigned *)(void *)(at + params.sq_off.array);
    ring->cq_head = (unsigned *)(void *)(at + params.cq_off.head);
    ring->cq_tail = (unsigned *)(void *)(at + params.cq_off.tail);
    ring->cq_mask = (unsigned *)(void *)(at + params.cq_off.ring_mask);
    ring->cqes = (struct io_uring_cqe *)(void *)(at + params.cq_off.cqes);
}

static void submit(struct ring *ring, unsigned char op, int fd, void *memory, size_t bytes, uint64_t what)
{
    unsigned tail = *ring->sq_tail, index = tail & *ring->sq_mask;
    ring->sqes[index] = (struct io_uring_sqe){
        .opcode = op, .fd = fd, .addr = (uintptr_t)memory, .len = (unsigned)bytes, .user_data = what};
    if (op != IORING_OP_RECV)
        ring->sqes[index].msg_flags = MSG_NOSIGNAL | MSG_WAITALL; /* all of the piece: no short send */
    ring->sq_array[index] = index;
    __atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
    ring->unsubmitted++;
}

/* Submits what there is, and waits for one completion. */
static void enter(struct ring *ring)
{
    if (syscall(SYS_io_uring_enter, ring->fd, ring->unsubmitted, 1, IORING_ENTER_GETEVENTS, NULL, 0) < 0 &&
        errno != EINTR)
        fail("io_uring_enter");
    ring->unsubmitted = 0;
}

static void by_ring(const struct end *end, size_t total, unsigned char op)
{
    static struct ring ring;
    static bool there;
    size_t sent = 0, received = 0;
    bool sending = false, receiving = false;
    int held = 0; /* pieces that the kernel still reads: zero-copy */
    if (!there)
        open_ring(&ring);
    there = true;
    while (sent < total || received < total || held > 0) {
        if (!sending && sent < total && held < PIECES) {
            submit(&ring, op, end->fd[0], end->out + sent / PIECE % PIECES * PIECE + sent % PIECE, PIECE - sent % PIECE,
                   SENT);
            sending = true;
        }
        if (!receiving && received < total) {
            submit(&ring, IORING_OP_RECV, end->fd[0], end->in + received % PIECE, PIECE - received % PIECE, RECEIVED);
            receiving = true;
        }
        enter(&ring);
        unsigned head = *ring.cq_head;
        for (; head != __atomic_load_n(ring.cq_tail, __ATOMIC_ACQUIRE); head++) {
            const struct io_uring_cqe *done = &ring.cqes[head & *ring.cq_mask];
            if (done->flags & IORING_CQE_F_NOTIF) {
                held--;
                continue;
            }
            if (done->res <= 0) {
                errno = -done->res;
                fail("io_uring");
            }
            held += (done->flags & IORING_CQE_F_MORE) != 0;
            *(done->user_data == SENT ? &sent : &received) += (size_t)done->res;
            *(done->user_data == SENT ? &sending : &receiving) = false;
        }
        __atomic_store_n(ring.cq_head, head, __ATOMIC_RELEASE);
    }
}

static void uring(const struct end *end, size_t total)
{
    by_ring(end, total, IORING_OP_SEND);
}

static void uring_zc(const struct end *end, size_t total)
{
    by_ring(end, total, IORING_OP_SEND_ZC);
}

/* ---- the two ends ---- */

static const struct {
    const char *name;
    void (*run)(const struct end *end, size_t total);
} ways[] = {{"plain", plain},       {"sockets 2", two_sockets}, {"sockets 4", four_sockets},
            {"zerocopy", zerocopy}, {"uring", uring},           {"uring zc", uring_zc}};
#define WAYS (sizeof ways / sizeof ways[0])

static void connect_all(struct end *end, const char *address, bool serves)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int one = 1, listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, address, &at.sin_addr) != 1)
        fail(address);
    if (serves && (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
                   bind(listener, (void *)&at, sizeof at) || listen(listener, SOCKETS_MOST)))
        fail("bind");
    for (int s = 0; s < SOCKETS_MOST; s++) {
        int fd = serves ? accept4(listener, NULL, NULL, SOCK_CLOEXEC) : -1;
        for (int tries = 0; !serves && tries < 200; tries++) {
            fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (connect(fd, (void *)&at, sizeof at) == 0)
                break;
            close(fd);
            fd = -1;
            usleep(20000);
        }
        if (fd < 0)
            fail("connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one);
        end->fd[s] = fd;
    }
    close(listener);
}

/* Both ends know that the other is there. */
static void meet(const struct end *end, double mine, double *theirs_p)
{
    if (send(end->fd[0], &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine ||
        recv(end->fd[0], theirs_p, sizeof mine, MSG_WAITALL) != sizeof mine)
        fail("meet");
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void run_end(const char *address, bool serves, size_t total)
{
    static double speed[WAYS][ROUNDS], cost[WAYS][ROUNDS];
    struct end end = {.out = aligned_alloc(4096, PIECES * PIECE), .in = aligned_alloc(4096, PIECE)};
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(serves ? 0 : 1, &set);
    sched_setaffinity(0, sizeof set, &set);
    if (!end.out || !end.in)
        fail("memory");
    memset(end.out, 1, PIECES * PIECE);
    memset(end.in, 0, PIECE);
    connect_all(&end, address, serves);
    for (int round = -1; round < ROUNDS; round++) /* the first warms up */
        for (size_t w = 0; w < WAYS; w++) {
            double theirs, used, began;
            meet(&end, 0, &theirs);
            began = now();
            used = processor();
            ways[w].run(&end, total);
            used = processor() - used;
            meet(&end, used, &theirs);
            if (round >= 0) {
                speed[w][round] = (double)total / (now() - began) / 1e9;
                cost[w][round] = (used + theirs) / ((double)total / 1e9);
            }
        }
    for (size_t w = 0; serves && w < WAYS; w++) {
        qsort(speed[w], ROUNDS, sizeof(double), compare);
        qsort(cost[w], ROUNDS, sizeof(double), compare);
        printf("%-10s %8.2f GB/s (%.2f to %.2f)   %6.3f s of the processor per GB\n", ways[w].name,
               speed[w][ROUNDS / 2], speed[w][0], speed[w][ROUNDS - 1], cost[w][ROUNDS / 2]);
    }
}

int main(int argc, char **argv)
{
    long mib = argc > 1 ? strtol(argv[1], NULL, 10) : 1024;
    if (mib < 1 || (argc != 1 && argc != 2 && argc != 4)) {
        fprintf(stderr, "usage: limit-sockets [MIB [serve|dial ADDRESS]]\n");
        return 2;
    }
    size_t total = (size_t)mib << 20;
    if (argc == 4) {
        run_end(argv[3], strcmp(argv[2], "serve") == 0, total);
        return 0;
    }
    pid_t child = fork();
    if (child == 0) {
        run_end("127.0.0.1", false, total);
        _exit(0);
    }
    run_end("127.0.0.1", true, total);
    int status = 1;
    return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}
