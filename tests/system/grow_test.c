/* Growing: processes join a world that is there, and others leave it by SIGKILL, meanwhile too. Arguments: scenario,
 * ranks at first, hosts (0: as the machine is). GYRE_TEST_ROUNDS: how many changes (12); GYRE_TEST_SEED repeats a
 * run's choices, not its timing.
 *
 *   plain     one joiner, then two at once, one of them at the address of a member that is not rank 0; then none
 *   refused   a wrong secret, another setting, another number of interfaces: refused, and the world neither grows nor
 *             notices
 *   heirs     the rank that the file:// leads to dies, several times. Later processes find the world all the same, also
 *             when it consists of joiners, whose order has become another than that of their settings, and of which
 *             some have come to a member's own address
 *   changes   joiners come and ranks of every number die at random moments, several at once, so that deaths fall into
 *             growing, shrinking and the making of the next world
 *   frozen    a joiner is stopped before the listener, a member inside: the others go on. Resumed, the joiner joins and
 *             the member is EXCLUDED
 *   halts     a joiner, or a member when one comes, is stopped at one of the first calls by which it takes part,
 *             between the joiner's HERE and the end of the making of the new world, say. The others go on, and lose no
 *             other rank. Resumed, the member is EXCLUDED, and the joiner, too, or joins. GYRE_TEST_AT: at which calls,
 *             from this one on, of joiners, or of members of the rank GYRE_TEST_MEMBER
 *   host      rank 0 is stopped where the world has grown and not all joiners have been told, of two in turn the first
 *             and the second: they come again, to the other members, which go on
 *   waits     rank 0 waits for a second joiner for longer than the stall timeout: the first one is told so, and does
 *             not give up
 *   apart     a joiner is on another host, and the world has no transport but shared memory: all name two ranks that
 *             have none in common; the members go on without it (frozen, halts, host: grow_stops.c) */
#include "system/grow_world.h"

#define ALIVE_MOST 6

/* No process comes: the communicator goes on, and so do the ranks that shrink it. */
static void end_in_vain(gyre_comm *comm, int joiners)
{
    gyre_comm *next;
    OK(comm, gyre_comm_grow(comm, joiners, 0.05, &next));
    CHECK(next == NULL);
    OK(comm, gyre_barrier(comm));
    OK(comm, gyre_comm_shrink(comm, &next));
    OK(comm, gyre_comm_destroy(comm));
    OK(next, gyre_barrier(next));
    OK(next, gyre_comm_destroy(next));
}

static void plain_joiner(int own)
{
    /* the world as it was: neither means anything to a joiner, wherever it is said */
    gyre_config config = {.size = sizeof config, .rank = 0, .world_size = 3, .join = 1};
    setenv("RANK", "0", 1);
    setenv("WORLD_SIZE", "3", 1);
    gyre_comm *comm, *next;
    alarm(120);
    OK(NULL, gyre_comm_create(&config, &comm));
    uint64_t mine = UINT64_C(1) << own, sum;
    bool first = gyre_comm_size(comm) == 4;
    CHECK(gyre_comm_rank(comm) >= 3);
    OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
    CHECK(sum == (first ? 15u : 63u));
    char order[16];
    OK(comm, gyre_comm_get(comm, "order", order, sizeof order));
    CHECK(strcmp(order, "canonical") == 0);
    OK(comm, gyre_comm_get(comm, "ends", order, sizeof order));
    CHECK(strcmp(order, "uniform") == 0);
    if (first) {
        OK(comm, gyre_barrier(comm));
        OK(comm, gyre_comm_grow(comm, 0, 0, &next)); /* what it gives means nothing: rank 0 waits for two */
        OK(comm, gyre_comm_destroy(comm));
        comm = next;
        OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
        CHECK(sum == 63 && gyre_comm_rank(comm) == 3);
    }
    end_in_vain(comm, 0);
}

static void plain_member(int own)
{
    gyre_config shorter = {.size = offsetof(gyre_config, join),
                           .join = 1}; /* of an older header: the rest is not read */
    gyre_comm *comm, *next;
    uint64_t mine = UINT64_C(1) << own, sum;
    alarm(120);
    OK(NULL, gyre_comm_create(&shorter, &comm));
    OK(comm, gyre_comm_set(comm, "order", "canonical"));
    OK(comm, gyre_comm_set(comm, "ends", "uniform"));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_comm_grow(comm, -1, 0, &next));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_comm_grow(comm, 1, -1, &next));
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_comm_grow(comm, 1, 1, NULL));
    /* What rank 0 gives counts, for all; what the others give means nothing. */
    GIVES(GYRE_INVALID_ARGUMENT, comm, gyre_comm_grow(comm, own == 0 ? 65 : 0, 0, &next));
    OK(comm, gyre_comm_grow(comm, own == 0 ? 0 : -7, own == 0 ? 0 : -1, &next));
    CHECK(!next);
    if (own == 1)
        OK(comm, gyre_comm_get(comm, "meeting", grow_page->address, sizeof grow_page->address));
    for (int round = 0; round < 2; round++) {
        OK(comm, gyre_barrier(comm));
        if (own == 0)
            atomic_fetch_add(&grow_page->stop, 1); /* the launcher starts the joiners of this round */
        OK(comm, gyre_comm_grow(comm, 1 + round, 60, &next));
        CHECK(next && gyre_comm_size(next) == (round ? 6 : 4) && gyre_comm_rank(next) == own);
        OK(comm, gyre_comm_destroy(comm));
        comm = next;
        OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
        CHECK(sum == (round ? 63u : 15u));
    }
    end_in_vain(comm, 1);
}

