/* A rank that is missing, there twice, of another size, job, version, secret or setting, or that dies during the
 * bootstrap, is named on every rank that waits. These are whole bootstraps of real processes, over tcp:// or, with
 * the argument "file", over file://.
 *
 * The linker puts our own functions in front of the library's (--wrap). A rank of another version is one whose
 * handshakes say so, one of other rules has another last digit of them, and a rank has its tree position when its
 * parent has accepted it. One rank may close its connection at that very moment, as a rank does that rank 0 has told
 * of a failure. Its parent, which took the handshake for finished, must blame no rank. */
#include <signal.h>

#include "../system/fault_noise.h"
#include "bootstrap/tree.h"
#include "ranks.h"

void __real_gy_handshake_initiate(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES],
                                  uint64_t job, enum gy_purpose purpose, uint32_t from, uint32_t to,
                                  enum gy_integrity mode);
void __wrap_gy_handshake_initiate(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES],
                                  uint64_t job, enum gy_purpose purpose, uint32_t from, uint32_t to,
                                  enum gy_integrity mode);
void __real_gy_handshake_accept(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES], uint64_t job,
                                uint32_t rank, uint32_t size, uint32_t purposes, enum gy_integrity mode);
void __wrap_gy_handshake_accept(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES], uint64_t job,
                                uint32_t rank, uint32_t size, uint32_t purposes, enum gy_integrity mode);
void __real_gy_bootstrap_tree_join(struct gy_bootstrap_tree *tree, int parent, int fd, const struct gy_seal_keys *keys);
void __wrap_gy_bootstrap_tree_join(struct gy_bootstrap_tree *tree, int parent, int fd, const struct gy_seal_keys *keys);
size_t __real_gy_config_shared(const struct gy_config *config, char text_p[GY_CONFIG_SHARED]);
size_t __wrap_gy_config_shared(const struct gy_config *config, char text_p[GY_CONFIG_SHARED]);

enum found { FOUND_PARENT };
enum choice { JOINS, HANGS_UP, OTHER_RULES };

void __wrap_gy_handshake_initiate(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES],
                                  uint64_t job, enum gy_purpose purpose, uint32_t from, uint32_t to,
                                  enum gy_integrity mode)
{
    __real_gy_handshake_initiate(handshake, key, job, purpose, from, to, mode);
    if (rank_self->version == 0)
        return;
    handshake->version = rank_self->version;
    gy_handshake_initiate_again(handshake);
}

void __wrap_gy_handshake_accept(struct gy_handshake *handshake, const uint8_t key[GY_HANDSHAKE_KEY_BYTES], uint64_t job,
                                uint32_t rank, uint32_t size, uint32_t purposes, enum gy_integrity mode)
{
    __real_gy_handshake_accept(handshake, key, job, rank, size, purposes, mode);
    if (rank_self->version)
        handshake->version = rank_self->version;
}

size_t __wrap_gy_config_shared(const struct gy_config *config, char text_p[GY_CONFIG_SHARED])
{
    size_t bytes = __real_gy_config_shared(config, text_p);

    if (rank_self->choice == OTHER_RULES)
        text_p[strcspn(text_p, "\n") - 1] ^= 1;
    return bytes;
}

void __wrap_gy_bootstrap_tree_join(struct gy_bootstrap_tree *tree, int parent, int fd, const struct gy_seal_keys *keys)
{
    if (rank_self->choice == HANGS_UP) {
        close(fd);
        tree->turned_away = true;
    } else {
        __real_gy_bootstrap_tree_join(tree, parent, fd, keys);
    }
    rank_self->found[FOUND_PARENT] = parent;
    atomic_store(&rank_self->stage, STAGE_SEATED);
}

static char address[96];
static bool file;
/* Seconds: of a rank that waits for one that it refuses, and of a rank that is refused, long enough that it believes
 * the refusal: a file may be stale for 2 s. Rank 0 waits for longer than the ranks that may come later than it need. */
static double refusing, refused;

static int64_t nanoseconds(double seconds)
{
    return (int64_t)(seconds * 1e9);
}

