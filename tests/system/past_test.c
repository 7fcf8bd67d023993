/* Slots that the clock would have written past the caches (collectives/shm/autotune.h) are written so, all of what
 * others read and nothing else, and results are what they were. Two ranks; what the clock would say is the test's own.
 * Calls of the library's functions come here first, by the linker, and what is written past the caches comes as late as
 * it may: others are not told of it before. Of ranks that share cores ("oversubscribed", with two) what the root of a
 * reduction or a gathering alone reads is written past the caches by those on another core.
 *
 * And what is asked of the clock is told: of every blocking call that it begins to look at it sees the end, also where
 * a rank is late. */
#include "collectives/comm/reduce_op.h"
#include "collectives/shm/zero_copy.h"
#include "core/dtype.h"

#include "support/late_stores.h"
#include "support/launcher.h"

#define BLOCK ((size_t)64 << 10)
#define EXCHANGED 8192
#define LATE_NS 200000000

static bool past;       /* is the way that the clock has chosen */
static size_t streamed; /* bytes that were written past the caches */
static size_t both;     /* that were copied with as many others in one pass */
static int begun, told; /* blocking calls that the clock looks at; of which it has seen the end */

enum gy_shm_variant __real_gy_tuner_input(struct gyre_request *request, bool mapped);
enum gy_shm_variant __wrap_gy_tuner_input(struct gyre_request *request, bool mapped);
enum gy_shm_variant __wrap_gy_tuner_input(struct gyre_request *request, bool mapped)
{
    __real_gy_tuner_input(request, mapped);
    return past ? GY_SHM_SLOT_NT : GY_SHM_SLOT;
}

enum gy_shm_variant __wrap_gy_tuner_publish(struct gyre_request *request);
enum gy_shm_variant __wrap_gy_tuner_publish(struct gyre_request *request)
{
    (void)request;
    return past ? GY_SHM_SLOT_NT : GY_SHM_SLOT;
}

enum gy_shm_variant __wrap_gy_tuner_exchange(struct gyre_comm *comm, const struct gy_call_signature *shape,
                                             size_t bytes);
enum gy_shm_variant __wrap_gy_tuner_exchange(struct gyre_comm *comm, const struct gy_call_signature *shape,
                                             size_t bytes)
{
    (void)comm, (void)shape, (void)bytes;
    return past ? GY_SHM_SLOT_NT : GY_SHM_SLOT;
}

void __wrap_gy_copy_stream(void *dst, const void *src, size_t bytes);
void __wrap_gy_copy_stream(void *dst, const void *src, size_t bytes)
{
    streamed += bytes;
    late_store(dst, src, bytes);
}

