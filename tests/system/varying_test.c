/* One rank of the tests of the forms with counts, one suite per run (the argument):
 *   all        every v-form, type, layout and placement: counts with zeros among them, all zero, one rank's alone, and
 *              ones of several tiles; blocking, as a request, and persistent with contents that change;
 *              reduce_scatterv by every algorithm that serves it
 *   disagree   all_to_allv where two ranks do not expect of each other what they send: both are named
 *   differ     other lists on one rank: a mismatch */
#include "exact.h"
#include "support/rank.h"
#include "trial.h"

static gyre_comm *comm;
static int rank, size;
static uint64_t common, own; /* generators: the same on all ranks, this rank's */

enum profile { ZERO, MIXED, ALONE, EAGER, TILES, PROFILES };

static size_t draw(enum profile profile, int from, int to)
{
    uint64_t x = trial_random(&common);
    switch (profile) {
    case ZERO: return 0;
    case MIXED: return x % 3 == 0 ? 0 : x / 3 % 40;
    case ALONE: return from == size / 2 && to % 2 == 0 ? 1 + x % 3000 : 0;
    case EAGER: return 8192 - 2 + x % 5; /* about the limit of early frames, for bytes */
    default: return x % 2 ? x / 2 % 200000 : 70000;
    }
}

static void draw_counts(struct trial *it, enum profile profile, bool symmetric)
{
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            it->counts[i][j] = draw(profile, it->kind == TRIAL_ALL_TO_ALLV ? i : j, j);
    for (int i = 0; symmetric && i < size; i++)
        for (int j = 0; j < i; j++)
            it->counts[i][j] = it->counts[j][i];
}

static void expect_right(struct trial *it)
{
    const char *wrong = trial_wrong(it);
    if (wrong)
        rank_fail("%s", wrong);
}

/* Ranks may differ in the form; all of them make as many calls. */
static void run(struct trial *it, unsigned rounds, int form)
{
    gyre_request *request = NULL;
    uint64_t salt = trial_random(&common);
    if (form == 2)
        OK(comm, trial_init(it, &request));
    for (unsigned round = 0; round < rounds; round++) {
        trial_fill(it, salt + round);
        if (form == 0)
            OK(comm, trial_call(it));
        else
            OK(comm, form == 1 ? trial_start(it, &request) : gyre_start(request));
        OK(comm, gyre_wait(&request));
        expect_right(it);
    }
    OK(comm, gyre_request_free(&request));
    CHECK(request == NULL);
}

static void run_case(enum trial_kind kind, gyre_dtype dtype, enum profile profile, enum trial_layout layout)
{
    struct trial it = {.kind = kind, .comm = comm, .rank = rank, .size = size, .dtype = dtype, .layout = layout};
    it.root = (int)trial_below(&common, (uint64_t)size);
    it.op = kind == TRIAL_REDUCE_SCATTERV ? (gyre_op)trial_below(&common, GYRE_AVERAGE + 1) : GYRE_SUM;
    if (!gy_exact_has(dtype, it.op))
        it.op = GYRE_SUM;
    draw_counts(&it, profile, trial_below(&common, 2));
    it.in_place = trial_below(&own, 2);
    it.shift = (unsigned)trial_below(&own, 2);
    trial_make(&it, &own);
    run(&it, 1 + (unsigned)trial_below(&common, 3), (int)trial_below(&own, 3));
    trial_free(&it);
}

/* Several tiles, and blocks of nothing, by each in turn. */
static void test_forced(void)
{
    static const char *const forced[] = {"reduce_scatter:ring", "reduce_scatter:halving_doubling",
                                         "reduce_scatter:canonical", ""};
    for (size_t f = 0; f < sizeof forced / sizeof *forced; f++) {
        OK(comm, gyre_comm_set(comm, "algorithm", forced[f]));
        for (int profile = ZERO; profile < PROFILES && forced[f][0]; profile++) {
            run_case(TRIAL_REDUCE_SCATTERV, GYRE_INT32, (enum profile)profile, TRIAL_PACKED);
            run_case(TRIAL_REDUCE_SCATTERV, GYRE_BFLOAT16, (enum profile)profile, TRIAL_PACKED);
        }
    }
}

