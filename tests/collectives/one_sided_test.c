/* The lock of a window: which rank a waiting rank blames. This file plays the others whenever the waiting rank
 * yields, over a clock that goes on only then. And making a window: the other ranks' descriptions, which this file
 * makes up, and what is sent to them. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectives/engine/request.h"
#include "collectives/rma/window.h"
#include "core/clock.h"
#include "core/memfd.h"
#include "transport/shm/internal.h"

#define STALL (30 * GY_SECOND)
#define STEP (50 * GY_MILLISECOND)
#define OWN 5
#define WORLD 100

static int64_t now, taken; /* taken: when the holder had the lock */
static int64_t attended,
    longest; /* when others elsewhere last could know that this rank lives; the longest time between */
static int turn, told, shown;
static gyre_status reported;
static void (*others)(void);

static struct gy_exposed_control control;
static int64_t memory[1];
static struct gy_target target = {.bytes = sizeof(memory), .memory = (unsigned char *)memory, .control = &control};
static struct gy_world world;
static struct gy_context ctx;
static struct gyre_comm comm;
static struct gyre_window window;
static struct gy_link links[3];
static int linked[3] = {0, 1, 2}, posted[3];
static struct gy_member all[WORLD] = {[0] = {.host = 1}, [1] = {.host = 1}};
static struct gy_peer known[WORLD];
static void post(struct gy_link *link, struct gy_frame_out *frame);
static const struct gy_transport_ops transport = {.post = post};
static struct gy_segment here; /* there is one */

/* ---- what the linker puts in front ---- */

int64_t __wrap_gy_now(void);
int __wrap_sched_yield(void);
gyre_status __wrap_gy_overlay_check(struct gy_overlay *overlay, struct gy_error *error);
void __wrap_gy_overlay_report(struct gy_overlay *overlay, gyre_status status, int rank, const char *text);
void __wrap_gy_context_fail(struct gy_context *context);
void __wrap_gy_liveness_show(struct gy_context *context);
void __wrap_gy_progress_occasional(struct gy_context *context);
gyre_status __wrap_gy_run_own(struct gyre_comm *on, const struct gy_call *call);

int64_t __wrap_gy_now(void)
{
    return now;
}

int __wrap_sched_yield(void)
{
    now += STEP;
    if (others) /* a sanitizer, which is linked in, yields outside of the tests */
        others();
    return 0;
}

gyre_status __wrap_gy_overlay_check(struct gy_overlay *overlay, struct gy_error *error)
{
    (void)overlay, (void)error;
    return GYRE_SUCCESS;
}

void __wrap_gy_overlay_report(struct gy_overlay *overlay, gyre_status status, int rank, const char *text)
{
    (void)overlay, (void)text;
    reported = status;
    told = rank;
}

void __wrap_gy_context_fail(struct gy_context *context)
{
    context->closed = true;
}

void __wrap_gy_liveness_show(struct gy_context *context)
{
    (void)context;
    shown++;
}

static void attend(void)
{
    longest = now - attended > longest ? now - attended : longest;
    attended = now;
}

void __wrap_gy_progress_occasional(struct gy_context *context)
{
    (void)context;
    attend();
}

/* To ranks 0 and 1, elsewhere, and rank 2, which sees the heartbeat, there are links. The frame never comes back from
 * rank 1's. */
static void post(struct gy_link *link, struct gy_frame_out *frame)
{
    static const int heartbeat = 2;
    int to = (int)(link - links);
    cr_assert(frame->header.kind == GY_FRAME_PONG && frame->header.comm == comm.id && frame->header.value == 77);
    cr_assert(to != heartbeat && !frame->queued);
    frame->queued = to == 1;
    posted[to]++;
    if (to == 0)
        attend();
}

/* What rank 1 of two says of its window: its bytes, and the places of its memory and of what belongs to it, + 1. */
static uint64_t says[3];
static bool short_of_memory;

