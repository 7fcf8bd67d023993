/* One rank of the correctness sweep: every collective with every algorithm forced in turn, each in a world of its own
 * (so worlds are also made and ended many times in one process); in each every dtype, op, placement, alignment and a
 * list of counts, with exact data and every bit of the result compared.
 *
 * Arguments: "shm" or "links": whether the ranks share memory; the algorithms over shared memory then must have been
 * used. A second one, "common": three types only, where not types but networks are tried; "one": sums of
 * float32 only. A third one, "groups": the hierarchical algorithms instead of the others. */
#include "collective.h"
#include "collectives/schedule/schedule.h"
#include "exact.h"
#include "support/rank.h"

#define COUNT_MOST 65537

static const struct algorithm {
    const char *name; /* "": gyre's own choice */
    unsigned serves;  /* bits of collectives */
    bool shm, grouped;
} algorithms[] = {{.name = ""},
#define ROW(constant, name, builder, serves, counts, flags) \
    {name, serves, ((flags)&GY_OVER_SHM) != 0, ((flags)&GY_GROUPED) != 0},
                  GY_ALGORITHM_ROWS(ROW)
#undef ROW
};
enum { ALGORITHMS = sizeof algorithms / sizeof *algorithms };
_Static_assert((int)GY_KIND_ALL_REDUCE == GY_ALL_REDUCE && (int)GY_KIND_BARRIER == GY_BARRIER &&
                   (int)GY_KIND_REDUCE == GY_REDUCE_TO && (int)GY_KIND_ALL_TO_ALL == GY_ALL_TO_ALL,
               "kinds are numbered as collectives are");
static const size_t counts[] = {0, 1, 2, 3, 7, 1000, COUNT_MOST};

static unsigned char *memory[2];
static uint64_t iteration;
static bool common_only, one_only;

static void set_count(struct gy_case *it, size_t count)
{
    size_t share = gyre_dtype_size(it->dtype) * (gy_kind_is_blocked(it->kind) ? (size_t)it->size : 1);
    it->count = count;
    it->bytes = count * share;
}

/* As a blocking call, a request, or two starts of a persistent request. */
static void call(const struct gy_case *it, int form)
{
    gyre_request *request;
    if (form == 0) {
        OK(it->comm, gy_case_call(it));
    } else if (form == 1) {
        OK(it->comm, gy_case_start(it, &request));
        OK(it->comm, gyre_wait(&request));
        CHECK(request == NULL);
    } else {
        OK(it->comm, gy_case_init(it, &request));
        for (int i = 0; i < 2; i++) {
            gy_case_fill(it, iteration);
            OK(it->comm, gyre_start(request));
            OK(it->comm, gyre_wait(&request));
            CHECK(request != NULL);
        }
        OK(it->comm, gyre_request_free(&request));
    }
}

/* Every placement and alignment, or one of them in turn; every form in turn. */
static void sweep_case(struct gy_case *it, size_t count, bool thorough)
{
    static size_t turn;
    turn++;
    for (int in_place = 0; in_place < 2; in_place++) {
        for (size_t shift = 0; shift < 2; shift++) {
            if (!thorough && turn % 4 != (size_t)in_place * 2 + shift)
                continue;
            it->in_place = in_place;
            it->input = memory[0] + shift;
            it->output = memory[1] + shift;
            set_count(it, count);
            gy_case_fill(it, ++iteration);
            call(it, (int)(iteration % 3));
            size_t wrong = gy_case_wrong(it, iteration);
            if (wrong)
                rank_fail("%s of %s: %zu elements of count %zu wrong: %s %s, in place %d, shift %zu, root %d",
                          gy_kind_name(it->kind), getenv("GYRE_ALGORITHM"), wrong, it->count,
                          gyre_dtype_name(it->dtype), gyre_op_name(it->op), in_place, shift, it->root);
        }
    }
}

/* Every type and operation; those of the commonest types in every placement, unless there are many ranks and few
 * types. */
static void sweep_types(struct gy_case *it, size_t count)
{
    for (int d = 0; gyre_dtype_name((gyre_dtype)d); d++) {
        bool common = d == GYRE_FLOAT32 || d == GYRE_FLOAT64 || d == GYRE_INT32;
        if ((common_only && !common) || (one_only && d != GYRE_FLOAT32))
            continue;
        for (int o = 0; gyre_op_name((gyre_op)o); o++) {
            if (o == GYRE_PREMUL_SUM || !gy_exact_has((gyre_dtype)d, (gyre_op)o) || (one_only && o != GYRE_SUM))
                continue;
            it->dtype = (gyre_dtype)d;
            it->op = (gyre_op)o;
            it->root = (int)(iteration % (uint64_t)it->size);
            if (o == 0 || gy_kind_reduces(it->kind))
                sweep_case(it, count, common && o <= GYRE_MAX && (it->size <= 3 || !common_only));
        }
    }
}