static void test_all(void)
{
    static const gyre_dtype some[] = {GYRE_INT8, GYRE_BFLOAT16, GYRE_FLOAT32, GYRE_INT64};
    test_forced();
    for (int kind = TRIAL_ALL_GATHERV; kind <= TRIAL_ALL_TO_ALLV; kind++)
        for (int layout = TRIAL_PACKED; layout <= TRIAL_SHUFFLED; layout++) {
            for (int dtype = 0; gyre_dtype_name((gyre_dtype)dtype); dtype++)
                for (int profile = ZERO; profile < TILES; profile++) {
                    if (size > 5 && (dtype + kind + layout) % 3 != 0)
                        continue; /* many ranks share few cores: a third of the types with each */
                    run_case((enum trial_kind)kind, (gyre_dtype)dtype, (enum profile)profile,
                             (enum trial_layout)layout);
                }
            for (size_t i = 0; i<sizeof some / sizeof *some; i += size> 5 ? 2 : 1)
                run_case((enum trial_kind)kind, some[i], TILES, (enum trial_layout)layout);
        }
}

static void expect_mismatch(gyre_status status, bool both)
{
    char first[24], second[24];
    const char *sentence = gyre_last_error(comm);
    GIVES(GYRE_MISMATCH, comm, status);
    snprintf(first, sizeof first, "rank %d", 0);
    snprintf(second, sizeof second, "rank %d", size - 1);
    if (both && (!strstr(sentence, first) || !strstr(sentence, second)))
        rank_fail("the sentence does not name %s and %s: %s", first, second, sentence);
}

/* Rank 0 sends one element more to the last rank than that expects. */
static void test_disagree(size_t elements)
{
    size_t in[TRIAL_RANKS], out[TRIAL_RANKS];
    int32_t *input = calloc(elements * TRIAL_RANKS + 1, 4), *output = calloc(elements * TRIAL_RANKS + 1, 4);
    CHECK(input && output);
    for (int i = 0; i < size; i++)
        in[i] = out[i] = elements;
    in[size - 1] += rank == 0 ? 1 : 0;
    rank_gather(comm, GYRE_MISMATCH);
    gyre_status status = gyre_all_to_allv(comm, input, in, NULL, output, out, NULL, GYRE_INT32);
    if (status == GYRE_SUCCESS) /* those whose pairs agreed may be through: at the next call, then */
        status = gyre_barrier(comm);
    expect_mismatch(status, true);
}

static void test_differ(void)
{
    size_t counts[TRIAL_RANKS];
    static int32_t input[TRIAL_RANKS * 20], output[TRIAL_RANKS * 20];
    for (int i = 0; i < size; i++)
        counts[i] = rank == size - 1 && i == 0 ? 11 : 10;
    rank_gather(comm, GYRE_MISMATCH);
    gyre_status status = gyre_all_gatherv(comm, input, output, counts, NULL, GYRE_INT32);
    if (status == GYRE_SUCCESS)
        status = gyre_barrier(comm);
    expect_mismatch(status, false);
}

int main(int argc, char **argv)
{
    const char *seed = getenv("GYRE_TEST_SEED"), *suite = argc > 1 ? argv[1] : "all";
    comm = rank_begin(280);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    CHECK(size <= TRIAL_RANKS);
    common = seed ? strtoull(seed, NULL, 0) : 1;
    own = common + 1000 + (uint64_t)rank;
    if (strcmp(suite, "disagree") == 0)
        test_disagree(argc > 2 ? strtoull(argv[2], NULL, 0) : 10);
    else if (strcmp(suite, "differ") == 0)
        test_differ();
    else
        test_all();
    if (strcmp(suite, "all") == 0)
        OK(comm, gyre_barrier(comm));
    OK(NULL, gyre_comm_destroy(comm));
    _exit(0);
}