/* `count` ranks of `size` that wait for at most `seconds`. */
static struct rank *prepare(int count, int size, double seconds)
{
    struct rank *ranks = ranks_make(count, size, address);

    for (int i = 0; i < count; i++)
        ranks[i].meet_timeout = nanoseconds(seconds);
    return ranks;
}

static void missing(void)
{
    struct rank *ranks = prepare(3, 5, 2.5);

    ranks_run(ranks, 3);
    ranks_expect(ranks, 3, GYRE_MEETING_FAILED, "missing: rank 3, 4");

    ranks = prepare(1, 3, 1); /* no process listens */
    ranks[0].rank = 1;
    ranks_run(ranks, 1);
    ranks_expect(ranks, 1, GYRE_MEETING_FAILED, file ? "No such file" : "Connection refused");
}

static void twice(void)
{
    struct rank *ranks = prepare(5, 8, 20);

    ranks[4].rank = 2;
    ranks_run(ranks, 5);
    ranks_expect(ranks, 5, GYRE_REFUSED, "rank 2 is there twice");
}

static void other_size(void)
{
    struct rank *ranks = prepare(5, 5, 20);

    ranks[2].size = 6;
    ranks_run(ranks, 5);
    ranks_expect(ranks, 5, GYRE_REFUSED, "rank 2 says that there are 6 ranks");

    /* A rank that cannot be: an unauthenticated peer may claim so too, so it only counts at the deadline. */
    ranks = prepare(4, 4, refusing);
    ranks[3].rank = 4;
    ranks[3].size = 5;
    ranks[3].meet_timeout = nanoseconds(refused);
    ranks_run(ranks, 4);
    ranks_expect(ranks, 3, GYRE_MEETING_FAILED, "rank 3; a process that says it is rank 4 was refused");
    ranks_expect(ranks + 3, 1, GYRE_REFUSED, "refused: wrong rank");
}

static void other_job(void)
{
    struct rank *ranks = prepare(4, 4, 20);

    for (int i = 0; i < 4; i++) {
        ranks[i].setting[0] = "TORCHELASTIC_RUN_ID";
        ranks[i].setting[1] = i == 3 ? "another run" : "this run";
    }
    ranks_run(ranks, 4);
    ranks_expect(ranks, 4, GYRE_REFUSED, "rank 3 belongs to another job");
}

/* A rank of an older or a newer gyre: it is told both versions at once, and all ranks that wait for it at the end.
 * `theirs` is the version in its handshakes; `ours` is this tree's. */
static void other_version(uint16_t ours, uint16_t theirs)
{
    struct rank *ranks = prepare(3, 3, refusing);
    char told[96], missing[160];

    for (int i = 0; i < 3; i++)
        ranks[i].version = i == 1 ? theirs : ours;
    ranks[1].meet_timeout = nanoseconds(refused);
    ranks_run(ranks, 3);
    snprintf(told, sizeof(told), "refused: wrong version: it speaks %u, this process %u", ours, theirs);
    snprintf(missing, sizeof(missing),
             "missing: rank 1 (one was refused: wrong version: it speaks %u, this process %u: ", theirs, ours);
    ranks_expect(ranks, 1, GYRE_MEETING_FAILED, missing);
    ranks_expect(ranks + 1, 1, GYRE_REFUSED, told);
    ranks_expect(ranks + 2, 1, GYRE_MEETING_FAILED, missing);

    ranks = prepare(3, 3, refusing); /* rank 0 is the one */
    for (int i = 0; i < 3; i++)
        ranks[i].version = i == 0 ? theirs : ours;
    ranks[1].meet_timeout = ranks[2].meet_timeout = nanoseconds(refused);
    ranks_run(ranks, 3);
    snprintf(told, sizeof(told), "refused: wrong version: it speaks %u, this process %u", theirs, ours);
    snprintf(missing, sizeof(missing), "1 (one was refused: wrong version: it speaks %u, this process %u: ", ours,
             theirs);
    ranks_expect(ranks, 1, GYRE_MEETING_FAILED, missing);
    ranks_expect(ranks + 1, 2, GYRE_REFUSED, told);
}

