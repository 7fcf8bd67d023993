/* Every public function, called wrongly in each way that its parameters allow: NULL, what was destroyed, freed,
 * completed or never made, ranks, types, operations and counts that cannot be, buffers that overlap, and what has no
 * place in a group. Each call is refused with GYRE_INVALID_ARGUMENT and an error message of its own, writes none of its
 * outputs, and leaves the communicator as it was. What has nothing that could be wrong is listed as such.
 *
 * The argument is tests/install/exports.txt, the list of all functions: one that no row here names fails the test, so
 * that none is added without its row. */
#include "support/rank.h"
#include "trial.h"

#define MOST 256
#define ELEMENTS 40

/* In no order that matters; a communicator that is destroyed, and one that never was. */
static gyre_comm *comm, *dead, *const wild = (gyre_comm *)(void *)&dead;
static gyre_request *completed, *freed, *const no_request = (gyre_request *)(void *)&dead;
static gyre_window *window, *gone_window;
static int rank, size;
static int32_t in[16 * ELEMENTS], out[16 * ELEMENTS];
static uint64_t own = 5;

/* ---- rows ---- */

static char seen[MOST][48];
static int seen_count, calls;

static void note(const char *function)
{
    for (int i = 0; i < seen_count; i++)
        if (strcmp(seen[i], function) == 0)
            return;
    CHECK(seen_count < MOST);
    snprintf(seen[seen_count++], sizeof seen[0], "%s", function);
}

/* An error message on the communicator and one on the thread, so that a call which leaves none is found. */
static void mark(void)
{
    gyre_rank_place place = {.size = sizeof place};
    CHECK(gyre_wait(NULL) == GYRE_INVALID_ARGUMENT);
    CHECK(gyre_comm_topology(comm, -77, &place) == GYRE_INVALID_ARGUMENT);
}

static void expect_refused(const char *function, gyre_status status, const char *what, int line)
{
    const char *thread = gyre_last_error(NULL), *sentence = gyre_last_error(comm);
    bool said = (*thread && !strstr(thread, "gyre_wait: request is NULL")) || (*sentence && !strstr(sentence, "-77"));
    note(function);
    calls++;
    if (status != GYRE_INVALID_ARGUMENT)
        rank_fail("line %d: %s (%s) gave %s: %s", line, function, what, gyre_status_name(status), sentence);
    if (!said)
        rank_fail("line %d: %s (%s) was refused without a sentence of its own", line, function, what);
}