static void now(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

void __wrap_gy_copy_both(void *dst, const void *src, void *dst2, const void *src2, size_t bytes, unsigned stream);
void __wrap_gy_copy_both(void *dst, const void *src, void *dst2, const void *src2, size_t bytes, unsigned stream)
{
    streamed += stream & GY_STREAM_DST ? bytes : 0;
    both += bytes;
    (stream & GY_STREAM_DST ? late_store : now)(dst, src, bytes);
    (stream & GY_STREAM_DST2 ? late_store : now)(dst2, src2, bytes);
}

void __real_gy_combine_into(const struct gy_operation *operation, bool canonical, struct gy_targets targets,
                            const void *const *sources, int nsources, size_t count);
void __wrap_gy_combine_into(const struct gy_operation *operation, bool canonical, struct gy_targets targets,
                            const void *const *sources, int nsources, size_t count);
void __wrap_gy_combine_into(const struct gy_operation *operation, bool canonical, struct gy_targets targets,
                            const void *const *sources, int nsources, size_t count)
{
    streamed += (size_t)targets.streamed * count * gy_dtype_bytes(operation->dtype);
    __real_gy_combine_into(operation, canonical, targets, sources, nsources, count);
}

void __real_gy_tuner_begin(struct gyre_comm *comm);
void __wrap_gy_tuner_begin(struct gyre_comm *comm);
void __wrap_gy_tuner_begin(struct gyre_comm *comm)
{
    begun++;
    __real_gy_tuner_begin(comm);
}

void __real_gy_tuner_end(struct gyre_comm *comm, bool succeeded);
void __wrap_gy_tuner_end(struct gyre_comm *comm, bool succeeded);
void __wrap_gy_tuner_end(struct gyre_comm *comm, bool succeeded)
{
    told++;
    __real_gy_tuner_end(comm, succeeded);
}

/* What a call has written past the caches, of what it would have. */
static void expect_streamed(size_t before, size_t bytes, const char *what)
{
    size_t wanted = past ? bytes : 0;
    if (streamed - before != wanted)
        rank_fail("%s: %zu bytes went past the caches instead of %zu", what, streamed - before, wanted);
}

static unsigned char *mine, *all;
static int rank;

static void fill(int round, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        mine[i] = (unsigned char)(i * 7 + (size_t)round + (size_t)rank * 100);
    memset(all, 0x5a, 2 * BLOCK);
}

static void check(const unsigned char *got, int from, size_t place, int round, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (got[i] != (unsigned char)((place + i) * 7 + (size_t)round + (size_t)from * 100))
            rank_fail("round %d: byte %zu of %zu of rank %d is another", round, i, bytes, from);
}

static void gather(gyre_comm *comm, int round, size_t bytes, const char *what)
{
    size_t before = streamed, once = both;
    fill(round, bytes);
    OK(comm, gyre_all_gather(comm, mine, all, bytes, GYRE_UINT8));
    expect_streamed(before, bytes, what);
    if (both - once != (past ? bytes : 0))
        rank_fail("%s: %zu bytes were copied with others", what, both - once);
    check(all, 0, 0, round, bytes);
    check(all + bytes, 1, 0, round, bytes);
}

/* In place there is one place to write to; otherwise the own block goes to both in one pass. */
static void gather_in_place(gyre_comm *comm, int round, size_t bytes)
{
    size_t before = streamed, once = both;
    unsigned char *own = all + (size_t)rank * bytes;
    fill(round, bytes);
    memcpy(own, mine, bytes);
    OK(comm, gyre_all_gather(comm, own, all, bytes, GYRE_UINT8));
    expect_streamed(before, bytes, "all_gather in place");
    CHECK(both == once);
    check(all, 0, 0, round, bytes);
    check(all + bytes, 1, 0, round, bytes);
}

static void exchange_blocks(gyre_comm *comm, int round, size_t bytes, const char *what)
{
    size_t before = streamed, once = both;
    fill(round, 2 * bytes);
    OK(comm, gyre_all_to_all(comm, mine, all, bytes, GYRE_UINT8));
    expect_streamed(before, bytes, what);
    CHECK(both - once == (past && bytes > EXCHANGED ? bytes : 0));
    check(all, 0, (size_t)rank * bytes, round, bytes);
    check(all + bytes, 1, (size_t)rank * bytes, round, bytes);
}

/* What a rank has for itself is longer than what it gives, or shorter. */
static void exchange_uneven(gyre_comm *comm, int round, size_t own, size_t given)
{
    const size_t counts[2] = {rank == 0 ? own : given, rank == 1 ? own : given}, places[2] = {0, counts[0]};
    fill(round, own + given);
    OK(comm, gyre_all_to_allv(comm, mine, counts, places, all, counts, places, GYRE_UINT8));
    check(all + places[rank], rank, places[rank], round, own);
    check(all + places[1 - rank], 1 - rank, rank == 0 ? 0 : own, round, given);
}

static void broadcast(gyre_comm *comm, int round, size_t bytes)
{
    size_t before = streamed;
    fill(round, bytes);
    OK(comm, gyre_broadcast(comm, mine, all, bytes, GYRE_UINT8, 1));
    expect_streamed(before, rank == 1 ? bytes : 0, "a short broadcast");
    check(all, 1, 0, round, bytes);
}

/* In place: half of it is given, and half of the result. */
static void reduce_all(gyre_comm *comm, int round, size_t bytes)
{
    size_t before = streamed;
    fill(round, bytes);
    OK(comm, gyre_all_reduce(comm, mine, mine, bytes, GYRE_UINT8, GYRE_SUM));
    expect_streamed(before, bytes, "all_reduce");
    for (size_t i = 0; i < bytes; i++)
        CHECK(mine[i] == (unsigned char)(i * 14 + 2 * (size_t)round + 100));
}

/* The first cores of this process, in turns. */
static void go_to_core(int number)
{
    cpu_set_t usable, one;
    CHECK(sched_getaffinity(0, sizeof(usable), &usable) == 0);
    int skip = number % CPU_COUNT(&usable);
    size_t core = 0;
    while (!CPU_ISSET(core, &usable) || skip-- > 0)
        core++;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
}

/* To the root, on whose core rank 2 is: in a first round no rank knows another's core. */
static void give_the_root(gyre_comm *comm, int round)
{
    size_t given = past && rank == 1 ? BLOCK : 0, before = streamed;
    fill(round, BLOCK);
    OK(comm, gyre_reduce(comm, mine, all, BLOCK, GYRE_UINT8, GYRE_SUM, 0));
    if (round > 0 && streamed - before != given)
        rank_fail("reduce: %zu bytes went past the caches instead of %zu", streamed - before, given);
    for (size_t i = 0; rank == 0 && i < BLOCK; i++)
        CHECK(all[i] == (unsigned char)(i * 21 + 3 * (size_t)round + 300));
    before = streamed;
    OK(comm, gyre_gather(comm, mine, all, BLOCK, GYRE_UINT8, 0));
    if (round > 0 && streamed - before != given)
        rank_fail("gather: %zu bytes went past the caches instead of %zu", streamed - before, given);
    for (int from = 0; rank == 0 && from < 3; from++)
        check(all + (size_t)from * BLOCK, from, 0, round, BLOCK);
    OK(comm, gyre_barrier(comm));
}

static void run_oversubscribed(int me)
{
    gyre_comm *comm = rank_begin(40); /* gyre is to see all cores */
    rank = me;
    go_to_core(me % 2);
    mine = malloc(BLOCK);
    all = malloc(3 * BLOCK);
    CHECK(mine && all);
    for (int round = 0; round < 6; round++) {
        past = round % 2;
        give_the_root(comm, round);
    }
    OK(comm, gyre_comm_destroy(comm));
    _exit(0);
}

static void run_rank(int me)
{
    gyre_comm *comm = rank_begin(40);
    rank = me;
    mine = malloc(2 * BLOCK);
    all = malloc(2 * BLOCK);
    CHECK(mine && all);
    for (int round = 0; round < 6; round++) { /* the first ones go by requests */
        past = round % 2;
        for (size_t odd = 0; odd < 2; odd++) {
            gather(comm, round, EXCHANGED - odd, "a short all_gather");
            exchange_blocks(comm, round, EXCHANGED / 2 - odd, "a short all_to_all");
            gather(comm, round, BLOCK - odd, "all_gather");
            gather_in_place(comm, round, EXCHANGED - odd);
            gather_in_place(comm, round, BLOCK - odd);
            exchange_blocks(comm, round, BLOCK - odd, "all_to_all");
            exchange_uneven(comm, round, BLOCK, BLOCK / 2 + odd);
            exchange_uneven(comm, round, BLOCK / 2 - odd, BLOCK);
            exchange_uneven(comm, round, odd, BLOCK);
            broadcast(comm, round, EXCHANGED - odd);
            reduce_all(comm, round, 2 * BLOCK);
        }
        gather(comm, round, 4096 + 1, "the shortest all_gather");
    }
    for (int late = 0; late < 2; late++) {
        usleep(late == rank ? LATE_NS / 1000 : 0);
        gather(comm, late, EXCHANGED, "a late all_gather");
    }
    if (begun == 0 || begun != told)
        rank_fail("the clock has seen the end of %d of %d calls", told, begun);
    OK(comm, gyre_comm_destroy(comm));
    _exit(0);
}

int main(int argc, char **argv)
{
    bool oversubscribed = argc > 1 && strcmp(argv[1], "crowded") == 0;
    setenv("GYRE_SHM_READ", "0", 0);
    return !(oversubscribed ? launch(3, run_oversubscribed, 60, "past, crowded") : launch(2, run_rank, 60, "past"));
}