/* A process with another secret is refused, and the job bootstraps all the same. */
static void other_secret(void)
{
    struct rank *ranks = prepare(4, 3, 20);

    ranks[3].rank = 2;
    ranks[3].secret = "another secret of the tests";
    ranks[3].meet_timeout = 4 * GY_SECOND;
    ranks_run(ranks, 4);
    for (int i = 0; i < 3; i++)
        CHECK(ranks[i].status == GYRE_SUCCESS, "rank %d: %s", i, ranks[i].error.text);
    /* It may also have come when the bootstrap was over and the listener closed. */
    CHECK(ranks[3].status == GYRE_REFUSED || ranks[3].status == GYRE_MEETING_FAILED, "status %d", ranks[3].status);

    ranks = prepare(2, 3, refusing); /* rank 0 waits for rank 2, so that the intruder certainly meets it */
    ranks[1].rank = 2;
    ranks[1].secret = "another secret of the tests";
    ranks[1].meet_timeout = nanoseconds(refused);
    ranks_run(ranks, 2);
    ranks_expect(ranks + 1, 1, GYRE_REFUSED, "refused: wrong secret");
    ranks_expect(ranks, 1, GYRE_MEETING_FAILED, "2 (one was refused: wrong secret)");
}

/* A rank that has no time to find out whether the file is stale, and is refused until its deadline, reports the
 * refusal. */
static void hurried(void)
{
    struct rank *ranks = prepare(2, 3, refusing);

    ranks[1].rank = 2;
    ranks[1].secret = "another secret of the tests";
    ranks[1].meet_timeout = nanoseconds(1.8);
    ranks_start(ranks, 1, true);
    for (int64_t limit = gy_now() + 20 * GY_SECOND; access(address + strlen("file://"), F_OK) != 0;)
        CHECK(gy_now() < limit && usleep(1000) == 0, "rank 0 has written no file");
    ranks_start(ranks + 1, 1, true);
    ranks_end(ranks, 2);
    ranks_expect(ranks + 1, 1, GYRE_REFUSED, "refused: wrong secret");
}

static void other_setting(const char *name, const char *value, const char *words, bool by_exchange)
{
    struct rank *ranks = prepare(4, 4, 20);

    for (int i = 0; i < 4; i++)
        ranks[i].exchange = by_exchange;
    ranks[2].setting[0] = name;
    ranks[2].setting[1] = value;
    ranks_run(ranks, 4);
    ranks_expect(ranks, 4, GYRE_REFUSED, words);
}

static void other_rules(bool by_exchange)
{
    struct rank *ranks = prepare(4, 4, 20);

    for (int i = 0; i < 4; i++)
        ranks[i].exchange = by_exchange;
    ranks[2].choice = OTHER_RULES;
    ranks_run(ranks, 4);
    ranks_expect(ranks, 4, GYRE_REFUSED, "the build of gyre differs: rules ");
}

static void other_settings(void)
{
    other_setting("GYRE_TCP_TILE", "64k", "GYRE_TCP_TILE differs: 262144 on rank 0, 65536 on rank 2", false);
    other_setting("GYRE_SHM_SLOT", "8k", "GYRE_SHM_SLOT differs: 262144 on rank 0, 8192 on rank 2", false);
    other_setting("GYRE_TRANSPORT", "tcp", "GYRE_TRANSPORT differs: shm,rdma,tcp on rank 0, tcp on rank 2", false);
    other_setting("GYRE_INTEGRITY", "encrypt", "GYRE_INTEGRITY differs: off on rank 0, encrypt on rank 2", false);
    other_setting("GYRE_ALGORITHM", "all_reduce:ring",
                  "GYRE_ALGORITHM differs: (empty) on rank 0, all_reduce:ring on rank 2", false);
    other_setting("GYRE_TCP_TILE", "64k", "GYRE_TCP_TILE differs: 262144 on rank 0, 65536 on rank 2", true);
    other_setting("GYRE_INTERFACE", "127.0.0.1,127.0.0.2",
                  "GYRE_INTERFACE differs: 1 name on rank 0, 2 names on rank 2", false);
    other_setting("GYRE_INTERFACE", "127.0.0.1,127.0.0.2",
                  "GYRE_INTERFACE differs: 1 name on rank 0, 2 names on rank 2", true);
}