static void await_round(int round)
{
    int64_t limit = rank_now_ns() + MORTALS_HANG_NS;
    while (atomic_load(&grow_page->stop) < round) {
        if (rank_now_ns() > limit)
            mortals_give_up("the members do not come to the growing");
        usleep(500);
    }
}

static void plain(void)
{
    for (int i = 0; i < 3; i++)
        mortals_start(3, NULL, plain_member);
    await_round(1);
    grow_start(plain_joiner);
    await_round(2);
    grow_start(plain_joiner);
    grow_address = grow_page->address;
    grow_start(plain_joiner);
    for (int i = 0; i < mortals.started; i++)
        mortals_reap(i, false);
}

static void refused(int own)
{
    static const struct {
        const char *name, *value, *words;
    } unfit[] = {{"GYRE_SECRET", "another-secret-of-the-tests-9876", "wrong secret"},
                 {"GYRE_ORDER", "canonical", "GYRE_ORDER differs: shape on rank 0, canonical"},
                 {"GYRE_INTERFACE", "127.0.0.1,127.0.0.2", "GYRE_INTERFACE differs: 1 name on rank 0, 2 names"}};
    gyre_comm *comm;
    alarm(60);
    setenv(unfit[own % 3].name, unfit[own % 3].value, 1);
    gyre_status status = gyre_comm_create(NULL, &comm);
    const char *text = gyre_last_error(NULL);
    if (status != GYRE_REFUSED || !strstr(text, unfit[own % 3].words))
        rank_fail("a newcomer that does not fit: %s: %s", gyre_status_name(status), text);
}

static void refuse(int ranks)
{
    grow_begin(ranks);
    int epoch = atomic_load(&grow_page->of[0].epoch);
    for (int i = 0; i < 3; i++) {
        int stranger = grow_start(refused);
        mortals_reap(stranger, false);
        mortals_forget(stranger);
    }
    grow_await();
    if (atomic_load(&grow_page->of[0].epoch) != epoch)
        mortals_give_up("a newcomer that does not fit has changed the world");
    grow_start(grow_run);
    grow_await();
    grow_end();
}

static void inherit(int ranks, int rounds)
{
    grow_inherits = true;
    grow_begin(ranks);
    for (int i = 0; i < rounds; i++) {
        /* such a one is rank 0 two rounds later, and a process that comes then reads the file */
        grow_address = i % 4 < 2 ? grow_page->of[grow_with_rank(ranks - 1)].address : NULL;
        mortals_kill(grow_with_rank(0));
        if (i % 2) /* else it comes while they still notice */
            grow_await();
        grow_start(grow_run);
        grow_await();
        grow_check_order();
    }
    grow_end();
}

/* With the last member the world ends, and joiners wait in vain. */
static bool has_member_but(int victim)
{
    for (int i = 0; i < mortals.started; i++)
        if (mortals_lives(i) && i != victim && atomic_load(&grow_page->of[i].epoch) > 0)
            return true;
    return false;
}

static void change(int ranks, int rounds)
{
    grow_begin(ranks);
    for (int i = 0; i < rounds; i++) {
        for (int more = 1 + (int)mortals_draw(3); more > 0; more--) {
            int living = __builtin_popcountll(mortals.alive), victim = (int)mortals_draw((uint64_t)mortals.started);
            usleep((useconds_t)mortals_draw(mortals_draw(2) ? 3000 : 30000));
            if (living < ALIVE_MOST && mortals.started < MORTALS_MOST && (living < 3 || mortals_draw(2)))
                grow_start(grow_run);
            while (living >= 3 && mortals_draw(2) && !mortals_lives(victim))
                victim = (int)mortals_draw((uint64_t)mortals.started);
            if (living >= 3 && mortals_lives(victim) && has_member_but(victim))
                mortals_kill(victim);
        }
        grow_await();
        grow_check_order();
    }
    grow_end();
}

static void be_here(int own)
{
    (void)own;
    setenv("GYRE_HOST_ID", "here", 1);
}

static void be_there(int own)
{
    (void)own;
    setenv("GYRE_HOST_ID", "there", 1);
}

static void be_in_two(int own)
{
    (own ? be_there : be_here)(own);
}