gyre_status __wrap_gy_run_own(struct gyre_comm *on, const struct gy_call *call)
{
    if (short_of_memory)
        return gy_error_set(&on->error, GYRE_NO_MEMORY, -1, "out of memory for a request");
    if (call->collective == GY_ALL_GATHER) {
        size_t bytes = call->count * sizeof(int64_t);
        memcpy(call->output, call->input, bytes);
        memset((unsigned char *)call->output + bytes, 0, bytes);
        memcpy((unsigned char *)call->output + bytes, says, sizeof(says));
    }
    return GYRE_SUCCESS;
}

/* ---- the others ---- */

static void give_to(int rank)
{
    if (control.lock != 0)
        gy_window_unlock(&control);
    control.lock = rank < 0 ? 0 : (uint32_t)rank + 1;
    taken = now;
    turn++;
}

/* Each has it for ten seconds; the lock is never seen free. */
static void forty_in_turn(void)
{
    if (now - taken >= 10 * GY_SECOND)
        give_to(turn < 40 ? 10 + turn : -1);
}

/* One rank that takes it again and again. */
static void the_same_again(void)
{
    if (now - taken >= 10 * GY_SECOND)
        give_to(turn < 40 ? 10 : -1);
}

/* The last of several stays. */
static void three_and_stay(void)
{
    if (now - taken >= 20 * GY_SECOND && turn < 3)
        give_to(10 + turn);
}

static void for_ever(void)
{
    give_to(10 + turn % 2);
}

static void woken(void)
{
    if (turn++ == 1)
        attended = now += 1000 * GY_SECOND; /* all were stopped; rank 10 is the last to go on */
    else
        give_to(-1);
}

static void begin(void (*who)(void))
{
    now = 1000 * GY_SECOND;
    turn = shown = 0;
    told = -2;
    reported = GYRE_SUCCESS;
    others = who;
    memset(&control, 0, sizeof(control));
    memory[0] = 0;
    attended = now;
    longest = 0;
    memset(posted, 0, sizeof(posted));
    memset(known, 0, sizeof(known));
    for (int i = 0; i < 3; i++)
        known[i].link = &links[i];
    world = (struct gy_world){.rank = OWN, .size = WORLD, .members = all};
    ctx = (struct gy_context){.world = &world,
                              .segment = &here,
                              .config.stall_timeout_ns = STALL,
                              .peers = known,
                              .linked = linked,
                              .links = 3,
                              .ops = {&transport}};
    comm = (struct gyre_comm){
        .ctx = &ctx, .id = 9, .sequence = 77, .size = 1, .attributes.timeout_ns = 1800 * GY_SECOND, .windows = &window};
    window = (struct gyre_window){.comm = &comm,
                                  .id = 3,
                                  .size = 1,
                                  .memory = target.memory,
                                  .bytes = sizeof(memory),
                                  .control = &control,
                                  .targets = &target};
    give_to(10);
}

static gyre_status add(void)
{
    static const int64_t one = 1;
    static const struct gy_operation sum = {.dtype = GYRE_INT64, .op = GYRE_SUM};

    return gy_window_accumulate(&window, &one, 1, &sum, 0, 0);
}

static bool hear(void)
{
    static const int64_t one = 1;
    static const struct gy_frame frame = {.kind = GY_FRAME_ACCUMULATE,
                                          .dtype = GYRE_INT64,
                                          .op = GYRE_SUM,
                                          .count = 1,
                                          .bytes = sizeof(one),
                                          .sequence = 3};

    return gy_rma_arrived(&comm, 0, &frame, &one);
}

static void expect_had_it(void)
{
    cr_assert(reported == GYRE_SUCCESS && !ctx.closed, "rank %d is blamed: %s", told, ctx.error.text);
    cr_assert(memory[0] == 1 && control.lock == 0);
    cr_assert(shown > 0, "it has not shown that it lives itself");
    attend();
    cr_assert(longest <= GY_SECOND + STEP, "those elsewhere have not known for %lld ms that it lives",
              (long long)(longest / GY_MILLISECOND));
}

