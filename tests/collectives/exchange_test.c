/* What eager exchanges prefetch before they need it (collectives/shm/eager.h): hints, which do not change results.
 * And which ranks wait for which. */
#include <criterion/criterion.h>

#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include "collectives/shm/eager.h"

#define RANKS 3

/* Exchange 5 of rank 1 of three, with root 0. */
static struct gy_region window[RANKS];

static struct gyre_comm the_comm;
static struct gy_context the_context;
static struct gy_exchange_kind kinds[2];

/* The last but one stays as it is. */
static struct gy_exchange exchange_of(enum gy_collective collective, size_t block)
{
    static struct gy_call_signature shape;
    static unsigned turn;
    static struct gy_region_control *control[RANKS];
    the_comm = (struct gyre_comm){.ctx = &the_context, .size = RANKS, .rank = 1, .control = control};
    shape = (struct gy_call_signature){.collective = (uint8_t)collective, .count = block};
    for (int p = 0; p < RANKS; p++)
        control[p] = &window[p].control;
    struct gy_exchange_kind *kind = &kinds[++turn % 2];
    *kind = gy_exchange_kind_of(&the_comm, &shape, 1);
    return gy_exchange_of(&the_comm, kind, &shape, 5, NULL, NULL);
}

static void expects(enum gy_collective collective, size_t block, int peer, const unsigned char *first, size_t bytes)
{
    const struct gy_exchange it = exchange_of(collective, block);
    const struct gy_span span = gy_exchange_expected(&it, peer);
    cr_expect_eq(span.bytes, bytes, "%d of %zu bytes: %zu from rank %d", (int)collective, block, span.bytes, peer);
    cr_expect(bytes == 0 || span.first == first, "%d of %zu bytes from rank %d", (int)collective, block, peer);
}

Test(exchange, a_reader_asks_for_what_it_reads_and_the_flag_does_not_bring)
{
    const struct gy_region_line *line = &window[0].control.line[5];
    const unsigned char *place = window[0].shorter[5];
    size_t far = gy_line_can_hand_over() ? 0 : 1; /* else the lines of a vector are pushed */
    expects(GY_BARRIER, 0, 0, NULL, 0);
    expects(GY_ALL_REDUCE, 48, 0, NULL, 0);
    expects(GY_ALL_REDUCE, 49, 0, line->payload + 48, 1);
    expects(GY_ALL_REDUCE, 112, 0, line->payload + 48, 64);
    expects(GY_ALL_REDUCE, 113, 0, place, far * 113);
    expects(GY_ALL_REDUCE, 512, 0, place, far * 512);
    expects(GY_ALL_REDUCE, 513, 0, NULL, 0);
    expects(GY_ALL_TO_ALL, 16, 0, NULL, 0);
    expects(GY_ALL_TO_ALL, 30, 0, line->payload + 48, 42);
    expects(GY_ALL_TO_ALL, 200, 0, place + 200, far * 200); /* my block of the root's */
    expects(GY_REDUCE_SCATTER, 512, 0, place + 512, far * 512);
    expects(GY_BROADCAST, 200, 0, place, far * 200);
    expects(GY_BROADCAST, 200, 2, NULL, 0);
    expects(GY_REDUCE_TO, 200, 0, NULL, 0);
}

static void owns(enum gy_collective collective, size_t block, struct gy_owned wanted)
{
    const struct gy_exchange it = exchange_of(collective, block);
    const struct gy_owned owned = gy_exchange_owned(&it);
    cr_expect(owned.flag == wanted.flag && owned.beside == wanted.beside && owned.vector == wanted.vector,
              "%d of %zu bytes: %d, %d, %d", (int)collective, block, owned.flag, owned.beside, owned.vector);
}

