/* One rank of the random programs. From a seed every rank draws the same program: which communicators exist, which
 * calls are made on them, with which shapes; and alone for itself what the others need not know: placement, alignment,
 * whether it calls, starts a request and waits when, or groups. After each batch every result is compared with the
 * reference.
 *
 *   program   ── batch: 1 to 8 calls on any communicators, collectives and messages, with operations of all kinds
 *             ── the same in a group (nested at times)
 *             ── sendrecv round a communicator
 *             ── persistent requests, made, started several times, freed later or never
 *             ── split, sub, duplicate, destroy
 *
 * All ranks make the calls of all batches in one order, so that no program can deadlock that should not.
 * GYRE_TEST_SEED replays a program, GYRE_TEST_STEPS is the number of batches, GYRE_TEST_SECONDS a limit on the time. */
#include <limits.h>

#include "exact.h"
#include "programs_operations.h"
#include "support/rank.h"
#include "trial.h"

#define COMMS 6
#define BATCH 8
#define KEPT 6
#define SECONDS 55
#define SECONDS_OF_STEPS 570 /* where GYRE_TEST_STEPS says how many */

struct known { /* what all ranks know of a communicator; `comm` where this rank belongs to it */
    bool lives;
    int size, members[TRIAL_RANKS];
    gyre_comm *comm;
    int rank;
};

struct kept {
    bool lives;
    int which; /* communicator */
    struct trial trial;
    gyre_request *request;
};

static struct known comms[COMMS];
static struct kept kept[KEPT];
static int world_rank, world_size;
static uint64_t common, own, seed;
static unsigned long step;

static uint64_t pick(uint64_t end)
{
    return trial_below(&common, end);
}

static uint64_t mine(uint64_t end)
{
    return trial_below(&own, end);
}

#define GOOD(call)                                                                                                     \
    do {                                                                                                               \
        gyre_status status_ = call;                                                                                    \
        if (status_ != GYRE_SUCCESS)                                                                                   \
            rank_fail("seed %llu, step %lu, line %d: " #call " gave %s: %s", (unsigned long long)seed, step, __LINE__, \
                      gyre_status_name(status_), gyre_last_error(comms[0].comm));                                      \
    } while (0)

static void expect_right(struct trial *it)
{
    const char *wrong = trial_wrong(it);
    if (wrong)
        rank_fail("seed %llu, step %lu: %s", (unsigned long long)seed, step, wrong);
}

/* ---- what is called ---- */

static int pick_comm(void)
{
    int which = (int)pick(COMMS);
    while (!comms[which].lives)
        which = (which + 1) % COMMS;
    return which;
}

static size_t pick_count(void)
{
    switch (pick(12)) {
    case 0: return 0;
    case 1: return 1 + pick(3);
    case 2: return 8190 + pick(5);
    case 3: return pick(5000);
    case 4: return pick(12) ? pick(20000) : pick(300000);
    default: return pick(120);
    }
}

#define ONE_MORE(...) +1
enum { DTYPES = 0 GYRE_DTYPE_MAP(ONE_MORE) };

static gyre_op pick_op(gyre_dtype dtype)
{
    gyre_op op = (gyre_op)pick(GYRE_PREMUL_SUM);
    return gy_exact_has(dtype, op) ? op : GYRE_MAX;
}

static bool reduces(enum trial_kind kind)
{
    return kind == TRIAL_ALL_REDUCE || kind == TRIAL_REDUCE || kind == TRIAL_REDUCE_SCATTER ||
           kind == TRIAL_REDUCE_SCATTERV;
}

/* One in four is of our own. Over links there is no reduce_scatterv that does not commute. */
static void pick_operation(struct trial *it)
{
    const struct programs_operation *made = programs_operation(pick(4 * PROGRAMS_OPERATIONS));
    if (pick(4) > 0) {
        it->op = pick_op(it->dtype);
        return;
    }
    if (made->ordered && it->kind == TRIAL_REDUCE_SCATTERV)
        made = programs_operation(0);
    it->op = made->op;
    it->dtype = made->dtype;
    it->data = &made->data;
}

