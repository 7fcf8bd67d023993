/* Elastic training: ranks are killed, by themselves at a chosen place of a chosen step and by their parent at
 * random. The survivors end with
 * - the bits of an undisturbed run with the same memberships (canonical order, Adam),
 * - the same where ranks train apart, and a death costs what was done since the last exchange,
 * - the same with one among them that is ten times slower than the others, which is not declared stopped,
 * - the bits of any undisturbed run (deterministic),
 * - the parameters of one rank to 1e-12 (fp64, momentum) and its losses to 1e-7 (costs are rounded to 2^-20 in each
 *   piece of a batch): a sample that is lost or used twice would show in the third digit. And every row of every
 *   step that counts was computed by just one of the ranks of that step. Argument: a seed for what the parent does;
 *   its time is not repeated. */
#include <math.h>

#include "elastic_ranks.h"

static uint64_t chance;

static uint64_t draw(uint64_t below)
{
    chance = chance * 6364136223846793005u + 1442695040888963407u;
    return (chance >> 33) % below;
}

/* Kills `deaths` ranks, each when it has come some steps further. True if the ranks that were not to die have ended
 * with status 0. */
static bool run(int ranks, int deaths, const char *what)
{
    char folder[] = "/tmp/gyre-elastic-XXXXXX", file[64];
    pid_t pids[RANKS_MOST];
    bool mortal[RANKS_MOST] = {false}, good = true;
    int64_t limit = rank_now_ns() + INT64_C(60000000000);
    memset(page, 0, sizeof *page);
    atomic_store(&page->deaths, deaths);
    CHECK(mkdtemp(folder));
    for (size_t i = 0; i < plan.nkills; i++)
        mortal[plan.kills[i].rank] = true;
    for (int i = 0; i < ranks + plan.joiners; i++) {
        CHECK((pids[i] = fork()) >= 0);
        if (pids[i] == 0) {
            launch_prepare(i, ranks, folder);
            if (i >= ranks)
                setenv("GYRE_JOIN", "1", 1);
            elastic_rank(i);
            _exit(0);
        }
        setpgid(pids[i], pids[i]);
    }
    for (uint64_t at = 0, most = deaths ? LAST_DEATH / (uint64_t)deaths : 0; deaths > 0; deaths--) {
        int victim = (int)draw((uint64_t)ranks);
        while (mortal[victim])
            victim = (victim + 1) % ranks;
        mortal[victim] = true;
        at += 1 + draw(most);
        while (atomic_load(&page->step[victim]) < at && rank_now_ns() < limit)
            usleep(100);
        usleep((useconds_t)draw(3000));
        kill(pids[victim], SIGKILL);
        atomic_store(&page->deaths, deaths - 1);
    }
    for (int i = 0; i < ranks + plan.joiners; i++) {
        int status = 0;
        while (waitpid(pids[i], &status, WNOHANG) != pids[i]) {
            if (rank_now_ns() > limit && kill(-pids[i], SIGKILL) == 0)
                fprintf(stderr, "%s: rank %d hangs in step %lu\n", what, i, (unsigned long)page->step[i]);
            usleep(500);
        }
        bool died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && mortal[i];
        if (rank_now_ns() > limit || !(died || (WIFEXITED(status) && WEXITSTATUS(status) == 0))) {
            fprintf(stderr, "%s: rank %d ended with %#x\n", what, i, (unsigned)status);
            good = false;
        }
        if (died)
            page->end[i].status = GYRE_PEER_DEAD;
        kill(-pids[i], SIGKILL);
    }
    snprintf(file, sizeof file, "%s/meet", folder);
    unlink(file);
    rmdir(folder);
    return good;
}

static bool complain(const char *what, const char *problem)
{
    fprintf(stderr, "%s: %s\n", what, problem);
    return false;
}

