/* PMI-1, the simple process-management interface of MPICH's Hydra (mpiexec) and of Slurm (srun --mpi=pmi2): lines of
 * text over a socket that the process inherits as PMI_FD.
 *
 *   cmd=init ...            ──▶  cmd=response_to_init rc=0         once in a process
 *   cmd=get_my_kvsname      ──▶  cmd=my_kvsname kvsname=K          the name of the job's key-value space
 *   cmd=put kvsname=K key=gyre-EXCHANGE-RANK-PIECE value=...       this rank's part, as text in pieces
 *   cmd=barrier_in          ──▶  cmd=barrier_out                   when every rank has come
 *   cmd=get kvsname=K key=gyre-EXCHANGE-RANK-PIECE                 the part of every rank
 *   cmd=finalize                                                   at the end of the process: Hydra kills a job of
 *                                                                  which one process ends without
 *
 * Invariant: requests and answers alternate. Every line sent has its answer read before the next. After a failure or a
 * missed deadline nothing more is sent, and later worlds of this process are refused. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/launcher.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/mem.h"

#define LINE_MOST 4096
#define PIECE_MOST 512 /* characters of a value; the least that an implementation allows is 256 */
#define BASE64 sodium_base64_VARIANT_URLSAFE_NO_PADDING

/* One per process, as the socket is. */
static struct {
    pthread_mutex_t lock; /* guards the rest */
    int fd;               /* −1: not begun */
    pid_t owner;          /* a forked child may not speak */
    bool lost;            /* out of step */
    char space[256];      /* name of the key-value space */
    size_t piece;         /* characters of a value in one put */
    unsigned exchanges;
    char line[LINE_MOST];
    size_t got; /* bytes in `line` */
    int64_t timeout, deadline;
    struct gy_error *error; /* of the world that is being made */
    int rank, size;
} pmi = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

bool gy_pmi_value(const char *line, const char *key, char *value_p, size_t bytes)
{
    size_t length = strlen(key);

    for (const char *at = line; *at; at += strcspn(at, " ")) {
        at += strspn(at, " ");
        if (strncmp(at, key, length) != 0 || at[length] != '=')
            continue;
        const char *value = at + length + 1;
        size_t count = strcspn(value, " ");
        if (count >= bytes)
            return false;
        memcpy(value_p, value, count);
        value_p[count] = '\0';
        return true;
    }
    return false;
}

/* ---- lines ---- */

static const char closed[] = "it closed the connection";

static bool lose(const char *why)
{
    pmi.lost = true;
    gy_error_set(
        pmi.error, GYRE_MEETING_FAILED, -1,
        "rank %d cannot meet the others through its launcher (PMI_FD=%d): %s; set GYRE_ADDRESS=tcp://HOST:PORT "
        "on every rank to meet without it",
        pmi.rank, pmi.fd, why);
    return false;
}

static bool await(short events, const char *late)
{
    for (;;) {
        struct pollfd poller = {.fd = pmi.fd, .events = events};
        int64_t left = pmi.deadline - gy_now();
        int64_t most = 1000 * GY_SECOND; /* an int holds no more than 24 days of milliseconds */
        int count = left > 0 ? poll(&poller, 1, (int)((left < most ? left : most) / GY_MILLISECOND) + 1) : 0;

        if (count > 0)
            return true;
        if (count == 0 && left <= most)
            return lose(late);
        if (count < 0 && errno != EINTR)
            return lose(strerror(errno));
    }
}

static bool say(const char *line)
{
    size_t length = strlen(line), sent = 0;

    while (sent < length) {
        if (!await(POLLOUT, "it takes no message"))
            return false;
        ssize_t count = send(pmi.fd, line + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno != EINTR && errno != EAGAIN)
            return lose(errno == EPIPE || errno == ECONNRESET ? closed : strerror(errno));
        sent += count > 0 ? (size_t)count : 0;
    }
    return true;
}

/* The next line, without its end; valid until the one after it. */
static bool hear(char line_p[LINE_MOST], const char *late)
{
    char *end;

    while (!(end = memchr(pmi.line, '\n', pmi.got))) {
        if (pmi.got == sizeof(pmi.line))
            return lose("it sent a line without an end");
        if (!await(POLLIN, late))
            return false;
        ssize_t count = read(pmi.fd, pmi.line + pmi.got, sizeof(pmi.line) - pmi.got);
        if (count == 0 || (count < 0 && errno == ECONNRESET))
            return lose(closed);
        if (count < 0 && errno != EINTR && errno != EAGAIN)
            return lose(strerror(errno));
        pmi.got += count > 0 ? (size_t)count : 0;
    }
    size_t length = (size_t)(end - pmi.line);
    memcpy(line_p, pmi.line, length);
    line_p[length] = '\0';
    pmi.got -= length + 1;
    memmove(pmi.line, end + 1, pmi.got);
    return true;
}

