/* Faults: what the survivors are told, and how soon. The argument is the scenario:
 *
 *   kills          SIGKILL of a random rank at a random moment, GYRE_TEST_KILLS times (20)
 *   boot, destroy  kills during these
 *   stop           SIGSTOP: PEER_STALLED
 *   forked         the victim's forked child sleeps on
 *   straggler      computing for longer than the stall clock is no error
 *   computing      a third of the ranks is not in a call
 *
 * This process is the launcher: it forks the ranks (it has no threads and no library state), shares one page with them
 * for time stamps and reports, and checks afterwards that no process and no file in /dev/shm is left. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "support/rank.h"

#define RANKS_MOST 16
#define DEADLINE_MS 100

struct report {
    volatile uint64_t calls; /* finished; written by the rank, read by the launcher */
    volatile int done;
    gyre_status status;
    int64_t when_ns;
    char text[1024];
};

struct shared {
    struct report reports[RANKS_MOST];
};

static struct shared *shared;
static int ranks, port;
static pid_t pids[RANKS_MOST];
static const char *scenario;
static unsigned buckets[8];
static const int edges_ms[8] = {1, 2, 5, 10, 20, 50, 100, 1 << 30};
static uint64_t chance;

static uint64_t draw(uint64_t below)
{
    chance += 0x9e3779b97f4a7c15u;
    uint64_t x = (chance ^ chance >> 30) * 0xbf58476d1ce4e5b9u;
    return (x ^ x >> 31) % below;
}

static bool is(const char *name)
{
    return strcmp(scenario, name) == 0;
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

static void put_report(int rank, gyre_status status, const gyre_comm *comm)
{
    struct report *report = &shared->reports[rank];
    report->when_ns = rank_now_ns();
    report->status = status;
    snprintf(report->text, sizeof report->text, "%s", gyre_last_error(comm));
    __atomic_store_n(&report->done, 1, __ATOMIC_RELEASE);
}

static void prepare_rank(int rank)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    alarm(60);
    set_number("RANK", rank);
    set_number("WORLD_SIZE", ranks);
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    set_number("MASTER_PORT", port);
    setenv("GYRE_SECRET", "fault-test-secret-0123456789", 1);
    if (!getenv("GYRE_LOG"))
        setenv("GYRE_LOG", "error", 1);
    int null = open("/dev/null", O_WRONLY); /* gyre logs each error where it is decided: hundreds of lines here */
    if (!getenv("GYRE_TEST_VERBOSE") && null >= 0)
        dup2(null, 2);
}

static _Noreturn void run_rank(int rank, int victim)
{
    static float data[65536];
    gyre_comm *comm;
    prepare_rank(rank);
    gyre_status status = gyre_comm_create(NULL, &comm);
    if (status != GYRE_SUCCESS) {
        put_report(rank, status, NULL);
        _exit(0);
    }
    for (uint64_t i = 0; status == GYRE_SUCCESS; i++) {
        size_t count = (size_t)1 << (i % 17);
        if (is("computing") && rank % 3 == 1 && rank != victim)
            usleep(20000);
        if (is("straggler") && rank == victim && i == 5)
            usleep(3500000); /* stall clock: 1 s */
        if (is("forked") && rank == victim && i == 5 && fork() == 0)
            for (;;)
                pause();
        if ((is("straggler") && i == 10) || (is("destroy") && i == 20))
            break;
        status = gyre_all_reduce(comm, data, data, count, GYRE_FLOAT32, GYRE_SUM);
        shared->reports[rank].calls = i + 1;
    }
    put_report(rank, status, comm);
    gyre_comm_destroy(comm);
    _exit(0);
}

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(fd >= 0 && !bind(fd, (struct sockaddr *)&address, length) &&
          !getsockname(fd, (struct sockaddr *)&address, &length));
    close(fd);
    return ntohs(address.sin_port);
}