/* True if all survivors have succeeded, with one hash, which is given. */
static bool together(int ranks, int left, uint64_t *hash_p, const char *what)
{
    int good = 0;
    uint64_t hash = 0;
    for (int i = 0; i < ranks; i++) {
        const struct end *end = &page->end[i];
        if (end->status == GYRE_PEER_DEAD && !end->sentence[0])
            continue; /* killed */
        if (end->status != GYRE_SUCCESS)
            return complain(what, end->sentence);
        if (good++ > 0 && end->hash != hash)
            return complain(what, "survivors have different parameters");
        hash = end->hash;
    }
    if (good != left) {
        fprintf(stderr, "%s: %d of %d ranks are left instead of %d\n", what, good, ranks, left);
        return false;
    }
    *hash_p = hash;
    return true;
}

static double loss_of(int ranks)
{
    for (int i = 0; i < ranks; i++)
        if (page->end[i].status == GYRE_SUCCESS)
            return page->end[i].loss;
    return NAN;
}

/* True if each row of each step was computed once by the ranks of the membership with which the step counts. */
static bool rows_counted(int ranks, const char *what)
{
    size_t turn = 0;
    for (uint64_t step = 0; step < 92; step++) {
        size_t count = step % 23 == 22 ? 1437 % BATCH : BATCH;
        while (turn + 1 < page->logs && page->log[turn + 1].step <= step)
            turn++;
        for (size_t row = 0; row < count; row++) {
            int times = 0;
            for (int r = 0; r < ranks; r++)
                times += page->ranks_then[step][r] == page->log[turn].ranks ? page->rows[step][r][row] : 0;
            if (times != 1) {
                fprintf(stderr, "%s: row %zu of step %lu was computed %d times among %d ranks\n", what, row,
                        (unsigned long)step, times, page->log[turn].ranks);
                return false;
            }
        }
    }
    return true;
}

static const struct kill three[] = {{2, 7, BACKWARD}, {0, 30, UPDATED}, {3, 31, BEFORE}};

/* The run that is planned, of which `left` processes are left, and a replay of its memberships in which nothing
 * happens: in canonical order the same bits. */
static bool equals_replay(int ranks, int left, const char *what, uint64_t *hash_p, size_t *logs_p)
{
    struct gyre_nn_membership log[LOG_MOST];
    uint64_t replay = 0;
    int all = ranks + plan.joiners;
    setenv("GYRE_ORDER", "canonical", 1);
    bool good = run(ranks, 0, what) && together(all, left, hash_p, what) && rows_counted(all, what);
    double loss = loss_of(all);
    *logs_p = page->logs;
    memcpy(log, page->log, sizeof log);
    for (size_t i = 0; i < *logs_p; i++)
        printf("%s: from step %lu: %d ranks\n", what, (unsigned long)log[i].step, log[i].ranks);
    plan = (struct plan){.strategy = plan.strategy,
                         .settings = plan.settings,
                         .optimizer = plan.optimizer,
                         .dtype = plan.dtype,
                         .worse = plan.worse,
                         .replay = log,
                         .replays = *logs_p};
    good = good && run(all, 0, what) && together(all, all, &replay, what);
    good = good && (memcmp(&loss, &(double){loss_of(all)}, sizeof loss) == 0 || complain(what, "another loss"));
    plan.replay = NULL;
    plan.replays = 0;
    unsetenv("GYRE_ORDER");
    printf("%s: elastic %016lx, replay %016lx\n", what, (unsigned long)*hash_p, (unsigned long)replay);
    return good && *hash_p == replay;
}

/* The same bits as a replay; and not those of a run in which nothing happens. */
static bool test_replay(void)
{
    uint64_t elastic = 0, quiet = 0;
    size_t logs;
    plan = (struct plan){
        .strategy = "sync", .optimizer = GYRE_NN_ADAM, .dtype = GYRE_FLOAT32, .kills = three, .nkills = 3};
    bool good = equals_replay(5, 2, "elastic", &elastic, &logs);
    good = good && (logs == 4 || complain("elastic", "the memberships are not four"));
    setenv("GYRE_ORDER", "canonical", 1);
    good = good && run(5, 0, "quiet") && together(5, 5, &quiet, "quiet");
    unsetenv("GYRE_ORDER");
    printf("quiet %016lx\n", (unsigned long)quiet);
    return good && elastic != quiet;
}

