/* A test of two processes: the test, and a child that it forks before it touches the driver. They share a page, and
 * take turns by stages that only grow. A check that fails in the child ends it, and the test finds that. */
#ifndef GY_TESTS_CUDA_PAIR_H
#define GY_TESTS_CUDA_PAIR_H

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/device.h"
#include "support/gpu/gpu.h"

enum { PAIR_SECONDS = 15, PAIR_BYTES = 3 << 12 };
struct pair {
    int stage;
    uint32_t words[16];
    struct gy_cu_ipc_handle handle;
    _Alignas(16) unsigned char plain[1024]; /* what the test wants to tell */
};
static struct pair *pair;
static pid_t pair_child = -1; /* in the child 0 */
static int pair_socket;       /* of both, for descriptors */
static const struct gy_driver *cu;

#define CHECK(condition)                                                                                         \
    do {                                                                                                         \
        if (!(condition)) {                                                                                      \
            fprintf(stderr, "%s, line %d: not true: %s\n", pair_child ? "test" : "child", __LINE__, #condition); \
            if (!pair_child)                                                                                     \
                _exit(1);                                                                                        \
            cr_assert(false, "line %d: not true: %s", __LINE__, #condition);                                     \
        }                                                                                                        \
    } while (0)
#define CU(call) CHECK((call) == GY_CU_SUCCESS)

static inline void pair_tell(int stage)
{
    __atomic_store_n(&pair->stage, stage, __ATOMIC_RELEASE);
}

static inline void pair_await(int stage)
{
    int status;

    for (int turns = 0; __atomic_load_n(&pair->stage, __ATOMIC_ACQUIRE) < stage; turns++) {
        CHECK(turns < PAIR_SECONDS * 5000);
        if (pair_child > 0 && waitpid(pair_child, &status, WNOHANG) == pair_child)
            cr_assert(false, "the child ended with %#x before stage %d", (unsigned)status, stage);
        usleep(200);
    }
}

/* The child runs `body` and ends. */
static inline void pair_start(void (*body)(void))
{
    int ends[2];

    pair = mmap(NULL, sizeof(*pair), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(pair != MAP_FAILED && socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    pair_child = fork();
    CHECK(pair_child >= 0);
    pair_socket = ends[pair_child == 0];
    if (pair_child)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(PAIR_SECONDS);
    body();
    _exit(0);
}

static inline void pair_end(void)
{
    int status = -1;

    CHECK(waitpid(pair_child, &status, 0) == pair_child);
    if (status != 0)
        cr_assert(false, "the child ended with %#x", (unsigned)status);
}

static inline void pair_kill(void)
{
    CHECK(kill(pair_child, SIGKILL) == 0 && waitpid(pair_child, NULL, 0) == pair_child);
}

/* This process uses device `number` of `devices`, whose context is the current one. */
static inline struct gy_device pair_device(const char *devices, int number)
{
    struct gy_device device;
    char why[200] = "";

    gy_gpu_open(devices, pair_child ? 1 : 2);
    cu = gy_gpu_driver();
    if (!gy_device_open(&device, cu, number, why, sizeof(why)) || gy_device_enter(&device) != GY_CU_SUCCESS) {
        fprintf(stderr, "%s\n", why);
        CHECK(false);
    }
    return device;
}

static inline unsigned char pair_byte(size_t i, unsigned seed)
{
    return (unsigned char)(i * 37 + i / 251 + seed * 101);
}

static inline gy_cu_address pair_alloc(size_t bytes)
{
    gy_cu_address address = 0;

    CU(cu->mem_alloc(&address, bytes));
    return address;
}

static inline void pair_write(gy_cu_address address, size_t bytes, unsigned seed)
{
    unsigned char *host = malloc(bytes);

    CHECK(host);
    for (size_t i = 0; i < bytes; i++)
        host[i] = pair_byte(i, seed);
    CU(cu->copy_async(address, (uintptr_t)host, bytes, NULL));
    CU(cu->stream_synchronize(NULL));
    free(host);
}

/* Whether all bytes are those that pair_write wrote from its byte `from` on. */
static inline bool pair_reads(gy_cu_address address, size_t from, size_t bytes, unsigned seed)
{
    unsigned char *host = calloc(1, bytes);
    size_t i = 0;

    CHECK(host);
    CU(cu->copy_async((uintptr_t)host, address, bytes, NULL));
    CU(cu->stream_synchronize(NULL));
    while (i < bytes && host[i] == pair_byte(from + i, seed))
        i++;
    free(host);
    return i == bytes;
}

/* Frees memory and allocates until an allocation is at its address again. */
static inline gy_cu_address pair_alloc_again(gy_cu_address address, size_t bytes)
{
    gy_cu_address other[32];
    int count = 0;

    CU(cu->mem_free(address));
    do {
        CHECK(count < 32);
        other[count] = pair_alloc(bytes);
    } while (other[count++] != address);
    for (int i = 0; i < count - 1; i++)
        CU(cu->mem_free(other[i]));
    return address;
}

static inline void pair_send(int fd)
{
    char byte = 0, control[CMSG_SPACE(sizeof(fd))] = {0};
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);

    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    CHECK(sendmsg(pair_socket, &message, 0) == 1);
}

static inline int pair_receive(void)
{
    char byte, control[CMSG_SPACE(sizeof(int))];
    struct iovec piece = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    int fd;

    CHECK(recvmsg(pair_socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message));
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

#endif