Test(exchange, a_call_fetches_what_it_will_write)
{
    const bool vector = !gy_line_can_hand_over();
    const struct gy_owned flag = {.flag = true}, both = {.flag = true, .beside = true}, nothing = {.flag = false};
    const struct gy_owned place = {.flag = true, .vector = vector},
                          far = {.flag = !vector, .vector = vector}; /* from its flag */
    owns(GY_BARRIER, 0, flag);
    owns(GY_ALL_REDUCE, 48, flag);
    owns(GY_ALL_REDUCE, 49, both);
    owns(GY_ALL_REDUCE, 112, both);
    owns(GY_ALL_REDUCE, 113, place);
    owns(GY_ALL_REDUCE, 256, place);
    owns(GY_ALL_REDUCE, 257, far);
    owns(GY_ALL_REDUCE, 2048, far);
    owns(GY_ALL_REDUCE, 2049, nothing);
    owns(GY_ALL_TO_ALL, 128, place); /* its own block is not shown */
    owns(GY_ALL_TO_ALL, 129, far);
    owns(GY_ALL_TO_ALL, 1024, far);
    owns(GY_ALL_TO_ALL, 1025, nothing);
    owns(GY_BROADCAST, 4096, flag); /* it gives nothing */
    owns(GY_SCATTER_FROM, 4096, flag);
    owns(GY_REDUCE_TO, 2048, far);
    owns(GY_REDUCE_TO, 2049, nothing);
}

static bool waits(bool oversubscribed, enum gy_collective collective, int root, int rank, int peer)
{
    static struct gy_context ctx;
    ctx.oversubscribed = oversubscribed;
    const struct gyre_comm comm = {.ctx = &ctx, .size = RANKS, .rank = rank};
    const struct gy_ranks awaited = gy_exchange_awaits(&comm, collective, root);
    return peer >= awaited.first && peer < awaited.end;
}

Test(exchange, a_rank_that_shares_its_core_waits_for_those_of_whom_it_takes_something)
{
    for (int rank = 0; rank < RANKS; rank++)
        for (int peer = 0; peer < RANKS; peer++)
            for (enum gy_collective c = 0; c < GY_SEND_TO; c++) {
                bool from_root = c == GY_BROADCAST || c == GY_SCATTER_FROM,
                     to_root = c == GY_REDUCE_TO || c == GY_GATHER_TO;
                bool needs = from_root ? peer == 1 && rank != 1 : to_root ? rank == 1 : true;
                cr_expect_eq(waits(true, c, 1, rank, peer), needs);
                cr_expect_eq(waits(false, c, 1, rank, peer), true);
            }
}