static void start_ranks(int victim)
{
    memset(shared, 0, sizeof *shared);
    port = free_port();
    for (int i = 0; i < ranks; i++) {
        pids[i] = fork();
        CHECK(pids[i] >= 0);
        if (pids[i] == 0)
            run_rank(i, victim);
        setpgid(pids[i], pids[i]);
    }
}

static void end_ranks(void)
{
    for (int i = 0; i < ranks; i++)
        kill(-pids[i], SIGKILL);
    while (wait(NULL) > 0) /* adopted grandchildren too */
        ;
    CHECK(errno == ECHILD);
}

static void dump(void)
{
    for (int i = 0; i < ranks; i++)
        fprintf(stderr, "  rank %d: %llu calls, %s, %s: %s\n", i, (unsigned long long)shared->reports[i].calls,
                shared->reports[i].done ? "reported" : "no report", gyre_status_name(shared->reports[i].status),
                shared->reports[i].text);
}

#define REQUIRE(condition, ...)           \
    do {                                  \
        if (!(condition)) {               \
            fprintf(stderr, __VA_ARGS__); \
            fputc('\n', stderr);          \
            dump();                       \
            end_ranks();                  \
            exit(1);                      \
        }                                 \
    } while (0)

static void wait_for_calls(uint64_t calls)
{
    int64_t limit = rank_now_ns() + 20000000000;
    for (int i = 0; i < ranks; i++) {
        while (shared->reports[i].calls < calls) {
            REQUIRE(rank_now_ns() < limit && !shared->reports[i].done, "the ranks did not get going");
            usleep(200);
        }
    }
}

static void wait_for_reports(int victim, int seconds)
{
    int64_t limit = rank_now_ns() + seconds * 1000000000ll;
    for (int i = 0; i < ranks; i++) {
        while (i != victim && !__atomic_load_n(&shared->reports[i].done, __ATOMIC_ACQUIRE)) {
            REQUIRE(rank_now_ns() < limit, "%s: rank %d hangs: no error %d s after rank %d was hit", scenario, i,
                    seconds, victim);
            usleep(500);
        }
    }
}

static void count_time(int64_t ns)
{
    int bucket = 0;
    while (ns >= edges_ms[bucket] * 1000000ll)
        bucket++;
    buckets[bucket]++;
}

/* The sentence names the culprit, the operation and the sequence number: a number near the calls that this rank had
 * finished. */
static void check_survivor(int rank, int victim, gyre_status wanted, int64_t hit_ns, int64_t most_ms)
{
    char name[32];
    const struct report *report = &shared->reports[rank];
    int64_t took = report->when_ns - hit_ns;
    snprintf(name, sizeof name, "rank %d", victim);
    REQUIRE(report->status == wanted, "rank %d got %s, not %s", rank, gyre_status_name(report->status),
            gyre_status_name(wanted));
    const char *found = strstr(report->text, name);
    REQUIRE(found && (found[strlen(name)] < '0' || found[strlen(name)] > '9'), "rank %d does not name %s: %s", rank,
            name, report->text);
    REQUIRE(strstr(report->text, "all_reduce"), "rank %d does not name the operation: %s", rank, report->text);
    bool sequence = false;
    for (uint64_t near = report->calls > 1 ? report->calls - 2 : 0; near <= report->calls + 1; near++) {
        char number[24];
        snprintf(number, sizeof number, "%llu", (unsigned long long)near);
        sequence = sequence || strstr(report->text, number);
    }
    REQUIRE(sequence, "rank %d does not give the sequence number after %llu calls: %s", rank,
            (unsigned long long)report->calls, report->text);
    REQUIRE(took <= most_ms * 1000000, "rank %d was told after %lld ms", rank, (long long)(took / 1000000));
    count_time(took > 0 ? took : 0);
}

static int64_t hit(int victim, int signal_number)
{
    int64_t when = rank_now_ns();
    kill(pids[victim], signal_number);
    return when;
}