/* ---- tests ---- */

Test(one_sided, nobody_is_blamed_for_the_turns_of_others, .timeout = 60)
{
    begin(forty_in_turn);
    cr_assert(add() == GYRE_SUCCESS, "%s", ctx.error.text);
    expect_had_it();
    cr_assert(posted[0] == 0, "its links are looked at");
    begin(forty_in_turn);
    cr_assert(hear());
    expect_had_it();
    cr_assert(posted[0] >= 399 && posted[0] <= 401 && posted[1] == 1, "%d and %d", posted[0], posted[1]);
}

Test(one_sided, a_holder_that_takes_the_lock_again_has_moved, .timeout = 60)
{
    begin(the_same_again);
    cr_assert(add() == GYRE_SUCCESS, "%s", ctx.error.text);
    expect_had_it();
}

Test(one_sided, a_holder_that_stays_is_blamed_for_its_turn, .timeout = 60)
{
    begin(three_and_stay);
    cr_assert(add() == GYRE_PEER_STALLED && ctx.closed);
    cr_assert(reported == GYRE_PEER_STALLED && told == 12 && ctx.error.rank == 12, "rank %d", told);
    cr_assert(now - taken > STALL && now - taken <= STALL + 2 * STEP, "after %lld ms",
              (long long)((now - taken) / GY_MILLISECOND));
}

/* No rank is to blame, and the communicator continues. This rank owes to all ranks what a peer takes for done. */
Test(one_sided, turns_without_end_are_bounded_by_the_communicator, .timeout = 60)
{
    begin(for_ever);
    comm.attributes.timeout_ns = 7 * GY_SECOND;
    int64_t began = now;
    cr_assert(add() == GYRE_PEER_LATE && !ctx.closed && reported == GYRE_SUCCESS);
    cr_assert(comm.error.status == GYRE_PEER_LATE && comm.error.rank == -1 && strstr(comm.error.text, "within 7 s"));
    cr_assert(now - began > 7 * GY_SECOND && now - began <= 7 * GY_SECOND + 2 * STEP);
    cr_assert(memory[0] == 0);
    begin(for_ever);
    comm.attributes.timeout_ns = 7 * GY_SECOND;
    cr_assert(hear());
    cr_assert(reported == GYRE_PEER_LATE && told == OWN && ctx.error.status == GYRE_PEER_LATE);
}

Test(one_sided, a_stopped_rank_does_not_blame_the_holder, .timeout = 60)
{
    begin(woken);
    cr_assert(add() == GYRE_SUCCESS, "%s", ctx.error.text);
    expect_had_it();
}

/* ---- making a window ---- */

#define HEAP (64u << 10)

static struct gy_member members[2] = {{.pid = 100, .local = 0}, {.pid = 101, .local = 1}};
static struct gy_peer peers[2];
static struct gy_segment segment;

static void *expose_nothing(void *instance, void *what, size_t bytes, struct gy_rma_key *key_p)
{
    (void)instance, (void)what, (void)bytes, (void)key_p;
    return NULL;
}

static gyre_status open_link(void *instance, int peer, struct gy_link **link_p, struct gy_error *error)
{
    (void)instance, (void)peer, (void)error;
    *link_p = &links[0];
    return GYRE_SUCCESS;
}

static const struct gy_transport_ops without_devices = {.expose = expose_nothing, .link = open_link};