static void say_nothing(void *user, gyre_log_level level, const char *line)
{
    (void)user, (void)level, (void)line;
}

/* False when the algorithm does not exist for the collective here. */
static bool sweep_world(enum gy_kind kind, const char *algorithm)
{
    char setting[128] = "";
    struct gy_case it = {.kind = kind};
    if (*algorithm)
        snprintf(setting, sizeof setting, "%s:%s", gy_kind_name(kind), algorithm);
    setenv("GYRE_ALGORITHM", setting, 1);
    gyre_log_set(*algorithm ? say_nothing : NULL, NULL); /* of those that do not exist */
    gyre_status status = gyre_comm_create(NULL, &it.comm);
    gyre_log_set(NULL, NULL);
    if (*algorithm && (status == GYRE_BAD_CONFIGURATION || status == GYRE_UNSUPPORTED))
        return false;
    if (status != GYRE_SUCCESS)
        rank_fail("create with '%s': %s: %s", setting, gyre_status_name(status), gyre_last_error(NULL));
    it.rank = gyre_comm_rank(it.comm);
    it.size = gyre_comm_size(it.comm);
    const char *chosen = gyre_comm_algorithm(it.comm, gy_kind_name(kind), 7, GYRE_FLOAT32);
    bool used = chosen && (!*algorithm || strcmp(chosen, algorithm) == 0);
    if (used && kind == GY_KIND_BARRIER && *algorithm)
        used = gyre_barrier(it.comm) != GYRE_UNSUPPORTED; /* forced, and refused only when called */
    for (size_t c = 0; used && c < sizeof counts / sizeof *counts; c++)
        kind == GY_KIND_BARRIER ? OK(it.comm, gyre_barrier(it.comm)) : sweep_types(&it, counts[c]);
    if (used || kind != GY_KIND_BARRIER)
        OK(it.comm, gyre_barrier(it.comm)); /* no rank is still inside a call when the first says that it leaves */
    OK(NULL, gyre_comm_destroy(it.comm));
    return used;
}

/* The check of the check: one flipped bit is one wrong element. */
static void prove_check(void)
{
    struct gy_case it = {.kind = GY_KIND_BROADCAST,
                         .size = 2,
                         .dtype = GYRE_FLOAT32,
                         .input = memory[0],
                         .output = memory[1],
                         .in_place = true};
    set_count(&it, 1000);
    gy_case_fill(&it, 5);
    CHECK(gy_case_wrong(&it, 5) == 0);
    CHECK(gy_case_wrong(&it, 6) > 500);
    memory[1][4 * 997 + 3] ^= 1;
    CHECK(gy_case_wrong(&it, 5) == 1);
}

int main(int argc, char **argv)
{
    bool shm = argc > 1 && strcmp(argv[1], "shm") == 0;
    bool groups = argc > 3 && strcmp(argv[3], "groups") == 0;
    common_only = argc > 2 && strcmp(argv[2], "common") == 0;
    one_only = argc > 2 && strcmp(argv[2], "one") == 0;
    alarm(getenv("GYRE_TEST_FULL") ? 1800 : 240); /* all types of nine ranks take their time */
    for (int i = 0; i < 2; i++) {
        memory[i] = malloc(COUNT_MOST * sizeof(double) * 16 + 1);
        CHECK(memory[i] != NULL);
    }
    prove_check();
    for (int kind = 0; kind < GY_KINDS; kind++) {
        for (int a = 0; a < ALGORITHMS; a++) {
            const struct algorithm *it = &algorithms[a];
            if (*it->name && it->grouped != groups)
                continue;
            bool used = sweep_world((enum gy_kind)kind, it->name), alone = atoi(getenv("WORLD_SIZE")) == 1;
            bool serves = !*it->name || (it->serves & GY_SERVES(kind));
            if (!used && !alone && serves && (!it->shm || shm))
                rank_fail("%s cannot use '%s' here", gy_kind_name((enum gy_kind)kind), it->name);
        }
    }
    _exit(0);
}