static void round_kill(void)
{
    int victim = (int)draw((uint64_t)ranks);
    start_ranks(victim);
    wait_for_calls(is("forked") ? 8 : 3);
    usleep((useconds_t)draw(20000));
    int64_t when = hit(victim, SIGKILL);
    wait_for_reports(victim, 10);
    for (int i = 0; i < ranks; i++) {
        /* A rank that was computing learns it at its next call. */
        if (i != victim)
            check_survivor(i, victim, GYRE_PEER_DEAD, when, DEADLINE_MS + (is("computing") ? 20 : 0));
    }
    end_ranks();
}

static void round_stop(void)
{
    int victim = (int)draw((uint64_t)ranks);
    start_ranks(victim);
    wait_for_calls(3);
    int64_t when = hit(victim, SIGSTOP);
    wait_for_reports(victim, 20);
    for (int i = 0; i < ranks; i++) {
        if (i == victim)
            continue;
        /* A rank that is stopped outside of a call is late, not stalled: both name it; GYRE_TIMEOUT is set as short. */
        gyre_status status = shared->reports[i].status;
        REQUIRE(status == GYRE_PEER_STALLED || status == GYRE_PEER_LATE, "rank %d got %s", i, gyre_status_name(status));
        check_survivor(i, victim, status, when, 10000);
    }
    end_ranks();
}

static void round_straggler(void)
{
    start_ranks(ranks - 1);
    wait_for_reports(-1, 30);
    for (int i = 0; i < ranks; i++)
        REQUIRE(shared->reports[i].status == GYRE_SUCCESS, "a straggler became an error on rank %d", i);
    end_ranks();
}

/* During the meeting or the goodbye: everyone ends in time, with success or an error that is about a peer or the
 * meeting. */
static void round_edge(void)
{
    int victim = (int)draw((uint64_t)ranks);
    start_ranks(victim);
    if (is("destroy"))
        wait_for_calls(18);
    usleep((useconds_t)draw(is("boot") ? 30000 : 3000));
    hit(victim, SIGKILL);
    wait_for_reports(victim, 20);
    for (int i = 0; i < ranks; i++) {
        gyre_status status = shared->reports[i].status;
        bool legal = status == GYRE_SUCCESS || (status >= GYRE_PEER_DEAD && status <= GYRE_PEER_LEFT) ||
                     status == GYRE_MEETING_FAILED;
        REQUIRE(i == victim || legal, "rank %d got %s", i, gyre_status_name(status));
        REQUIRE(i == victim || is("destroy") || status != GYRE_SUCCESS, "rank %d did not notice", i);
    }
    end_ranks();
}

static int count_files(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        return 0;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void print_histogram(void)
{
    printf("%s, %d ranks, time until a survivor was told:\n", scenario, ranks);
    for (int i = 0, from = 0; i < 8; from = edges_ms[i++]) {
        if (i < 7)
            printf("  %3d to %3d ms  %u\n", from, edges_ms[i], buckets[i]);
        else
            printf("  over  %3d ms  %u\n", from, buckets[i]);
    }
}

int main(int argc, char **argv)
{
    const char *kills = getenv("GYRE_TEST_KILLS");
    scenario = argc > 1 ? argv[1] : "kills";
    ranks = argc > 2 ? atoi(argv[2]) : 4;
    CHECK(ranks >= 2 && ranks <= RANKS_MOST);
    int rounds = is("kills") ? (kills ? atoi(kills) : 20) : is("stop") || is("straggler") ? 1 : 8;
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED && !prctl(PR_SET_CHILD_SUBREAPER, 1));
    chance = (uint64_t)rank_now_ns();
    printf("seed %llu\n", (unsigned long long)chance);
    int files = count_files("/dev/shm");
    for (int i = 0; i < rounds; i++) {
        if (is("stop"))
            round_stop();
        else if (is("straggler"))
            round_straggler();
        else if (is("boot") || is("destroy"))
            round_edge();
        else
            round_kill();
    }
    print_histogram();
    if (count_files("/dev/shm") > files) {
        fprintf(stderr, "files are left in /dev/shm\n");
        return 1;
    }
    return 0;
}
