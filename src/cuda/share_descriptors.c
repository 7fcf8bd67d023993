/* Descriptors for other processes: see share_descriptors.h. */
#include "cuda/share_descriptors.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/mem.h"

enum { BACKLOG = 64, REQUEST_MS = 1000, ANSWER_SECONDS = 2, NAME_BYTES = 16 };

struct answer {
    uint64_t number, count;
    uint64_t bytes[GY_DESCRIPTORS_MOST];
};
/* Room for the descriptors of a message. */
union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(GY_DESCRIPTORS_MOST * sizeof(int))];
};

struct offered {
    struct offered *next;
    uint64_t number;
    struct gy_descriptors descriptors;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list */
static struct offered *offers;

static pthread_mutex_t thread_lock = PTHREAD_MUTEX_INITIALIZER; /* of all below; never taken by the thread */
static unsigned users;
static pid_t owner; /* the process that has the thread */
static pthread_t thread;
static int listener = -1;
static char own_name[GY_DESCRIPTORS_NAME];

void gy_descriptors_close(struct gy_descriptors *descriptors)
{
    for (unsigned i = 0; i < descriptors->count; i++)
        close(descriptors->fd[i]);
    descriptors->count = 0;
}

bool gy_descriptors_have(const struct gy_descriptors *descriptors, uint64_t bytes)
{
    for (unsigned i = 0; i < descriptors->count; i++) {
        if (descriptors->bytes[i] > bytes)
            return false;
        bytes -= descriptors->bytes[i];
    }
    return bytes == 0;
}

static socklen_t address_of(const char *name, struct sockaddr_un *address_p)
{
    size_t length = strnlen(name, GY_DESCRIPTORS_NAME);

    *address_p = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(address_p->sun_path + 1, name, length); /* the leading zero makes it abstract */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* Whether the other end is a process of this user; `pid` other than 0: this one. */
static bool is_peer(int fd, pid_t pid)
{
    struct ucred peer;
    socklen_t bytes = sizeof(peer);

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid() &&
           (!pid || peer.pid == pid);
}

/* ---- The process that offers ------------------------------------------------------------------------------------- */

static void send_answer(int fd, const struct offered *offered, uint64_t number)
{
    struct answer answer = {.number = number};
    struct iovec piece = {&answer, sizeof(answer)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
    union control control;

    memset(&control, 0, sizeof(control));
    if (offered) {
        const struct gy_descriptors *given = &offered->descriptors;
        answer.count = given->count;
        memcpy(answer.bytes, given->bytes, given->count * sizeof(given->bytes[0]));
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(given->count * sizeof(int));
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(given->count * sizeof(int));
        memcpy(CMSG_DATA(&control.header), given->fd, given->count * sizeof(int));
    }
    (void)sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT); /* the taker's end of file tells of a failure */
}

static void serve(int fd)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    uint64_t number;

    if (!is_peer(fd, 0) || poll(&ready, 1, REQUEST_MS) != 1 ||
        recv(fd, &number, sizeof(number), MSG_DONTWAIT) != (ssize_t)sizeof(number))
        return;
    pthread_mutex_lock(&lock);
    const struct offered *found = offers;
    while (found && found->number != number)
        found = found->next;
    send_answer(fd, found, number);
    pthread_mutex_unlock(&lock);
}

/* Ends when the listener is shut down. */
static void *serve_all(void *listening)
{
    const int at = *(const int *)listening;

    for (;;) {
        int fd = accept4(at, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            serve(fd);
            close(fd);
        } else if (errno == EINVAL || errno == EBADF) {
            return NULL;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            usleep(1000); /* no descriptors or no memory */
        }
    }
}

/* Returns false and errno. */
static bool listen_at_new_name(void)
{
    unsigned char random[NAME_BYTES];
    char text[2 * NAME_BYTES + 1];
    struct sockaddr_un address;

    randombytes_buf(random, sizeof(random));
    snprintf(own_name, sizeof(own_name), "gyre-gpu-%s", sodium_bin2hex(text, sizeof(text), random, sizeof(random)));
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t bytes = address_of(own_name, &address);
    if (listener >= 0 && bind(listener, (struct sockaddr *)&address, bytes) == 0 && listen(listener, BACKLOG) == 0)
        return true;
    int reason = errno;
    if (listener >= 0)
        close(listener);
    listener = -1;
    errno = reason;
    return false;
}

/* Signals are for the threads of the program. Returns 0, or an errno. */
static int start_thread(void)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int reason = pthread_create(&thread, NULL, serve_all, &listener);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (reason == 0)
        return 0;
    close(listener);
    listener = -1;
    return reason;
}