/* A rank that takes ten times as long as the others for everything, and sometimes longer than the stall clock, before a
 * death and after it, is late and nothing else: it is there to the end. */
static bool test_slow(void)
{
    static const struct kill two[] = {{2, 7, BACKWARD}, {0, 30, UPDATED}};
    uint64_t hash = 0;
    size_t logs;
    plan = (struct plan){
        .strategy = "sync", .optimizer = GYRE_NN_ADAM, .dtype = GYRE_FLOAT32, .kills = two, .nkills = 2, .slow = true};
    setenv("GYRE_STALL_TIMEOUT", "2", 1); /* longer than a rank that is inside waits for a core */
    bool good = equals_replay(4, 2, "a slow rank", &hash, &logs);
    unsetenv("GYRE_STALL_TIMEOUT");
    return good && (logs == 3 || complain("a slow rank", "the memberships are not three"));
}

static bool test_deterministic(void)
{
    uint64_t elastic = 0, quiet = 0;
    plan = (struct plan){
        .strategy = "deterministic", .optimizer = GYRE_NN_ADAM, .dtype = GYRE_FLOAT32, .kills = three, .nkills = 3};
    bool good = run(4, 0, "deterministic") && together(4, 1, &elastic, "deterministic");
    plan.nkills = 0;
    good = good && run(1, 0, "deterministic, alone") && together(1, 1, &quiet, "deterministic, alone");
    printf("deterministic: elastic %016lx, one rank %016lx\n", (unsigned long)elastic, (unsigned long)quiet);
    return good && elastic == quiet;
}

static bool test_one_machine(void)
{
    static double params[PARAMS_MOST];
    uint64_t hash;
    double largest = 0;
    plan = (struct plan){.strategy = "sync", .optimizer = GYRE_NN_MOMENTUM, .dtype = GYRE_FLOAT64};
    bool good = run(6, 4, "random") && together(6, 2, &hash, "random");
    memcpy(params, page->params, sizeof params);
    double loss = loss_of(6);
    good = good && run(1, 0, "one rank") && together(1, 1, &hash, "one rank");
    for (size_t i = 0; i < PARAMS_MOST; i++)
        largest = fmax(largest, fabs(params[i] - page->params[i]));
    double apart = fabs(loss - loss_of(1));
    printf("random deaths against one rank: parameters differ by %.3g, losses by %.3g\n", largest, apart);
    return good && largest < 1e-12 && apart < 1e-7;
}

/* What cannot be: a strategy whose state dies with a rank; too few that are left. */
static bool test_refusals(void)
{
    static const struct kill two[] = {{1, 3, BACKWARD}, {2, 9, BACKWARD}};
    plan = (struct plan){.strategy = "zero", .optimizer = GYRE_NN_ADAM, .dtype = GYRE_FLOAT32};
    bool good = run(2, 0, "zero");
    for (int i = 0; i < 2; i++)
        good = good && page->end[i].status == GYRE_UNSUPPORTED && strstr(page->end[i].sentence, "sync");
    plan.strategy = "average";
    plan.settings = "delay=2";
    good = run(2, 0, "delay") && good;
    for (int i = 0; i < 2; i++)
        good = good && page->end[i].status == GYRE_UNSUPPORTED && strstr(page->end[i].sentence, "delay=0");
    plan = (struct plan){
        .strategy = "sync", .optimizer = GYRE_NN_ADAM, .dtype = GYRE_FLOAT32, .least = 3, .kills = two, .nkills = 2};
    good = good && run(4, 0, "too few");
    for (int i = 0; i < 4; i += 3)
        good = good && ((page->end[i].status == GYRE_PARTITIONED &&
                         strstr(page->end[i].sentence, "2 ranks are left, and the run needs 3")) ||
                        complain("too few", page->end[i].sentence));
    return good;
}

/* A process joins, in the place of one that died, and has the state from the others: they die afterwards, but for
 * one. */