static void pick_counts(struct trial *it)
{
    size_t most = 1 + pick_count() / 4;
    bool alike = pick(2);
    for (int i = 0; i < it->size; i++)
        for (int j = 0; j < it->size; j++)
            it->counts[i][j] = pick(4) ? pick(most) : 0;
    for (int i = 0; alike && i < it->size; i++)
        for (int j = 0; j < i; j++)
            it->counts[i][j] = it->counts[j][i];
}

/* Draws a call on communicator `which`. False: this rank has no part in it. The two ends of a message are two calls. */
static bool draw(int which, struct trial *it, struct trial *other)
{
    const struct known *at = &comms[which];
    *it = (struct trial){
        .kind = (enum trial_kind)pick(TRIAL_RECV), .comm = at->comm, .rank = at->rank, .size = at->size};
    other->comm = NULL;
    it->dtype = (gyre_dtype)pick(DTYPES);
    it->op = GYRE_SUM;
    it->members = at->members;
    if (reduces(it->kind))
        pick_operation(it);
    it->count = pick_count();
    if (it->kind == TRIAL_REDUCE_SCATTER || (it->kind >= TRIAL_ALL_GATHER && it->kind <= TRIAL_ALL_TO_ALL))
        it->count /= (size_t)at->size;
    it->root = (int)pick((uint64_t)at->size);
    pick_counts(it);
    int to = (int)pick((uint64_t)at->size), from = it->root;
    it->layout = (enum trial_layout)mine(3);
    it->in_place = mine(2);
    it->shift = mine(3) == 0;
    if (!at->comm)
        return false;
    if (it->kind != TRIAL_SEND)
        return true;
    *other = *it;
    other->kind = TRIAL_RECV;
    other->root = from;
    it->root = to;
    if (at->rank != to)
        other->comm = NULL;
    if (at->rank != from)
        it->comm = NULL;
    return it->comm || other->comm;
}

/* ---- batches ---- */

struct batch {
    struct trial trial[2 * BATCH];
    gyre_request *request[2 * BATCH];
    size_t count;
    bool grouped;
};

static void add(struct batch *batch, const struct trial *trial, uint64_t number, bool alone)
{
    struct trial *it = &batch->trial[batch->count];
    gyre_request **request = &batch->request[batch->count];
    bool message = trial->kind >= TRIAL_SEND;
    batch->count++;
    *it = *trial;
    trial_make(it, &own);
    trial_fill(it, step * 100 + number);
    *request = NULL;
    if (batch->grouped)
        GOOD(trial_call(it));
    else if (mine(3) == 0 && (!message || alone))
        GOOD(trial_call(it));
    else
        GOOD(trial_start(it, request));
    if (!message && !batch->grouped && mine(4) == 0)
        GOOD(gyre_wait(request));
}

static void wait_any_of(struct batch *batch)
{
    ptrdiff_t index;
    do {
        GOOD(gyre_wait_any(batch->request, batch->count, &index));
        CHECK(index < 0 || !batch->request[index]);
    } while (index >= 0);
}

static void wait_some_of(struct batch *batch)
{
    size_t indices[2 * BATCH], completed;
    do {
        GOOD(gyre_wait_some(batch->request, batch->count, indices, &completed));
        for (size_t i = 0; i < completed; i++)
            CHECK(!batch->request[indices[i]]);
    } while (completed > 0);
}

static void finish(struct batch *batch)
{
    int way = (int)mine(5);
    if (way == 0)
        GOOD(gyre_wait_all(batch->request, batch->count));
    else if (way == 1)
        wait_any_of(batch);
    else if (way == 2)
        wait_some_of(batch);
    for (size_t i = batch->count; way == 3 && i-- > 0;)
        GOOD(gyre_wait(&batch->request[i]));
    for (size_t i = 0; i < batch->count; i++) {
        gyre_status status;
        while ((status = gyre_test(&batch->request[i])) == GYRE_IN_PROGRESS)
            ;
        GOOD(status);
        CHECK(!batch->request[i]);
        expect_right(&batch->trial[i]);
        trial_free(&batch->trial[i]);
    }
}