/* Seven of eight wait in the tree; one dies, and is named at once, not at the deadline nor by any other
 * clock of a meeting: in 5 s, and what a busy machine makes of them. */
static void death(int victim, bool of_a_parent)
{
    struct rank *ranks = prepare(7, 8, 30);
    char words[64];
    int64_t when, noise;

    for (int i = 0; i < 7; i++)
        ranks[i].victim = i == 0; /* rank 0 connects to no rank: it is not waited for */
    ranks_start(ranks, 7, true);
    ranks_await(ranks, 7, STAGE_SEATED);
    for (int i = 1; i < 7 && of_a_parent; i++) {
        if (ranks[i].found[FOUND_PARENT] > 0)
            victim = (int)ranks[i].found[FOUND_PARENT];
    }
    ranks[0].victim = false;
    ranks[victim].victim = true;
    fault_noise_begin();
    when = gy_now();
    kill(ranks[victim].pid, SIGKILL);
    ranks_end(ranks, 7);
    noise = fault_noise(when, gy_now());
    fault_noise_end();
    snprintf(words, sizeof(words), "rank %d", victim);
    for (int i = 0; i < 7; i++)
        CHECK(i == victim || strstr(ranks[i].error.text, words), "rank %d: %s", i, ranks[i].error.text);
    ranks_expect(ranks, 7, GYRE_PEER_DEAD, "died while the ranks were meeting");
    for (int i = 0; i < 7; i++)
        CHECK(i == victim || (ranks[i].when - when < 5 * GY_SECOND + 20 * noise && ranks[i].error.rank == victim),
              "rank %d after %.1f s blames %d", i, (double)(ranks[i].when - when) / 1e9, ranks[i].error.rank);
}

/* Its parent sees the end of its connection well before rank 3 dies. */
static void hung_up(int who)
{
    struct rank *ranks = prepare(7, 8, 30);
    int victim = who == 3 ? 4 : 3;

    for (int i = 0; i < 7; i++)
        ranks[i].victim = i == 0;
    ranks[who].choice = HANGS_UP;
    ranks_start(ranks, 7, true);
    ranks_await(ranks, 7, STAGE_SEATED);
    ranks[0].victim = false;
    ranks[victim].victim = true;
    usleep(300000);
    for (int i = 0; i < 7; i++)
        CHECK(ranks[i].stage < STAGE_ENDED, "rank %d blames the one that hung up: %s", i, ranks[i].error.text);
    kill(ranks[victim].pid, SIGKILL);
    ranks_end(ranks, 7);
    for (int i = 0; i < 7; i++)
        CHECK(i == victim || ranks[i].error.rank == victim, "rank %d blames %d: %s", i, ranks[i].error.rank,
              ranks[i].error.text);
    ranks_expect(ranks, 7, GYRE_PEER_DEAD, "died while the ranks were meeting");
}

static void everything(void)
{
    missing();
    twice();
    other_size();
    other_job();
    other_version(GY_HANDSHAKE_VERSION, GY_HANDSHAKE_VERSION + 1); /* newer */
    if (!file) {
        other_version(GY_HANDSHAKE_VERSION + 1, GY_HANDSHAKE_VERSION);   /* older */
        other_version(GY_HANDSHAKE_VERSION, 257 + GY_HANDSHAKE_VERSION); /* both bytes count */
    }
    other_secret();
    if (file)
        hurried();
    other_settings();
    other_rules(false);
    other_rules(true);
    death(3, false);
    death(0, false);
    death(0, true);
    hung_up(1);
    hung_up(6);
}

int main(int argc, char **argv)
{
    file = argc > 1 && strcmp(argv[1], "file") == 0;
    ranks_begin(230);
    setenv("GYRE_LOG", "error", 0);
    if (!getenv("GYRE_TEST_VERBOSE"))
        ranks_hush(); /* every rank logs its error; stdout has the error messages */
    if (file)
        ranks_address_file(address);
    else
        ranks_address_tcp(address);
    refusing = file ? 6 : 3; /* and longer than a rank waits for a core */
    refused = file ? 4 : 3;
    printf("at %s\n", address);
    everything();
    puts("every meeting failed as expected");
    return 0;
}