static bool test_join(const char *strategy, const char *settings)
{
    static const struct kill two[] = {{1, 5, BACKWARD}, {0, 70, BACKWARD}};
    uint64_t hash = 0;
    size_t logs;
    plan = (struct plan){.strategy = strategy,
                         .settings = settings,
                         .optimizer = GYRE_NN_ADAM,
                         .dtype = GYRE_FLOAT32,
                         .kills = two,
                         .nkills = 2,
                         .joiners = 1,
                         .awaited = 3};
    return equals_replay(3, 2, "a newcomer", &hash, &logs);
}

/* A death costs ranks that train apart what they have done since their exchange: the same bits as a replay. */
static bool test_apart(const char *strategy, const char *settings)
{
    uint64_t hash = 0;
    size_t logs;
    plan = (struct plan){.strategy = strategy,
                         .settings = settings,
                         .optimizer = GYRE_NN_ADAM,
                         .dtype = GYRE_FLOAT32,
                         .kills = three,
                         .nkills = 3};
    return equals_replay(5, 2, strategy, &hash, &logs) && (logs >= 3 || complain(strategy, "too few memberships"));
}

/* The first ranks, which were there from the beginning to the end, have the model of the best epoch, not of the
 * last. */
static bool gave_the_best(int ranks, const char *what)
{
    for (int i = 0; i < ranks; i++) {
        const struct end *end = &page->end[i];
        if (end->status != GYRE_SUCCESS)
            return complain(what, end->sentence);
        printf("%s: rank %d of %d: the best epoch had %g, the last %g, the model has %g\n", what, i, end->ranks,
               end->least, end->latest, end->given);
        /* Other ranks than there were at the best epoch evaluate other numbers of rows: their float32 products round
         * otherwise. */
        if (!(end->latest > 1.01 * end->given && fabs(end->given / end->least - 1) < 1e-6))
            return complain(what, "the model is not the best epoch's");
    }
    return true;
}

/* Patience outlives ranks: survivors and later joiners end with the model of the best epoch. */
static bool test_patience(const char *strategy, const char *settings)
{
    static const struct gyre_nn_membership log[] = {{0, 2}, {70, 3}};
    uint64_t hash = 0;
    size_t logs;
    plan = (struct plan){.strategy = strategy,
                         .settings = settings,
                         .optimizer = GYRE_NN_ADAM,
                         .dtype = GYRE_FLOAT32,
                         .worse = true,
                         .kills = three,
                         .nkills = 3};
    bool good = equals_replay(5, 2, "patience", &hash, &logs) && gave_the_best(2, "patience, replayed");
    plan.replay = log;
    plan.replays = 2;
    plan.worse = true;
    /* rank 2 comes when the best epoch is over */
    return good && run(3, 0, "patience") && together(3, 3, &hash, "patience") && gave_the_best(2, "patience");
}

/* Rank 0 dies when it has begun, before another rank has the state: the next one begins, from the file if there is
 * one. */
static bool test_beginning(const char *resume, uint64_t *quiet_p)
{
    static const struct kill first[] = {{0, 0, BEGINNING}};
    uint64_t elastic = 0, quiet = 0;
    plan = (struct plan){.strategy = "sync",
                         .optimizer = GYRE_NN_ADAM,
                         .dtype = GYRE_FLOAT32,
                         .resume = resume,
                         .kills = first,
                         .nkills = 1};
    bool good = run(3, 0, "beginning") && together(3, 2, &elastic, "beginning");
    plan.nkills = 0;
    good = good && run(2, 0, "beginning, quiet") && together(2, 2, &quiet, "beginning, quiet");
    printf("rank 0 dies at the beginning: %016lx, quiet %016lx\n", (unsigned long)elastic, (unsigned long)quiet);
    *quiet_p = quiet;
    return good && elastic == quiet;
}

/* Plain SGD has no state that could begin anew: with changes after which there are as many ranks as before, the bits
 * are those of a run without any, for what the strategy keeps is restored. */