static void run_batch(void)
{
    static struct batch batch;
    size_t calls = pick(3) ? 1 : 1 + pick(BATCH);
    int depth = (int)mine(3);
    batch.count = 0;
    batch.grouped = pick(5) == 0;
    for (int i = 0; batch.grouped && i <= depth; i++)
        GOOD(gyre_group_begin());
    for (size_t i = 0; i < calls; i++) {
        struct trial it, other;
        if (!draw(pick_comm(), &it, &other))
            continue;
        bool receive_first = mine(2), self = it.comm && other.comm && it.kind == TRIAL_SEND;
        if (other.comm && receive_first)
            add(&batch, &other, i, calls == 1 && !self);
        if (it.comm)
            add(&batch, &it, i, calls == 1 && !self);
        if (other.comm && !receive_first)
            add(&batch, &other, i, calls == 1 && !self);
    }
    for (int i = 0; batch.grouped && i <= depth; i++)
        GOOD(gyre_group_end());
    finish(&batch);
}

/* Each rank of a communicator sends to the one `way` places on, and receives from the one before. */
static void run_shift(void)
{
    const struct known *at = &comms[pick_comm()];
    struct trial in = {.kind = TRIAL_RECV, .comm = at->comm, .rank = at->rank, .size = at->size}, out;
    int way = (int)pick((uint64_t)at->size);
    in.dtype = (gyre_dtype)pick(DTYPES);
    in.count = pick_count();
    if (!at->comm)
        return;
    out = in;
    out.kind = TRIAL_SEND;
    out.root = (at->rank + way) % at->size;
    in.root = (at->rank + at->size - way) % at->size;
    in.shift = (unsigned)mine(2);
    trial_make(&in, &own);
    trial_make(&out, &own);
    trial_fill(&in, step);
    trial_fill(&out, step);
    GOOD(gyre_sendrecv(at->comm, out.input, out.count, out.root, in.output, in.count, in.root, in.dtype));
    expect_right(&in);
    expect_right(&out);
    trial_free(&in);
    trial_free(&out);
}

/* ---- persistent requests ---- */

static void drop(struct kept *it)
{
    it->lives = false;
    if (!it->trial.comm)
        return;
    GOOD(gyre_request_free(&it->request));
    CHECK(!it->request);
    trial_free(&it->trial);
}

static void keep(struct kept *it)
{
    struct trial other;
    it->which = pick_comm();
    it->lives = true;
    it->request = NULL;
    bool part = draw(it->which, &it->trial, &other);
    bool to_itself = part && it->trial.comm && other.comm; /* both ends are here: no other rank makes it */
    if (part && !it->trial.comm)
        it->trial = other;
    if (!part || to_itself) {
        it->trial.comm = NULL;
        return;
    }
    trial_make(&it->trial, &own);
    GOOD(trial_init(&it->trial, &it->request));
}

static void run_kept(void)
{
    int order[KEPT], count = 0;
    gyre_request *requests[KEPT];
    for (int k = 0; k < KEPT; k++)
        if (kept[k].lives && pick(2))
            order[count++] = k;
    for (int i = count - 1; i > 0; i--) {
        int j = (int)pick((uint64_t)i + 1), other = order[i];
        order[i] = order[j];
        order[j] = other;
    }
    for (int i = 0; i < count; i++) {
        struct kept *it = &kept[order[i]];
        requests[i] = NULL;
        if (!it->trial.comm)
            continue;
        trial_fill(&it->trial, step * 100 + 50 + (uint64_t)order[i]);
        GOOD(gyre_start(it->request));
        requests[i] = it->request;
    }
    GOOD(gyre_wait_all(requests, (size_t)count));
    for (int i = 0; i < count; i++)
        if (kept[order[i]].trial.comm)
            expect_right(&kept[order[i]].trial);
}

/* ---- communicators ---- */

static void end_comm(int which)
{
    for (int k = 0; k < KEPT; k++)
        if (kept[k].lives && kept[k].which == which)
            drop(&kept[k]);
    if (comms[which].comm)
        GOOD(gyre_barrier(comms[which].comm));
    if (comms[which].comm)
        GOOD(gyre_comm_destroy(comms[which].comm));
    comms[which] = (struct known){0};
}

/* A new one of the members [0, size) of `parent` whose colour is `colour`, ordered by key. */
static void note(struct known *made, const struct known *parent, const int *colours, const int *keys, int colour)
{
    *made = (struct known){.lives = true, .rank = -1};
    for (int key = 0; key < TRIAL_RANKS; key++)
        for (int r = 0; r < parent->size; r++)
            if (colours[r] == colour && keys[r] == key) {
                if (parent->members[r] == world_rank)
                    made->rank = made->size;
                made->members[made->size++] = parent->members[r];
            }
}