/* A world of two processes of one host, of which this is rank 0. */
static void begin_two(void)
{
    short_of_memory = false;
    told = -2;
    reported = GYRE_SUCCESS;
    world = (struct gy_world){.rank = 0, .size = 2, .members = members};
    segment = (struct gy_segment){.world = &world, .layout = {.page = 4096, .heap_bytes = HEAP, .heap_stride = HEAP}};
    segment.fds.memory = gy_memfd_make("heaps", 2 * HEAP);
    cr_assert(segment.fds.memory >= 0);
    segment.base = mmap(NULL, 2 * HEAP, PROT_READ | PROT_WRITE, MAP_SHARED, segment.fds.memory, 0);
    cr_assert(segment.base != MAP_FAILED);
    memset(peers, 0, sizeof(peers));
    ctx = (struct gy_context){
        .world = &world, .segment = &segment, .peers = peers, .linked = linked, .ops = {&without_devices}};
    comm = (struct gyre_comm){.ctx = &ctx, .size = 2};
}

static void end_two(void)
{
    gy_windows_free_deferred(&ctx);
    munmap(segment.base, 2 * HEAP);
    close(segment.fds.memory);
}

/* Where rank 1 has its memory is its own word, and this rank stores there: it is believed only inside of that rank's
 * heap. */
Test(one_sided, a_place_outside_of_the_heap_is_not_believed, .timeout = 60)
{
    static const struct {
        uint64_t bytes, place, control;
        bool good;
    } cases[] = {
        {100, 0, 4096, true},
        {HEAP - 8192, 0, HEAP - 8192, true},
        {0, HEAP, 0, true},
        {HEAP + 1, 0, 0, false},
        {100, HEAP - 99, 0, false},
        {100, HEAP, 0, false},
        {100, UINT64_MAX - 100, 0, false},
        {UINT64_MAX, 4096, 0, false},
        {100, 0, HEAP - sizeof(struct gy_exposed_control) + GY_CACHE_LINE, false},
        {100, 0, UINT64_MAX - 1, false},
        {100, 0, 4097, false},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct gyre_window *made = NULL;
        begin_two();
        memcpy(says, (uint64_t[]){cases[i].bytes, cases[i].place + 1, cases[i].control + 1}, sizeof(says));
        gyre_status status = gy_window_expose(&comm, memory, sizeof(memory), &made);
        if (cases[i].good) {
            cr_assert(status == GYRE_SUCCESS && reported == GYRE_SUCCESS, "case %zu: %s", i, ctx.error.text);
            cr_assert(made->targets[1].memory == segment.base + HEAP + cases[i].place);
            cr_assert(peers[1].link, "rank 1 reaches this rank's memory, which is not on the heap, by frames");
            cr_assert(gy_window_conceal(made) == GYRE_SUCCESS);
        } else {
            cr_assert(status == GYRE_PROTOCOL && ctx.closed && !made && !comm.windows, "case %zu: %d", i, status);
            cr_assert(reported == GYRE_PROTOCOL && told == 1 && ctx.error.rank == 1, "case %zu: rank %d", i, told);
            cr_assert(strstr(ctx.error.text, "rank 1 says that its") && strstr(ctx.error.text, "of its heap"));
        }
        end_two();
    }
}

/* The others wait for its part: they are told that it does not come. */
Test(one_sided, a_rank_without_memory_for_a_window_reports_it, .timeout = 60)
{
    for (int destroys = 0; destroys < 2; destroys++) {
        struct gyre_window *made = NULL;
        begin_two();
        memcpy(says, (uint64_t[]){100, 1, 4097}, sizeof(says));
        short_of_memory = !destroys;
        gyre_status status = gy_window_expose(&comm, memory, sizeof(memory), &made);
        if (destroys) {
            cr_assert(status == GYRE_SUCCESS && reported == GYRE_SUCCESS);
            comm.error.status = GYRE_PEER_LATE; /* an earlier call's */
            short_of_memory = true;
            status = gy_window_conceal(made);
        }
        cr_assert(status == GYRE_NO_MEMORY && reported == GYRE_NO_MEMORY && told == 0, "rank %d", told);
        cr_assert(comm.error.status == GYRE_NO_MEMORY && strstr(comm.error.text, "out of memory"));
        cr_assert(!comm.windows && ctx.windows == 0);
        end_two();
    }
}