static void count_line(void *user, gyre_log_level level, const char *line)
{
    *(int *)user += level == GYRE_LOG_ERROR && strstr(line, "no transport in common");
}

static void meet_in_vain(int own)
{
    (void)own;
    gyre_comm *comm;
    int lines = 0;
    alarm(60);
    gyre_log_set(count_line, &lines);
    gyre_status status = gyre_comm_create(NULL, &comm);
    if (status != GYRE_PEER_UNREACHABLE || !strstr(gyre_last_error(NULL), "ranks 0 and 1 have no transport in common"))
        rank_fail("a world without a transport: %s: %s", gyre_status_name(status), gyre_last_error(NULL));
    gyre_log_set(NULL, NULL);
    if (lines > 1) /* none: the other one's word was there before */
        rank_fail("it is logged %d times", lines);
}

static void keep_apart(int ranks)
{
    for (int i = 0; i < 2; i++)
        mortals_start(2, be_in_two, meet_in_vain);
    for (int i = 0; i < 2; i++)
        mortals_reap(i, false);
    mortals_end();
    mortals_begin();
    char pair[64];
    for (int i = 0; i < ranks; i++)
        mortals_start(ranks, be_here, grow_run);
    grow_await();
    int stranger = mortals_start(0, be_there, grow_run);
    mortals_reap(stranger, false);
    mortals_forget(stranger);
    grow_await_going_on();
    for (int i = 0; i <= ranks;
         i++) { /* each names a pair that it is one of, if the other's word was not there before */
        bool named = false;
        for (int member = 0; member < ranks; member++) {
            snprintf(pair, sizeof pair, "ranks %d and %d have no transport in common", member, ranks);
            named |= strstr(grow_page->of[i].why, pair) != NULL;
        }
        if (!named) {
            fprintf(stderr, "process %d says: %s\n", i, grow_page->of[i].why);
            mortals_give_up("it is not said which ranks have no transport in common");
        }
    }
    grow_end();
}

static void sum_up(gyre_comm *comm, int own)
{
    uint64_t mine = UINT64_C(1) << own, sum;
    CHECK(gyre_comm_size(comm) == 4);
    OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_UINT64, GYRE_SUM));
    CHECK(sum == 15);
    OK(comm, gyre_comm_destroy(comm));
}

static void wait_for_two(int own)
{
    gyre_comm *comm, *next;
    alarm(60);
    OK(NULL, gyre_comm_create(NULL, &comm));
    OK(comm, gyre_comm_grow(comm, 2, 3, &next));
    CHECK(next);
    OK(comm, gyre_comm_destroy(comm));
    sum_up(next, own);
}

static void count_attempt(void *user, gyre_log_level level, const char *line)
{
    (void)level;
    *(int *)user += strstr(line, "comes again") != NULL;
}

static void wait_with_them(int own)
{
    gyre_comm *comm;
    int attempts = 0;
    alarm(60);
    setenv("GYRE_LOG", "info", 1);
    gyre_log_set(count_attempt, &attempts);
    OK(NULL, gyre_comm_create(NULL, &comm));
    sum_up(comm, own);
    gyre_log_set(NULL, NULL);
    if (attempts > 0)
        rank_fail("a newcomer has given up %d times, although rank 0 waits", attempts);
}

static void wait_in_vain(void)
{
    for (int i = 0; i < 3; i++)
        mortals_start(3, NULL, wait_for_two);
    grow_start(wait_with_them);
    for (int i = 0; i < mortals.started; i++)
        mortals_reap(i, false);
}

/* The last owner removes the file. */
static void check_file(void)
{
    char file[64];
    snprintf(file, sizeof file, "%s/meet", mortals.folder);
    if (access(file, F_OK) == 0)
        mortals_give_up("the last rank 0 has left its file");
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "plain";
    int ranks = count > 2 ? atoi(arguments[2]) : 3;
    int rounds = getenv("GYRE_TEST_ROUNDS") ? atoi(getenv("GYRE_TEST_ROUNDS")) : 12;
    mortals.hosts = count > 3 ? atoi(arguments[3]) : 0;
    mortals.tell = grow_tell;
    grow_page = launch_share(sizeof *grow_page);
    mortals_seed();
    mortals_begin();
    if (strcmp(what, "plain") == 0)
        plain();
    else if (strcmp(what, "refused") == 0)
        refuse(ranks);
    else if (strcmp(what, "heirs") == 0)
        inherit(ranks, rounds);
    else if (strcmp(what, "changes") == 0)
        change(ranks, rounds);
    else if (strcmp(what, "halts") == 0)
        grow_halt(ranks, rounds);
    else if (strcmp(what, "host") == 0)
        grow_host_halts(ranks, 2);
    else if (strcmp(what, "waits") == 0)
        wait_in_vain();
    else if (strcmp(what, "apart") == 0)
        keep_apart(ranks);
    else
        grow_freeze(ranks);
    check_file();
    mortals_end();
    return 0;
}