/* Asks, and checks that the answer is `wanted` and no refusal. */
static bool ask(const char *question, const char *wanted, char answer_p[LINE_MOST], const char *late)
{
    char word[64], why[160];

    if (!say(question) || !hear(answer_p, late))
        return false;
    if (!gy_pmi_value(answer_p, "cmd", word, sizeof(word)) || strcmp(word, wanted) != 0) {
        snprintf(why, sizeof(why), "it answered \"%.80s\" where %s was expected", answer_p, wanted);
        return lose(why);
    }
    if (gy_pmi_value(answer_p, "rc", word, sizeof(word)) && strcmp(word, "0") != 0) {
        snprintf(why, sizeof(why), "it refused: \"%.80s\"", answer_p);
        return lose(why);
    }
    return true;
}

/* ---- the conversation ---- */

static bool begin(void)
{
    static const char silent[] = "it does not answer";
    char answer[LINE_MOST], number[16];

    if (!ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init", answer, silent) ||
        !ask("cmd=get_maxes\n", "maxes", answer, silent))
        return false;
    pmi.piece = PIECE_MOST;
    if (gy_pmi_value(answer, "vallen_max", number, sizeof(number)) && atol(number) > 64)
        pmi.piece = gy_min_size(PIECE_MOST, (size_t)atol(number) - 32);
    if (!ask("cmd=get_my_kvsname\n", "my_kvsname", answer, silent))
        return false;
    if (!gy_pmi_value(answer, "kvsname", pmi.space, sizeof(pmi.space)))
        return lose("it has no key-value space");
    return true;
}

/* The part as text without its last zeros: "LENGTH.PIECE", then further pieces. */
static bool put(const uint8_t *mine, size_t bytes)
{
    char command[LINE_MOST], answer[LINE_MOST];
    bool good = true;

    while (bytes > 0 && mine[bytes - 1] == 0)
        bytes--;
    size_t room = sodium_base64_encoded_len(bytes, BASE64), length, piece = 0;
    char *text = gy_alloc(room);
    if (!text)
        return lose("out of memory");
    sodium_bin2base64(text, room, mine, bytes, BASE64);
    length = strlen(text);
    for (size_t at = 0; good && (at < length || piece == 0); at += pmi.piece, piece++) {
        char head[24] = "";
        if (piece == 0)
            snprintf(head, sizeof(head), "%zu.", length);
        snprintf(command, sizeof(command), "cmd=put kvsname=%s key=gyre-%u-%d-%zu value=%s%.*s\n", pmi.space,
                 pmi.exchanges, pmi.rank, piece, head, (int)gy_min_size(pmi.piece, length - at), text + at);
        good = ask(command, "put_result", answer, "it does not answer");
    }
    sodium_memzero(text, room); /* the record has what the session's key is made of */
    gy_free(text);
    return good;
}

/* Whether all of `text`, `length` characters, is in place. */
static bool get_text(int rank, char *text, size_t room, size_t *length_p)
{
    char command[512], answer[LINE_MOST], value[LINE_MOST];
    size_t length = 0, used = 0;

    for (size_t piece = 0; piece == 0 || used < length; piece++) {
        char *from = value;

        snprintf(command, sizeof(command), "cmd=get kvsname=%s key=gyre-%u-%d-%zu\n", pmi.space, pmi.exchanges, rank,
                 piece);
        if (!ask(command, "get_result", answer, "it does not answer"))
            return false;
        if (!gy_pmi_value(answer, "value", value, sizeof(value)))
            return lose("it gave an answer without a value");
        if (piece == 0) {
            length = strtoul(value, &from, 10);
            if (from == value || *from++ != '.' || length >= room)
                return lose("a rank's part is not gyre's");
        }
        size_t count = strnlen(from, sizeof(value));
        if (count > length - used || (count == 0 && used < length))
            return lose("a rank's part is not gyre's");
        memcpy(text + used, from, count);
        used += count;
    }
    *length_p = length;
    return true;
}