#define REFUSED(function, ...) \
    expect_refused("gyre_" #function, (mark(), gyre_##function(__VA_ARGS__)), #__VA_ARGS__, __LINE__)
/* It answers with nothing, or cannot fail. */
#define HOLDS(function, condition) \
    do {                           \
        note("gyre_" #function);   \
        CHECK(condition);          \
    } while (0)

/* ---- collectives and messages, each in its forms ---- */

static const char *const forms[] = {"", "_start", "_init", "_on"};

static struct trial base(enum trial_kind kind)
{
    struct trial it = {.kind = kind, .comm = comm, .rank = rank, .size = size, .root = rank, .count = ELEMENTS};
    it.dtype = GYRE_INT32;
    it.op = GYRE_SUM;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            it.counts[i][j] = ELEMENTS;
    trial_make(&it, &own);
    return it;
}

static gyre_status call(const struct trial *it, int form, gyre_request **request_p)
{
    switch (form) {
    case 0: return trial_call(it);
    case 1: return trial_start(it, request_p);
    case 2: return trial_init(it, request_p);
    default: return trial_call_on(it);
    }
}

static void refuse(const struct trial *it, int form, const char *what)
{
    char function[48];
    gyre_request *request = NULL;
    snprintf(function, sizeof function, "gyre_%s%s", trial_name(it->kind), forms[form]);
    mark();
    gyre_status status = call(it, form, &request);
    expect_refused(function, status, what, 0);
    CHECK(request == NULL);
}

#define WITH(what, change)         \
    do {                           \
        struct trial wrong_ = it;  \
        struct trial *x = &wrong_; \
        change;                    \
        refuse(x, form, what);     \
    } while (0)

static bool reduces(enum trial_kind kind)
{
    return kind == TRIAL_ALL_REDUCE || kind == TRIAL_REDUCE || kind == TRIAL_REDUCE_SCATTER ||
           kind == TRIAL_REDUCE_SCATTERV;
}

static bool has_root(enum trial_kind kind)
{
    return kind == TRIAL_REDUCE || kind == TRIAL_BROADCAST || kind == TRIAL_GATHER || kind == TRIAL_SCATTER ||
           kind == TRIAL_GATHERV || kind == TRIAL_SCATTERV || kind >= TRIAL_SEND;
}

static void wrong_values(const struct trial *given, int form)
{
    struct trial it = *given;
    static const int numbers[] = {-1, 13, 77, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        WITH("a wild type", x->dtype = (gyre_dtype)numbers[i]);
        if (reduces(it.kind))
            WITH("a wild operation", x->op = (gyre_op)numbers[i]);
        if (has_root(it.kind))
            WITH("a wild rank", x->root = numbers[i]);
    }
    if (has_root(it.kind))
        WITH("one rank too many", x->root = size);
    if (reduces(it.kind)) {
        WITH("a sum without its scalar", x->op = GYRE_PREMUL_SUM);
        WITH("an average of booleans", (x->dtype = GYRE_BOOL, x->op = GYRE_AVERAGE));
        WITH("bits of floats", (x->op = GYRE_BIT_XOR, x->dtype = GYRE_FLOAT32));
    }
}

static void wrong_buffers(const struct trial *given, int form)
{
    struct trial it = *given;
    size_t many = ((size_t)1 << 57) / gyre_dtype_size(it.dtype) + 1; /* more than an address space */
    const size_t huge[] = {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4 + 1, many};
    int other = rank == 0; /* whose block is none of this rank's business where it is not the root */
    bool varying = it.kind >= TRIAL_ALL_GATHERV && it.kind <= TRIAL_ALL_TO_ALLV;
    if (it.kind != TRIAL_RECV)
        WITH("no input", x->input = NULL);
    if (it.kind != TRIAL_SEND)
        WITH("no output", x->output = NULL);
    if (it.kind < TRIAL_SEND)
        WITH("an overlap", x->output = (char *)(uintptr_t)x->input + 4);
    for (size_t i = 0; i < sizeof huge / sizeof *huge; i++)
        WITH("a huge count",
             (x->count = x->counts[0][0] = x->counts[0][rank] = x->in_counts[rank] = x->out_counts[rank] = huge[i]));
    if (varying && size > 1)
        WITH("a huge block of another rank",
             (x->root = other, x->counts[0][other] = x->in_counts[other] = x->out_counts[other] = many));
    if (varying && it.kind != TRIAL_REDUCE_SCATTERV) {
        WITH("blocks that overlap",
             (x->layout = TRIAL_GAPS, x->in_places[0] = x->in_places[1] = 3, x->out_places[0] = x->out_places[1] = 3));
        WITH("a block at the end of memory",
             (x->layout = TRIAL_GAPS, x->in_places[0] = x->out_places[0] = SIZE_MAX - 2));
    }
}

static void forms_of_all(void)
{
    for (int kind = 0; kind < TRIAL_KINDS; kind++)
        for (int form = 0; form < 4; form++) {
            struct trial it = base((enum trial_kind)kind);
            char function[48];
            WITH("no communicator", x->comm = NULL);
            WITH("a destroyed communicator", x->comm = dead);
            WITH("what never was a communicator", x->comm = wild);
            if (kind != TRIAL_BARRIER) {
                wrong_values(&it, form);
                wrong_buffers(&it, form);
            }
            snprintf(function, sizeof function, "gyre_%s%s", trial_name(it.kind), forms[form]);
            if (form == 1 || form == 2) {
                mark();
                gyre_status status = call(&it, form, NULL);
                expect_refused(function, status, "no place for the request", __LINE__);
            }
            trial_free(&it);
        }
}

#define IN_THREE_FORMS(name, ...)                      \
    do {                                               \
        gyre_request *r_ = NULL;                       \
        REFUSED(name, comm, __VA_ARGS__);              \
        REFUSED(name##_start, comm, __VA_ARGS__, &r_); \
        REFUSED(name##_init, comm, __VA_ARGS__, &r_);  \
        CHECK(!r_);                                    \
    } while (0)

static void lists(void)
{
    size_t counts[TRIAL_RANKS];
    for (int i = 0; i < size; i++)
        counts[i] = ELEMENTS;
    IN_THREE_FORMS(all_gatherv, in, out, NULL, NULL, GYRE_INT32);
    IN_THREE_FORMS(gatherv, in, out, NULL, NULL, GYRE_INT32, rank);
    IN_THREE_FORMS(scatterv, in, NULL, NULL, out, GYRE_INT32, rank);
    IN_THREE_FORMS(reduce_scatterv, in, out, NULL, GYRE_INT32, GYRE_SUM);
    IN_THREE_FORMS(all_to_allv, in, NULL, NULL, out, counts, NULL, GYRE_INT32);
    IN_THREE_FORMS(all_to_allv, in, counts, NULL, out, NULL, NULL, GYRE_INT32);
    gyre_comm *const wrong[] = {NULL, dead, wild};
    for (int i = 0; i < 3; i++)
        REFUSED(sendrecv, wrong[i], in, 1, 0, out, 1, 0, GYRE_INT32);
    REFUSED(sendrecv, comm, in, 1, size, out, 1, 0, GYRE_INT32);
    REFUSED(sendrecv, comm, in, 1, 0, out, 1, -1, GYRE_INT32);
    REFUSED(sendrecv, comm, NULL, 1, 0, out, 1, 0, GYRE_INT32);
    REFUSED(sendrecv, comm, in, 1, 0, NULL, 1, 0, GYRE_INT32);
    REFUSED(sendrecv, comm, in, 9, 0, in + 8, 9, 0, GYRE_INT32);
    REFUSED(sendrecv, comm, in, SIZE_MAX, 0, out, 9, 0, GYRE_INT32);
    REFUSED(sendrecv, comm, in, 9, 0, out, 9, 0, (gyre_dtype)-3);
}

/* ---- requests ---- */

static void requests(void)
{
    ptrdiff_t index = 7;
    size_t indices[2], done = 7;
    gyre_request *plain, *wrong[] = {completed, freed, no_request};
    for (int i = 0; i < 3; i++) {
        gyre_request *r = wrong[i], *pair[2] = {NULL, wrong[i]};
        REFUSED(test, &r);
        REFUSED(wait, &r);
        REFUSED(wait_all, pair, 2);
        REFUSED(wait_any, pair, 2, &index);
        REFUSED(wait_some, pair, 2, indices, &done);
        REFUSED(start, r);
        REFUSED(request_free, &r);
        CHECK(r == wrong[i] && pair[1] == wrong[i]);
    }
    calls++;
    CHECK(gyre_test(NULL) == GYRE_INVALID_ARGUMENT && gyre_wait(NULL) == GYRE_INVALID_ARGUMENT);
    REFUSED(wait_all, NULL, 1);
    REFUSED(wait_any, NULL, 1, &index);
    REFUSED(wait_any, wrong, 1, NULL);
    REFUSED(wait_some, NULL, 1, indices, &done);
    REFUSED(wait_some, wrong, 1, NULL, &done);
    REFUSED(wait_some, wrong, 1, indices, NULL);
    REFUSED(start, NULL);
    REFUSED(request_free, NULL);
    OK(comm, gyre_recv_start(comm, out, 1, GYRE_INT32, rank, &plain));
    REFUSED(start, plain);
    REFUSED(request_free, &plain);
    OK(comm, gyre_send(comm, in, 1, GYRE_INT32, rank));
    OK(comm, gyre_wait(&plain));
    CHECK(index == 7 && done == 7);
    REFUSED(progress, NULL);
    REFUSED(progress, dead);
}

/* ---- communicators, operations, memory ---- */

static void no_reduction(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    (void)user, (void)left, (void)right, (void)result, (void)count, (void)dtype;
}

static void communicators(gyre_comm *it)
{
    gyre_comm *made = NULL;
    gyre_rank_place place = {.size = sizeof place};
    gyre_counters counters = {.size = sizeof counters};
    gyre_failure failure = {.size = sizeof failure};
    uint64_t bits = 99;
    char text[64];
    void *memory = NULL;
    gyre_op op = (gyre_op)99;
    const int64_t scalar = 1;
    REFUSED(comm_duplicate, it, &made);
    REFUSED(cuda_attach, it, GYRE_CUDA_NONE);
    REFUSED(cuda_status, it);
    REFUSED(comm_split, it, 0, 0, &made);
    REFUSED(comm_sub, it, &rank, 1, &made);
    REFUSED(comm_abort, it);
    REFUSED(comm_dump, it, 2);
    REFUSED(comm_set, it, "name", "x");
    REFUSED(comm_get, it, "name", text, sizeof text);
    REFUSED(comm_topology, it, 0, &place);
    REFUSED(comm_failed, it, 0, &failure);
    REFUSED(comm_revoke, it);
    REFUSED(comm_agree, it, 0, &bits);
    REFUSED(comm_shrink, it, &made);
    REFUSED(comm_grow, it, 1, 1, &made);
    REFUSED(comm_counters, it, &counters);
    REFUSED(comm_trace, it, NULL, NULL);
    REFUSED(op_create, it, no_reduction, NULL, 1, &op);
    REFUSED(op_create_premul_sum, it, &scalar, GYRE_INT64, &op);
    REFUSED(mem_alloc, it, 10, &memory);
    REFUSED(mem_free, it, in);
    REFUSED(mem_register, it, in, sizeof in);
    REFUSED(mem_deregister, it, in);
    REFUSED(window_create, it, in, sizeof in, &gone_window);
    HOLDS(comm_rank, gyre_comm_rank(it) == -1);
    HOLDS(comm_size, gyre_comm_size(it) == -1);
    HOLDS(comm_algorithm, gyre_comm_algorithm(it, "barrier", 1, GYRE_INT32) == NULL);
    HOLDS(last_error, gyre_last_error(it) != NULL);
    if (it)
        REFUSED(comm_destroy, it);
    CHECK(!made && !memory && op == (gyre_op)99 && bits == 99);
}

static void places(void)
{
    gyre_comm *made = NULL;
    gyre_rank_place place = {.size = sizeof place};
    gyre_counters counters = {.size = 3};
    gyre_failure failure = {.size = sizeof failure};
    int list[] = {0, 0}, alien[] = {size};
    char text[2];
    REFUSED(comm_duplicate, comm, NULL);
    REFUSED(comm_split, comm, 0, 0, NULL);
    REFUSED(comm_sub, comm, &rank, 1, NULL);
    REFUSED(comm_sub, comm, NULL, 1, &made);
    REFUSED(comm_sub, comm, list, -1, &made);
    REFUSED(comm_sub, comm, list, INT32_MAX, &made);
    REFUSED(comm_sub, comm, list, 2, &made);
    REFUSED(comm_sub, comm, alien, 1, &made);
    REFUSED(comm_dump, comm, -1);
    REFUSED(comm_dump, comm, 999999);
    REFUSED(comm_set, comm, NULL, "x");
    REFUSED(comm_set, comm, "name", NULL);
    REFUSED(comm_set, comm, "colour", "x");
    REFUSED(comm_set, comm, "timeout", "-3");
    REFUSED(comm_get, comm, NULL, text, sizeof text);
    REFUSED(comm_get, comm, "name", NULL, 64);
    REFUSED(comm_get, comm, "order", text, sizeof text);
    REFUSED(comm_get, comm, "order", text, 0);
    REFUSED(comm_topology, comm, size, &place);
    REFUSED(comm_topology, comm, 0, NULL);
    place.size = SIZE_MAX;
    REFUSED(comm_topology, comm, 0, &place);
    REFUSED(comm_failed, comm, size, &failure);
    REFUSED(comm_failed, comm, -1, &failure);
    REFUSED(comm_failed, comm, 0, NULL);
    failure.size = 0;
    REFUSED(comm_failed, comm, 0, &failure);
    REFUSED(comm_agree, comm, 0, NULL);
    REFUSED(comm_shrink, comm, NULL);
    REFUSED(comm_grow, comm, 1, 1, NULL);
    REFUSED(comm_grow, comm, -1, 1, &made);
    REFUSED(comm_grow, comm, 1, -1, &made);
    REFUSED(comm_counters, comm, &counters);
    REFUSED(comm_counters, comm, NULL);
    HOLDS(comm_algorithm, gyre_comm_algorithm(comm, NULL, 1, GYRE_INT32) == NULL);
    HOLDS(comm_algorithm, gyre_comm_algorithm(comm, "all_to_none", 1, GYRE_INT32) == NULL);
    HOLDS(comm_algorithm, *gyre_comm_algorithm(comm, "all_reduce", SIZE_MAX, (gyre_dtype)-9));
    CHECK(!made);
}

static void making(void)
{
    gyre_comm *made = NULL;
    gyre_config config = {.size = 3};
    gyre_allocator allocator = {.size = sizeof allocator};
    REFUSED(comm_create, NULL, NULL);
    REFUSED(comm_create, &config, &made);
    config = (gyre_config){.size = sizeof config, .world_size = 2, .rank = 2, .address = "file:///tmp/nowhere"};
    mark();
    HOLDS(comm_create, gyre_comm_create(&config, &made) != GYRE_SUCCESS && strstr(gyre_last_error(NULL), "rank"));
    config.rank = -1;
    HOLDS(comm_create, gyre_comm_create(&config, &made) != GYRE_SUCCESS && *gyre_last_error(NULL));
    config = (gyre_config){.size = sizeof config, .world_size = -4};
    HOLDS(comm_create, gyre_comm_create(&config, &made) != GYRE_SUCCESS && *gyre_last_error(NULL));
    CHECK(!made);
    HOLDS(allocator_set,
          gyre_allocator_set(&allocator) == GYRE_INVALID_ARGUMENT); /* its error message is a line of the log */
    HOLDS(allocator_set, gyre_allocator_set(NULL) == GYRE_INVALID_ARGUMENT);
    gyre_log_set(NULL, &made);
    note("gyre_log_set");
}

static void operations_and_memory(void)
{
    gyre_op op = (gyre_op)99;
    int64_t scalar = 1;
    void *memory = NULL;
    REFUSED(op_create, comm, NULL, NULL, 1, &op);
    REFUSED(op_create, comm, no_reduction, NULL, 1, NULL);
    REFUSED(op_create_premul_sum, comm, NULL, GYRE_INT64, &op);
    REFUSED(op_create_premul_sum, comm, &scalar, (gyre_dtype)-1, &op);
    REFUSED(op_create_premul_sum, comm, &scalar, GYRE_INT64, NULL);
    REFUSED(mem_alloc, comm, 10, NULL);
    GIVES(GYRE_NO_MEMORY, comm, gyre_mem_alloc(comm, SIZE_MAX, &memory));
    GIVES(GYRE_NO_MEMORY, comm, gyre_mem_alloc(comm, SIZE_MAX - 5000, &memory));
    CHECK(!memory && op == (gyre_op)99);
    REFUSED(mem_free, comm, in);
    REFUSED(mem_free, comm, &scalar);
    OK(comm, gyre_mem_alloc(comm, 10, &memory));
    REFUSED(mem_free, comm, (char *)memory + 1);
    OK(comm, gyre_mem_free(comm, memory));
    REFUSED(mem_free, comm, memory);
    REFUSED(mem_register, comm, NULL, 10);
    REFUSED(mem_register, comm, in, 0);
    REFUSED(mem_register, comm, in, SIZE_MAX);
    REFUSED(mem_deregister, comm, in);
    REFUSED(mem_deregister, comm, NULL);
    OK(comm, gyre_mem_register(comm, in, 100));
    REFUSED(mem_register, comm, in, 101);
    OK(comm, gyre_mem_deregister(comm, in));
    REFUSED(mem_deregister, comm, in);
}

/* ---- windows ---- */

static void windows(void)
{
    gyre_window *made = NULL, *const wrong[] = {NULL, gone_window, (gyre_window *)(void *)&dead};
    gyre_op premul;
    REFUSED(window_create, comm, NULL, 10, &made);
    REFUSED(window_create, comm, in, 10, NULL);
    for (int i = 0; i < 3; i++) {
        gyre_window *w = wrong[i];
        REFUSED(window_put, w, in, 1, GYRE_INT32, 0, 0);
        REFUSED(window_get, w, out, 1, GYRE_INT32, 0, 0);
        REFUSED(window_accumulate, w, in, 1, GYRE_INT32, GYRE_SUM, 0, 0);
        REFUSED(window_flush, w, -1);
        REFUSED(window_signal, w, 0, 0);
        REFUSED(window_wait, w, 0, 0);
        if (w)
            REFUSED(window_destroy, w);
    }
    static const int targets[] = {-2, INT32_MIN, INT32_MAX, 99};
    for (int i = 0; i < 4; i++) {
        REFUSED(window_put, window, in, 1, GYRE_INT32, targets[i], 0);
        REFUSED(window_get, window, out, 1, GYRE_INT32, targets[i], 0);
        REFUSED(window_accumulate, window, in, 1, GYRE_INT32, GYRE_SUM, targets[i], 0);
        REFUSED(window_flush, window, targets[i]);
        REFUSED(window_signal, window, targets[i], 0);
        REFUSED(window_put, window, in, 1, (gyre_dtype)targets[i], 0, 0);
        REFUSED(window_get, window, out, 1, (gyre_dtype)targets[i], 0, 0);
        REFUSED(window_accumulate, window, in, 1, (gyre_dtype)targets[i], GYRE_SUM, 0, 0);
        REFUSED(window_accumulate, window, in, 1, GYRE_INT32, (gyre_op)targets[i], 0, 0);
        REFUSED(window_signal, window, 0, (unsigned)targets[i]);
        REFUSED(window_wait, window, (unsigned)targets[i], 0);
    }
    static const size_t far[] = {sizeof in, sizeof in - 3, SIZE_MAX, SIZE_MAX - 3};
    for (int i = 0; i < 4; i++) {
        REFUSED(window_put, window, in, 1, GYRE_INT32, 0, far[i]);
        REFUSED(window_get, window, out, 1, GYRE_INT32, 0, far[i]);
        REFUSED(window_accumulate, window, in, 1, GYRE_INT32, GYRE_SUM, 0, far[i]);
        REFUSED(window_put, window, in, far[i], GYRE_INT32, 0, 8);
        REFUSED(window_get, window, out, far[i], GYRE_INT32, 0, 8);
        REFUSED(window_accumulate, window, in, far[i], GYRE_INT32, GYRE_SUM, 0, 8);
    }
    REFUSED(window_put, window, NULL, 1, GYRE_INT32, 0, 0);
    REFUSED(window_get, window, NULL, 1, GYRE_INT32, 0, 0);
    REFUSED(window_accumulate, window, NULL, 1, GYRE_INT32, GYRE_SUM, 0, 0);
    REFUSED(window_accumulate, window, in, 1, GYRE_INT32, GYRE_AVERAGE, 0, 0);
    CHECK(strstr(gyre_last_error(comm), "an average"));
    REFUSED(window_accumulate, window, in, 1, GYRE_INT32, GYRE_PREMUL_SUM, 0, 0);
    CHECK(strstr(gyre_last_error(comm), "pre-multiplied"));
    OK(comm, gyre_op_create_premul_sum(comm, in, GYRE_INT32, &premul));
    REFUSED(window_accumulate, window, in, 1, GYRE_INT32, premul, 0, 0);
    CHECK(strstr(gyre_last_error(comm), "pre-multiplied"));
    REFUSED(window_accumulate, window, in, 0, GYRE_INT32, premul, 0, 0);
    REFUSED(window_accumulate, window, in, 1, GYRE_FLOAT32, GYRE_BIT_OR, 0, 0);
    CHECK(!made);
}

/* ---- groups ---- */

/* What waits for all ranks at once has no place in a group; the group goes on. */
static void groups(void)
{
    gyre_comm *made = NULL;
    gyre_window *other = NULL;
    int32_t one = 1, sum = 0;
    REFUSED(group_end);
    HOLDS(group_begin, gyre_group_begin() == GYRE_SUCCESS);
    OK(comm, gyre_all_reduce(comm, &one, &sum, 1, GYRE_INT32, GYRE_SUM));
    REFUSED(comm_duplicate, comm, &made);
    REFUSED(cuda_attach, comm, GYRE_CUDA_NONE);
    REFUSED(comm_split, comm, 0, 0, &made);
    REFUSED(comm_sub, comm, &rank, 1, &made);
    REFUSED(comm_agree, comm, 1, &own);
    REFUSED(comm_shrink, comm, &made);
    REFUSED(comm_grow, comm, 1, 1, &made);
    REFUSED(comm_set, comm, "order", "canonical");
    REFUSED(comm_set, comm, "algorithm", "");
    REFUSED(comm_create, NULL, &made);
    REFUSED(window_create, comm, in, sizeof in, &other);
    REFUSED(window_destroy, window);
    REFUSED(all_reduce, comm, NULL, out, 10, GYRE_INT32, GYRE_SUM);
    OK(comm, gyre_comm_set(comm, "name", "in a group")); /* its own */
    OK(comm, gyre_group_end());
    CHECK(sum == size && !made && !other);
    REFUSED(group_end);
}

/* ---- what cannot be wrong ---- */

static void print_line(void *user, const char *line)
{
    (void)line;
    ++*(int *)user;
}

static void information(void)
{
    int lines = 0;
    char text[200];
    HOLDS(version, *gyre_version());
    HOLDS(status_name, *gyre_status_name((gyre_status)999) && *gyre_status_name((gyre_status)-5));
    HOLDS(status_text, *gyre_status_text((gyre_status)999) && *gyre_status_text((gyre_status)-5));
    HOLDS(dtype_size, gyre_dtype_size((gyre_dtype)-1) == 0 && gyre_dtype_size((gyre_dtype)13) == 0);
    HOLDS(dtype_name, !gyre_dtype_name((gyre_dtype)-1) && !gyre_dtype_name((gyre_dtype)13));
    HOLDS(op_name, !gyre_op_name((gyre_op)-1) && !gyre_op_name((gyre_op)999));
    gyre_dtype dtype = GYRE_INT64;
    gyre_op op = GYRE_MIN;
    HOLDS(dtype_from_name, gyre_dtype_from_name("float99", &dtype) == GYRE_INVALID_ARGUMENT && dtype == GYRE_INT64 &&
                               strstr(gyre_last_error(NULL), "float99"));
    HOLDS(dtype_from_name, gyre_dtype_from_name(NULL, &dtype) == GYRE_INVALID_ARGUMENT &&
                               gyre_dtype_from_name("half", NULL) == GYRE_INVALID_ARGUMENT);
    HOLDS(op_from_name, gyre_op_from_name("summe", &op) == GYRE_INVALID_ARGUMENT && op == GYRE_MIN &&
                            strstr(gyre_last_error(NULL), "summe"));
    HOLDS(op_from_name, gyre_op_from_name(NULL, &op) == GYRE_INVALID_ARGUMENT &&
                            gyre_op_from_name("avg", NULL) == GYRE_INVALID_ARGUMENT);
    gyre_info(NULL, NULL);
    gyre_info(print_line, &lines);
    HOLDS(info, lines > 3);
    gyre_config_describe(NULL, NULL);
    gyre_config_describe(print_line, &lines);
    HOLDS(config_describe, lines > 15);
    HOLDS(config_check, gyre_config_check(NULL, 5) == GYRE_SUCCESS && gyre_config_check(text, 0) == GYRE_SUCCESS);
}

/* ---- the whole ---- */

static void check_all_seen(const char *path)
{
    char name[64];
    int listed = 0, missing = 0;
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    for (; fscanf(file, "%63s", name) == 1; listed++) {
        bool found = false;
        for (int i = 0; i < seen_count; i++)
            found = found || strcmp(seen[i], name) == 0;
        if (!found)
            fprintf(stderr, "%s has no row in refused_test.c\n", name);
        missing += !found;
    }
    fclose(file);
    if (missing || listed != seen_count)
        rank_fail("%d functions are listed, %d are tried, %d are missing", listed, seen_count, missing);
    if (rank == 0)
        printf("%d functions, %d wrong calls\n", listed, calls);
    fflush(stdout);
}

static void still_works(void)
{
    int32_t mine = rank + 1, sum = 0;
    OK(comm, gyre_all_reduce(comm, &mine, &sum, 1, GYRE_INT32, GYRE_SUM));
    CHECK(sum == size * (size + 1) / 2);
}

/* What is destroyed, freed and completed, of communicators and of windows that went before and with theirs. */
static void make_stale(void)
{
    gyre_window *with;
    OK(comm, gyre_window_create(comm, in, sizeof in, &window));
    OK(comm, gyre_comm_duplicate(comm, &dead));
    OK(dead, gyre_window_create(dead, in, sizeof in, &gone_window));
    OK(dead, gyre_window_create(dead, in, sizeof in, &with));
    OK(dead, gyre_window_destroy(gone_window));
    OK(dead, gyre_barrier_start(dead, &completed));
    OK(dead, gyre_barrier_init(dead, &freed));
    gyre_request *copy = completed;
    OK(dead, gyre_wait(&copy));
    copy = freed;
    OK(dead, gyre_request_free(&copy));
    OK(comm, gyre_barrier(comm));
    OK(dead, gyre_comm_destroy(dead));
    REFUSED(window_destroy, with);
    gone_window = with;
}

/* From here on calls on streams are refused for their arguments, as this rank is attached, to no device. */
static void devices(void)
{
    REFUSED(cuda_available, NULL);
    REFUSED(cuda_status, comm);
    REFUSED(barrier_on, comm, NULL);
    OK(comm, gyre_cuda_attach(comm, GYRE_CUDA_NONE));
    REFUSED(cuda_attach, comm, GYRE_CUDA_NONE);
    REFUSED(barrier_on, comm, in);
    OK(comm, gyre_cuda_status(comm));
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    comm = rank_begin(80);
    rank = gyre_comm_rank(comm);
    size = gyre_comm_size(comm);
    CHECK(size > 1 && size <= TRIAL_RANKS);
    devices();
    make_stale();
    forms_of_all();
    lists();
    still_works();
    requests();
    communicators(NULL);
    communicators(dead);
    communicators(wild);
    places();
    making();
    operations_and_memory();
    still_works();
    windows();
    groups();
    information();
    still_works();
    OK(comm, gyre_window_destroy(window));
    OK(comm, gyre_barrier(comm));
    gyre_request *request;
    OK(comm, gyre_barrier_start(comm, &request));
    gyre_request *late = request;
    OK(comm, gyre_wait(&request));
    dead = comm;
    OK(comm, gyre_comm_destroy(comm)); /* and the world */
    CHECK(gyre_wait(&late) == GYRE_INVALID_ARGUMENT && gyre_comm_destroy(dead) == GYRE_INVALID_ARGUMENT);
    CHECK(gyre_barrier(dead) == GYRE_INVALID_ARGUMENT && strstr(gyre_last_error(dead), "destroyed"));
    check_all_seen(argv[1]);
    _exit(0);
}