/* Takes what rank 0 of three has shown, by lines that may be read alone. */
static void take_from_read_only(enum gy_collective collective)
{
    enum { BLOCK = 1024 };
    static unsigned char input[RANKS * BLOCK], output[RANKS * BLOCK];
    struct gy_exchange it = exchange_of(collective, BLOCK);
    struct gy_operation operation = {.dtype = GYRE_UINT8, .op = GYRE_SUM};
    struct gy_region *theirs = mmap(NULL, sizeof *theirs, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(theirs, MAP_FAILED);
    it.comm->control[0] = &theirs->control;
    it.input = input;
    it.output = output;
    it.claims = true;
    it.kind->take(&it, &operation, false);
    munmap(theirs, sizeof *theirs);
}

/* No kernel, which would make another NaN of a signalling one. */
Test(exchange, a_rank_alone_keeps_the_bits_of_its_operand)
{
    static struct gy_region_control *control[1];
    static struct gy_context ctx;
    struct gyre_comm comm = {.ctx = &ctx, .size = 1, .control = control};
    const struct gy_call_signature shape = {
        .collective = GY_ALL_REDUCE, .count = 1, .dtype = GYRE_FLOAT32, .op = GYRE_SUM};
    const struct gy_operation operation = {.dtype = GYRE_FLOAT32, .op = GYRE_SUM};
    const uint32_t input = 0xffa00001;
    uint32_t output = 0;
    control[0] = &window[0].control;
    const struct gy_exchange_kind kind = gy_exchange_kind_of(&comm, &shape, sizeof input);
    const struct gy_exchange it = gy_exchange_of(&comm, &kind, &shape, 1, &input, &output);
    cr_assert_null(kind.kernel);
    kind.take(&it, &operation, false);
    cr_assert_eq(output, input);
}

static sigjmp_buf back;

static void on_fault(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

/* Tests whether consuming writes to what others have published. By a handler, since a sanitizer has one of its own,
 * which ends the process. */
static bool writes(enum gy_collective collective)
{
    const struct sigaction ours = {.sa_handler = on_fault};
    static struct sigaction before;
    static bool faulted;
    sigaction(SIGSEGV, &ours, &before);
    faulted = true;
    if (sigsetjmp(back, 1) == 0) {
        take_from_read_only(collective);
        faulted = false;
    }
    sigaction(SIGSEGV, &before, NULL);
    return faulted;
}

/* A line that other ranks read as well is not write-prefetched, and a line that no other rank reads is. */
Test(exchange, what_nobody_else_reads_is_claimed)
{
    cr_expect(!writes(GY_ALL_REDUCE));
    cr_expect(!writes(GY_ALL_GATHER));
    cr_expect(!writes(GY_BROADCAST));
    cr_expect(writes(GY_ALL_TO_ALL));
    cr_expect(writes(GY_REDUCE_SCATTER));
    cr_expect(writes(GY_SCATTER_FROM));
}

/* Where the processor gains by claims two ranks with cores of their own claim what is up to 4 KiB, if a rank reads 2
 * KiB of it, and the clock is asked beyond; otherwise it is from 4 KiB on. */
Test(exchange, what_is_known_to_be_best_is_not_asked)
{
    static struct gy_context ctx;
    for (int others = 0; others < 2; others++)
        for (int shared = 0; shared < 2; shared++)
            for (size_t block = 1; block <= 16384; block++) {
                struct gy_exchange it = exchange_of(GY_ALL_REDUCE, block), half = exchange_of(GY_ALL_TO_ALL, block);
                const bool known = !others && !shared && gy_line_gains_by_claims();
                it.comm->size = 2 + others;
                it.comm->ctx = &ctx;
                ctx.oversubscribed = shared;
                struct gy_exchange_kind whole = *half.kind;
                whole.bytes = block * (size_t)it.comm->size;
                half.kind = &whole;
                cr_assert_eq(gy_exchange_asks(&it), known ? block > 4096 : block >= 4096);
                cr_assert_eq(gy_exchange_claims(&it), known && block >= 2048 && block <= 4096);
                cr_assert_eq(gy_exchange_claims(&half), known && block == 2048);
            }
}

/* A reader of one line has the processor prefetch what lies behind it in its page. */
Test(exchange, between_two_places_lies_a_page)
{
    static const size_t bytes[] = {GY_REGION_INLINE + 1, GY_REGION_SHORT, GY_REGION_SHORT + 1, GY_REGION_VECTOR};
    for (size_t b = 0; b < sizeof bytes / sizeof *bytes; b++)
        for (size_t c = 0; c < sizeof bytes / sizeof *bytes; c++)
            for (uint64_t number = 0; number < GY_REGION_LINES; number++)
                for (uint64_t later = 0; later < GY_REGION_LINES; later++) {
                    const unsigned char *one = gy_region_vector(&window[0].control, number, bytes[b]),
                                        *next = gy_region_vector(&window[0].control, later, bytes[c]);
                    cr_assert(next <= one || next >= one + bytes[b] + 4096);
                }
}

/* Bytes stay as they are, and none beside them is touched. */
Test(exchange, a_claim_changes_nothing)
{
    enum { PAGE = 4096 };
    unsigned char *pages = mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    cr_assert_eq(mprotect(pages + PAGE, PAGE, PROT_READ | PROT_WRITE), 0);
    for (int i = 0; i < PAGE; i++)
        pages[PAGE + i] = (unsigned char)(i * 7);
    gy_line_claim(pages + PAGE, PAGE);
    gy_line_claim(pages + PAGE + 1, PAGE - 1);
    gy_line_claim(pages + 2 * PAGE - 1, 1);
    gy_line_claim(pages, 0);
    for (int i = 0; i < PAGE; i++)
        cr_assert_eq(pages[PAGE + i], (unsigned char)(i * 7));
    munmap(pages, 3 * PAGE);
}