bool gy_descriptors_begin(char name_p[GY_DESCRIPTORS_NAME], char *why, size_t why_bytes)
{
    pthread_mutex_lock(&thread_lock);
    int reason = 0;
    if (users == 0)
        reason = listen_at_new_name() ? start_thread() : errno;
    if (reason == 0) {
        users++;
        owner = getpid();
        memcpy(name_p, own_name, sizeof(own_name));
    } else {
        snprintf(why, why_bytes, "no thread that gives GPU memory to other processes: %s", strerror(reason));
    }
    pthread_mutex_unlock(&thread_lock);
    return reason == 0;
}

void gy_descriptors_end(void)
{
    pthread_mutex_lock(&thread_lock);
    if (owner == getpid() && users && --users == 0) {
        shutdown(listener, SHUT_RDWR);
        pthread_join(thread, NULL);
        close(listener);
        listener = -1;
    }
    pthread_mutex_unlock(&thread_lock);
}

bool gy_descriptors_offer(uint64_t number, const struct gy_descriptors *descriptors)
{
    struct offered *made = gy_alloc(sizeof(*made));

    if (!made)
        return false;
    pthread_mutex_lock(&lock);
    *made = (struct offered){.next = offers, .number = number, .descriptors = *descriptors};
    offers = made;
    pthread_mutex_unlock(&lock);
    return true;
}

void gy_descriptors_withdraw(uint64_t number)
{
    struct offered *found = NULL;

    pthread_mutex_lock(&lock);
    for (struct offered **link = &offers; *link && !found; link = found ? link : &(*link)->next)
        if ((*link)->number == number) {
            found = *link;
            *link = found->next;
        }
    pthread_mutex_unlock(&lock);
    if (found)
        gy_descriptors_close(&found->descriptors);
    gy_free(found);
}

/* ---- The process that takes -------------------------------------------------------------------------------------- */

/* Connects; −1 and errno. */
static int connect_to(const char *name, pid_t pid)
{
    struct sockaddr_un address;
    socklen_t bytes = address_of(name, &address);
    const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) == 0 &&
        connect(fd, (struct sockaddr *)&address, bytes) == 0) {
        if (is_peer(fd, pid))
            return fd;
        errno = EPERM;
    }
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

/* Takes the descriptors of a message. False: not as many as it says. */
static bool take_fds(struct msghdr *message, const struct answer *answer, struct gy_descriptors *descriptors_p)
{
    const struct cmsghdr *header = CMSG_FIRSTHDR(message);
    size_t count = 0;

    _Static_assert(CMSG_LEN(GY_DESCRIPTORS_MOST * sizeof(int)) == CMSG_SPACE(GY_DESCRIPTORS_MOST * sizeof(int)),
                   "no message has more descriptors than there is room for");
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
        count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    if (count)
        memcpy(descriptors_p->fd, CMSG_DATA(header), count * sizeof(int));
    descriptors_p->count = (unsigned)count;
    memcpy(descriptors_p->bytes, answer->bytes, sizeof(answer->bytes));
    return count && count == answer->count && !(message->msg_flags & MSG_CTRUNC);
}

/* Returns 0, or an errno. */
static int ask(int fd, uint64_t number, struct gy_descriptors *descriptors_p)
{
    struct answer answer = {0};
    struct iovec piece = {&answer, sizeof(answer)};
    union control control;
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

    if (send(fd, &number, sizeof(number), MSG_NOSIGNAL) != (ssize_t)sizeof(number))
        return errno;
    ssize_t got = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0)
        return errno == EAGAIN ? ETIMEDOUT : errno;
    if (take_fds(&message, &answer, descriptors_p) && got == (ssize_t)sizeof(answer) && answer.number == number)
        return 0;
    gy_descriptors_close(descriptors_p);
    return message.msg_flags & MSG_CTRUNC ? EMFILE : ENOENT;
}

bool gy_descriptors_take(const char *name, int32_t pid, uint64_t number, struct gy_descriptors *descriptors_p,
                         char *why, size_t why_bytes)
{
    descriptors_p->count = 0;
    int fd = connect_to(name, pid);
    int reason = fd < 0 ? errno : ask(fd, number, descriptors_p);

    if (fd >= 0)
        close(fd);
    if (reason == ENOENT)
        snprintf(why, why_bytes, "process %d offers this GPU memory no more", pid);
    else if (reason)
        snprintf(why, why_bytes, "process %d does not give its GPU memory: %s", pid, strerror(reason));
    return reason == 0;
}