static bool get(int rank, uint8_t *all, size_t bytes)
{
    size_t room = sodium_base64_encoded_len(bytes, BASE64), length = 0, count;
    char *text = gy_alloc(room);
    bool good = text ? get_text(rank, text, room, &length) : lose("out of memory");

    if (good && (sodium_base642bin(all, bytes, text, length, NULL, &count, NULL, BASE64) != 0))
        good = lose("a rank's part is not gyre's");
    if (good)
        memset(all + count, 0, bytes - count);
    if (text)
        sodium_memzero(text, room);
    gy_free(text);
    return good;
}

/* As gyre_exchange_func. */
static int exchange(void *user, const void *mine, void *all, size_t bytes)
{
    char answer[LINE_MOST];
    bool good;

    pthread_mutex_lock(&pmi.lock);
    pmi.error = user; /* of this world, whatever another thread has begun meanwhile */
    pmi.deadline = gy_now() + pmi.timeout;
    pmi.exchanges++;
    good = put(mine, bytes) && ask("cmd=barrier_in\n", "barrier_out", answer,
                                   "a rank of the job did not come to the meeting in time (GYRE_MEET_TIMEOUT); does "
                                   "every process of it call gyre_comm_create?");
    for (int rank = 0; good && rank < pmi.size; rank++)
        good = get(rank, (uint8_t *)all + (size_t)rank * bytes, bytes);
    pthread_mutex_unlock(&pmi.lock);
    return good ? 0 : -1;
}

/* Returns true if PMI_FD is an inherited socket or pipe. A stale number may be any file. */
static bool open_socket(struct gy_error *error)
{
    struct stat about;
    bool there;
    long fd = -1;

    if (!gy_launcher_number("PMI_FD", 0, 1 << 20, &fd, &there, error))
        return false;
    if (!there) {
        gy_error_set(error, GYRE_MEETING_FAILED, -1,
                     "PMI_RANK is set but PMI_FD is not, so that the ranks cannot meet through their launcher: set "
                     "GYRE_ADDRESS=tcp://HOST:PORT on every rank");
        return false;
    }
    if (fstat((int)fd, &about) != 0 || !S_ISSOCK(about.st_mode)) {
        gy_error_set(error, GYRE_MEETING_FAILED, -1,
                     "PMI_FD=%ld is no socket of a launcher's: the variable was left over from somewhere else; start "
                     "the program with mpiexec, or set GYRE_LAUNCHER or GYRE_ADDRESS",
                     fd);
        return false;
    }
    pmi.fd = (int)fd;
    pmi.owner = getpid();
    (void)fcntl(pmi.fd, F_SETFD, FD_CLOEXEC);
    return true;
}

static gyre_status place(struct gy_identity *identity, const struct gy_config *config, struct gy_error *error)
{
    bool good = true;

    pthread_mutex_lock(&pmi.lock);
    pmi.error = error;
    pmi.timeout = config->meet_timeout_ns;
    pmi.deadline = gy_now() + pmi.timeout;
    pmi.rank = identity->rank;
    pmi.size = identity->size;
    if (pmi.fd >= 0 && pmi.owner != getpid())
        good = lose("it belongs to the parent of this process");
    else if (pmi.lost)
        good = lose("the conversation with it has failed before");
    else if (pmi.fd < 0)
        good = open_socket(error) && begin();
    pthread_mutex_unlock(&pmi.lock);
    if (!good)
        return error->status;
    identity->exchange = exchange;
    identity->exchange_user = error;
    snprintf(identity->address_from, sizeof(identity->address_from), "PMI_FD");
    return GYRE_SUCCESS;
}

/* Runs where a process ends in order. A process killed by a signal skips it, and Hydra shall see that. */
__attribute__((destructor)) static void finalize(void)
{
    static const char word[] = "cmd=finalize\n";
    struct pollfd poller = {.fd = pmi.fd, .events = POLLIN};

    if (pmi.fd < 0 || pmi.owner != getpid() || pmi.lost ||
        send(pmi.fd, word, sizeof(word) - 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
    (void)poll(&poller, 1, 1000); /* its answer; then it does not take our end for a death */
}

const struct gy_launcher gy_launcher_pmi = {
    .name = "pmi",
    .program = "MPICH's mpiexec",
    .rank = "PMI_RANK",
    .size = "PMI_SIZE",
    .local = "MPI_LOCALRANKID",
    .inner = "PMI_RANK",
    .place = place,
};