static bool test_kept(const char *strategy, const char *settings)
{
    static const struct gyre_nn_membership log[] = {{0, 3}, {10, 3}, {45, 3}};
    uint64_t changed = 0, quiet = 0;
    plan = (struct plan){.strategy = strategy,
                         .settings = settings,
                         .optimizer = GYRE_NN_SGD,
                         .dtype = GYRE_FLOAT32,
                         .replay = log,
                         .replays = 3};
    bool good = run(3, 0, strategy) && together(3, 3, &changed, strategy);
    plan.replays = 0;
    good = good && run(3, 0, strategy) && together(3, 3, &quiet, strategy);
    printf("%s: with changes %016lx, without %016lx\n", strategy, (unsigned long)changed, (unsigned long)quiet);
    return good && changed == quiet;
}

/* A checkpoint of ranks that train apart is of their last exchange, and goes on with any number of ranks. */
static bool test_resume(const char *folder)
{
    const struct gyre_nn_membership log[] = {{0, 3}, {16, 2}};
    uint64_t stopped = 0, resumed = 0, replay = 0, fresh = 0, gone_on = 0;
    char file[80];
    snprintf(file, sizeof file, "%s/checkpoint", folder);
    setenv("GYRE_ORDER", "canonical", 1);
    plan = (struct plan){
        .strategy = "bmuf", .optimizer = GYRE_NN_ADAM, .dtype = GYRE_FLOAT32, .checkpoint = file, .stop_after = 20};
    bool good = run(3, 0, "stopped") && together(3, 3, &stopped, "stopped");
    plan = (struct plan){.strategy = "bmuf", .optimizer = GYRE_NN_ADAM, .dtype = GYRE_FLOAT32, .resume = file};
    good = good && run(2, 0, "resumed") && together(2, 2, &resumed, "resumed");
    plan.resume = NULL;
    plan.replay = log;
    plan.replays = 2;
    good = good && run(3, 0, "replay of a resume") && together(3, 3, &replay, "replay of a resume");
    printf("resumed %016lx, replay %016lx\n", (unsigned long)resumed, (unsigned long)replay);
    unsetenv("GYRE_ORDER");
    plan = (struct plan){
        .strategy = "sync", .optimizer = GYRE_NN_ADAM, .dtype = GYRE_FLOAT32, .checkpoint = file, .stop_after = 20};
    good = good && run(3, 0, "stopped") && test_beginning(file, &gone_on) && test_beginning(NULL, &fresh);
    unlink(file);
    return good && resumed == replay && gone_on != fresh;
}

/* A check for joiners that fails without a failed rank costs nothing. */
static bool test_full(void)
{
    uint64_t hash;
    plan = (struct plan){.strategy = "sync", .optimizer = GYRE_NN_ADAM, .dtype = GYRE_FLOAT32, .full = true};
    bool good = run(2, 0, "no descriptors") && together(2, 2, &hash, "no descriptors");
    return good && (page->logs == 1 || complain("no descriptors", "the memberships are not one"));
}

int main(int argc, char **argv)
{
    chance = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    page = launch_share(sizeof *page);
    bool good = test_replay();
    good = test_slow() && good;
    good = test_deterministic() && good;
    good = test_one_machine() && good;
    good = test_refusals() && good;
    good = test_join("sync", NULL) && good;
    good = test_join("slowmo", "every=3") && good;
    good = test_apart("average", "adaptive=yes,from=9") && good;
    static const char *const others[] = {"bmuf", "slowmo", "diloco", "easgd", "admm"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        good = test_apart(others[i], "every=5") && good;
    for (size_t i = 0; i < 3; i++)
        good = test_kept(others[i], "every=5") && good;
    good = test_kept("average", "every=5,adaptive=yes") && good;
    char folder[] = "/tmp/gyre-elastic-XXXXXX";
    CHECK(mkdtemp(folder));
    good = test_resume(folder) && good;
    rmdir(folder);
    good = test_full() && good;
    good = test_patience("sync", NULL) && good;
    good = test_patience("bmuf", "every=5") && good;
    return good ? 0 : 1;
}
