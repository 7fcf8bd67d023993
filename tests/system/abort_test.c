/* After an error no buffer is accessed. Large collectives of all kinds are in flight in both directions when the
 * world ends; a request whose wait has returned gives its buffers back, and their pages are taken away at once:
 *
 *   wait returns an error ──► mprotect(PROT_NONE), or a pattern ──► more calls, destroy, a pause ──► no access
 *
 * An access by this process is a SIGSEGV; one by the kernel on its behalf would be an EFAULT, which the calls below
 * turn into an end as well; a write is seen in the pattern. Abort and destroy take under a second, and as much
 * longer as a sleeping process comes late on this machine. Arguments: the cause of the end, and the number of ranks.
 *
 *   thread     another thread of one rank aborts, while its main thread waits
 *   "everyone" a thread of every rank aborts, at about the same time
 *   death      a rank is killed */
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "support/launcher.h"

#define FLIGHT 4
#define BYTES ((size_t)6 << 20)
#define ROUNDS 8
#define PAUSE_NS (150 * INT64_C(1000000))

static const char *scenario;
static int ranks = 3, number, victim; /* the latter two: of the round */
static gyre_comm *comm;
static unsigned char *in[FLIGHT], *out[FLIGHT];
static gyre_request *requests[FLIGHT];
static bool given[FLIGHT]; /* back, by an error */
static int64_t aborted_ns;
static int *taken; /* shared: requests that ended with an error, of all ranks and rounds */

#pragma GCC visibility push(default) /* libgyre's calls come by here */

static ssize_t checked(ssize_t result, const char *name)
{
    if (result < 0 && errno == EFAULT) {
        fprintf(stderr, "%s touched a buffer that had been given back\n", name);
        _exit(1);
    }
    return result;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return checked(syscall(SYS_sendmsg, fd, message, flags), "sendmsg");
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    return checked(syscall(SYS_recvmsg, fd, message, flags), "recvmsg");
}

#pragma GCC visibility pop

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void *hit(void *unused)
{
    (void)unused;
    usleep((useconds_t)(200 + number * 7919 % 15000));
    if (is("death"))
        kill(getpid(), SIGKILL);
    aborted_ns = rank_now_ns();
    OK(NULL, gyre_comm_abort(comm));
    return NULL;
}

static volatile int64_t late_ns; /* the latest that a sleep of 1 ms ended */

static void *doze(void *unused)
{
    (void)unused;
    for (;;) {
        int64_t before = rank_now_ns();
        usleep(1000);
        int64_t late = rank_now_ns() - before - 1000000;
        late_ns = late > late_ns ? late : late_ns;
    }
    return NULL;
}

static void take_away(unsigned char *buffer)
{
    if (number % 2 == 0)
        CHECK(mprotect(buffer, BYTES, PROT_NONE) == 0);
    else
        memset(buffer, 0xa5, BYTES);
}

static void check_untouched(const unsigned char *buffer)
{
    for (size_t i = 0; i < BYTES; i++)
        if (buffer[i] != 0xa5)
            rank_fail("round %d: byte %zu was written after the error", number, i);
}

static gyre_status start(int k)
{
    size_t whole = BYTES / 4, part = whole / (size_t)ranks;
    switch (k) {
    case 0: return gyre_all_reduce_start(comm, in[k], out[k], whole, GYRE_FLOAT32, GYRE_SUM, &requests[k]);
    case 1: return gyre_all_gather_start(comm, in[k], out[k], part, GYRE_FLOAT32, &requests[k]);
    case 2: return gyre_broadcast_start(comm, in[k], out[k], whole, GYRE_FLOAT32, number % ranks, &requests[k]);
    default: return gyre_reduce_scatter_start(comm, in[k], out[k], part, GYRE_FLOAT32, GYRE_MAX, &requests[k]);
    }
}

static gyre_status wanted(void)
{
    return is("death") ? GYRE_PEER_DEAD : GYRE_ABORTED;
}

/* One after the other until the world ends; true when it has. A request that was not started, or ended well, keeps its
 * buffers too: they are the caller's. */