static void make_comm(int parent_at, int at)
{
    const struct known *parent = &comms[parent_at];
    int colours[TRIAL_RANKS], keys[TRIAL_RANKS], list[TRIAL_RANKS], way = (int)pick(3), count = 0;
    for (int r = 0; r < parent->size; r++) {
        colours[r] = way == 0 ? 0 : way == 1 ? (int)pick(2) : (int)pick(3) - 1;
        keys[r] = way == 0 ? 0 : (int)pick(TRIAL_RANKS);
    }
    int chosen = colours[pick((uint64_t)parent->size)];
    struct known made;
    note(&made, parent, colours, keys, chosen < 0 ? 0 : chosen);
    if (way == 1) /* the same members by their list */
        for (int i = 0; i < made.size; i++)
            for (int r = 0; r < parent->size; r++)
                if (parent->members[r] == made.members[i])
                    list[count++] = r;
    if (parent->comm) {
        gyre_comm *comm = NULL;
        if (way == 0)
            GOOD(gyre_comm_duplicate(parent->comm, &comm));
        else if (way == 1)
            GOOD(gyre_comm_sub(parent->comm, list, count, &comm));
        else
            GOOD(gyre_comm_split(parent->comm, colours[parent->rank], keys[parent->rank], &comm));
        if (way == 2 && comm && made.rank < 0) { /* another colour's */
            GOOD(gyre_comm_destroy(comm));
            comm = NULL;
        }
        CHECK((comm != NULL) == (made.rank >= 0));
        CHECK(!comm || (gyre_comm_rank(comm) == made.rank && gyre_comm_size(comm) == made.size));
        made.comm = comm;
    }
    if (made.size > 0)
        comms[at] = made;
}

static void change_comms(void)
{
    int at = 1 + (int)pick(COMMS - 1);
    if (comms[at].lives)
        end_comm(at);
    else
        make_comm(pick_comm(), at);
}

/* ---- the program ---- */

static void run_step(void)
{
    uint64_t what = pick(100);
    if (what < 66) {
        run_batch();
    } else if (what < 70) {
        run_shift();
    } else if (what < 88) {
        run_kept();
    } else if (what < 94) {
        struct kept *it = &kept[pick(KEPT)];
        if (it->lives)
            drop(it);
        else
            keep(it);
    } else {
        change_comms();
    }
}

/* Time is rank 0's: all stop after the same step. */
static bool is_over(int64_t end)
{
    int32_t late = step % 50 == 0 && rank_now_ns() > end;
    if (step % 50 == 0)
        GOOD(gyre_broadcast(comms[0].comm, &late, &late, 1, GYRE_INT32, 0));
    return late;
}

int main(void)
{
    const char *text = getenv("GYRE_TEST_SEED"), *steps = getenv("GYRE_TEST_STEPS");
    const char *limit = getenv("GYRE_TEST_SECONDS");
    unsigned long most = steps ? strtoul(steps, NULL, 0) : limit ? ULONG_MAX : 1000;
    int seconds = limit ? atoi(limit) : steps ? SECONDS_OF_STEPS : SECONDS;
    seed = text ? strtoull(text, NULL, 0) : 1;
    gyre_comm *world = rank_begin((unsigned)seconds + (steps ? 20 : 60));
    world_rank = gyre_comm_rank(world);
    world_size = gyre_comm_size(world);
    CHECK(world_size <= TRIAL_RANKS);
    comms[0] = (struct known){.lives = true, .size = world_size, .comm = world, .rank = world_rank};
    for (int r = 0; r < world_size; r++)
        comms[0].members[r] = r;
    GOOD(programs_operations_make(world));
    common = seed;
    own = seed * 1000 + 17 + (uint64_t)world_rank;
    int64_t end = rank_now_ns() + (int64_t)seconds * 1000000000;
    for (step = 1; step <= most && !is_over(end); step++)
        run_step();
    if (world_rank == 0)
        printf("seed %llu: %lu steps on %d ranks\n", (unsigned long long)seed, step - 1, world_size);
    fflush(stdout);
    for (int c = COMMS - 1; c >= 0; c--)
        if (comms[c].lives)
            end_comm(c);
    _exit(0);
}