static bool run_requests(void)
{
    bool over = false;
    for (int k = 0; k < FLIGHT && !over; k++) {
        gyre_status status = start(k);
        if (status != GYRE_SUCCESS)
            GIVES(wanted(), comm, status);
        over = status != GYRE_SUCCESS;
    }
    for (int i = 0; i < FLIGHT; i++) {
        int k = (i + number) % FLIGHT;
        if (!requests[k])
            continue;
        gyre_status status = gyre_wait(&requests[k]);
        CHECK(requests[k] == NULL);
        if (status != GYRE_SUCCESS) {
            GIVES(wanted(), comm, status);
            take_away(in[k]);
            take_away(out[k]);
            given[k] = true;
            over = true;
        }
    }
    return over;
}

/* Under way until the world ends, since no rank sends them; the world may have ended already. */
static void start_in_vain(gyre_request *vain[2])
{
    static int never[2];
    for (int i = 0; i < 2; i++) {
        gyre_status status = gyre_recv_start(comm, &never[i], 1, GYRE_INT32, (gyre_comm_rank(comm) + 1) % ranks,
                                             &vain[i]);
        if (status != GYRE_SUCCESS)
            GIVES(wanted(), comm, status);
    }
}

/* All are over by now, and are collected together: what one ended with is told. */
static void wait_in_vain(gyre_request *vain[2])
{
    if (vain[0])
        GIVES(wanted(), comm, gyre_wait_all(vain, 2));
    CHECK(!vain[0] && !vain[1]);
}

static void run_rank(int rank)
{
    gyre_request *vain[2] = {NULL, NULL};
    pthread_t thread, dozer;
    bool hits = is("everyone") || rank == victim;
    alarm(70);
    if (number / 2 % 2) /* over links, also where there is shared memory */
        setenv("GYRE_ALGORITHM", "all_reduce:ring,all_gather:ring,reduce_scatter:ring", 1);
    for (int k = 0; k < FLIGHT; k++) {
        in[k] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        out[k] = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(in[k] != MAP_FAILED && out[k] != MAP_FAILED);
        memset(in[k], 0xa5, BYTES);
        memset(out[k], 0xa5, BYTES);
    }
    CHECK(pthread_create(&dozer, NULL, doze, NULL) == 0);
    OK(NULL, gyre_comm_create(NULL, &comm));
    if (gyre_barrier(comm) != GYRE_SUCCESS) /* a rank may be through it, and hit already */
        GIVES(wanted(), comm, gyre_barrier(comm));
    start_in_vain(vain);
    if (hits)
        CHECK(pthread_create(&thread, NULL, hit, NULL) == 0);
    while (!run_requests())
        ;
    int64_t ended = rank_now_ns();
    for (int i = 0; i < 100; i++) {
        GIVES(wanted(), comm, gyre_progress(comm));
        GIVES(wanted(), comm, gyre_all_reduce(comm, &i, &rank, 1, GYRE_INT32, GYRE_SUM));
    }
    wait_in_vain(vain);
    if (hits)
        pthread_join(thread, NULL);
    OK(NULL, gyre_comm_destroy(comm));
    int64_t took = rank_now_ns() - (hits ? aborted_ns : ended);
    if (took > 1000000000 + 10 * late_ns)
        rank_fail("round %d: abort and destroy took %lld ms, while sleepers came at most %lld ms late", number,
                  (long long)(took / 1000000), (long long)(late_ns / 1000000));
    while (rank_now_ns() < ended + PAUSE_NS)
        usleep(1000);
    int back = 0;
    for (int k = 0; k < FLIGHT; k++) {
        back += given[k];
        if (given[k] && number % 2) {
            check_untouched(in[k]);
            check_untouched(out[k]);
        }
    }
    __atomic_fetch_add(taken, back, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? argv[1] : "thread";
    ranks = argc > 2 ? atoi(argv[2]) : ranks;
    taken = launch_share(sizeof *taken);
    for (number = 0; number < ROUNDS; number++) {
        char what[64];
        victim = number % ranks;
        snprintf(what, sizeof what, "%s, round %d", scenario, number);
        launch_may_die = is("death") ? victim : -1;
        if (!launch(ranks, run_rank, 60, what))
            return 1;
    }
    printf("%s: %d rounds, the buffers of %d requests were taken away\n", scenario, ROUNDS, *taken);
    return *taken > ROUNDS ? 0 : 1; /* there was a load */
}
