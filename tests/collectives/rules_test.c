/* The hash of what ranks decide alike without messages (core/rules.h), made from the library. It covers all
 * schedules of some sizes and groups, as far as another rank sees what they do; the tiles of vectors; what is sent
 * without a grant, and how much of it; what is sent and written over RDMA; and which rank waits for which in eager
 * exchanges, and how far ahead of others. */
#include <criterion/criterion.h>

#include "bootstrap/world.h"
#include "checker.h"
#include "collectives/engine/request.h"
#include "collectives/events/upcalls.h"
#include "collectives/link/flow_control.h"
#include "collectives/schedule/tile.h"
#include "collectives/shm/eager.h"
#include "collectives/shm/slots.h"
#include "core/rules.h"
#include "net/handshake.h"
#include "transport/rdma/checksum.h"
#include "transport/rdma/internal.h"
#include "transport/registry/registry.h"
#include "transport/tcp/internal.h"

#define LARGEST 9

static uint32_t number = 2166136261u;

static void add(uint64_t value)
{
    for (int byte = 0; byte < 8; byte++)
        number = (number ^ (uint32_t)(value >> 8 * byte & 0xff)) * 16777619u; /* FNV-1a */
}

#define ADD_ALL(...)                                                     \
    do {                                                                 \
        const int64_t values[] = {__VA_ARGS__};                          \
        for (size_t value = 0; value < GY_ARRAY_LENGTH(values); value++) \
            add((uint64_t)values[value]);                                \
    } while (0)

static struct gy_member members[LARGEST]; /* of two hosts, by halves */
static struct gy_world world = {.size = LARGEST, .epoch = 1, .members = members};
static struct gy_peer peers[LARGEST];
static struct gy_transport_ops other = {.eager = 8192};
static struct gy_context ctx = {
    .up = &gy_upcalls, .world = &world, .peers = peers, .ops = {&other, &gy_transport_tcp}, .transports = 2};

/* Which lengths of a step leave without a grant, in whole and in tiles. */
static void add_eager(struct gy_schedule *schedule, int lane, const struct gy_step *step)
{
    static const size_t lengths[] = {8192, 8196, 24000, 32768, 32772, 65536, 65540, 131072},
                        tiles[] = {8192, 12288, 131072};
    struct gyre_comm comm = {
        .ctx = &ctx, .rank = schedule->shape.rank, .size = schedule->shape.size, .group.size = schedule->shape.size};
    struct gyre_request r = {.comm = &comm, .schedule = schedule, .element = 4, .in.blocks = schedule->blocks};
    for (size_t i = 0; i < GY_ARRAY_LENGTH(lengths) * GY_ARRAY_LENGTH(tiles); i++) {
        r.in.total = lengths[i % GY_ARRAY_LENGTH(lengths)] / r.element * (size_t)schedule->blocks;
        r.out = r.in;
        r.tile = tiles[i / GY_ARRAY_LENGTH(lengths)] / r.element;
        peers[step->peer].transport = step->peer % 2 ? 0 : 1;
        members[step->peer].host = step->peer >= LARGEST / 2;
        add(gy_flow_is_eager(&r, lane, step));
    }
}

/* Needs of the own lanes are not covered: a rank that is ready later is waited for. */
static void add_step(struct gy_schedule *schedule, int lane, const struct gy_step *step)
{
    ADD_ALL(step->kind, step->peer, step->rounds, step->range.lo, step->range.stride, step->range.width, step->src,
            step->src2, step->dst, step->slot0, step->slot_stride, step->flip, step->keep, step->runs.lo,
            step->runs.stride, step->runs.run, step->runs.slot);
    for (int n = 0; n < GY_NEEDS; n++)
        if (step->needs[n].lane >= 0 && step->needs[n].everyone)
            ADD_ALL(step->needs[n].lane, step->needs[n].whole, step->needs[n].lag);
    if (step->kind <= GY_RECV_REDUCE)
        add_eager(schedule, lane, step);
}

static void add_schedule(struct gy_schedule *schedule)
{
    ADD_ALL(schedule->shape.collective, schedule->shape.algorithm, schedule->shape.size, schedule->shape.root,
            schedule->blocks, schedule->input_lo, schedule->input_blocks, schedule->output_lo, schedule->output_blocks,
            schedule->shm, schedule->side_by_side, schedule->one_shot);
    for (int l = 0; l < schedule->lanes; l++) {
        const struct gy_lane *lane = &schedule->lane[l];
        ADD_ALL(lane->tag, lane->region_lane, lane->count);
        for (int32_t s = lane->first; s < lane->first + lane->count; s++)
            add_step(schedule, l, &schedule->step[s]);
    }
}

static void add_schedules(enum gy_algorithm algorithm, const int *groups)
{
    for (int collective = 0; collective < GY_COLLECTIVES; collective++)
        for (int size = 2; size <= LARGEST; size++) {
            bool there = gy_schedule_exists((enum gy_collective)collective, algorithm, size);
            for (int root = 0; there && root < (gy_has_root((unsigned)collective) ? size : 1); root++) {
                struct gy_schedule_shape shape = {(enum gy_collective)collective, algorithm, 0, size, root, groups};
                struct gy_schedule **schedules = gy_checker_schedules(&shape);
                cr_assert_not_null(schedules);
                for (int r = 0; r < size; r++)
                    if (schedules[r])
                        add_schedule(schedules[r]);
                gy_checker_schedules_free(schedules, size);
            }
        }
}

static void add_tiles(void)
{
    for (int collective = 0; collective < GY_COLLECTIVES; collective++)
        for (int ranks = 2; ranks <= 1024; ranks *= 2)
            for (size_t bytes = 64; bytes <= (size_t)1 << 30; bytes = bytes * 3 / 2) {
                enum gy_collective it = (enum gy_collective)collective;
                for (size_t most = 8192; most <= (size_t)1 << 20; most *= 2) {
                    ADD_ALL((int64_t)gy_tile_bytes(it, ranks, 1, bytes, most),
                            (int64_t)gy_tile_bytes(it, ranks, 4, bytes, most));
                    ADD_ALL((int64_t)gy_tile_in_host(it, ranks, bytes, most, false),
                            (int64_t)gy_tile_in_host(it, ranks, bytes, most, true));
                }
            }
}

size_t __wrap_gy_segment_region_bytes(
    const struct gy_segment *segment); /* the linker puts it in the place of gy_segment_region_bytes */

static size_t slot;

size_t __wrap_gy_segment_region_bytes(const struct gy_segment *segment)
{
    (void)segment;
    return 2 * GY_REGION_SLOTS * slot;
}

/* The data that steps over shared memory move: all ranks count their tiles. */
static void add_shm_tiles(void)
{
    static const int sizes[] = {2, 3, 5}, side_by_side[] = {0, 1, 2, 4};
    struct gy_context shm = {.oversubscribed = false};
    struct gy_schedule schedule = {.shm = true};
    for (int c = 0; c < GY_SEND_TO * 3 * 4 * 2 * 2; c++) {
        const struct gyre_comm comm = {.ctx = &shm, .size = sizes[c / 4 % 3]};
        shm.oversubscribed = c % 2;
        schedule.one_shot = c / 2 % 2;
        schedule.side_by_side = side_by_side[c / 12 % 4];
        schedule.shape.collective = (enum gy_collective)(c / 48);
        schedule.blocks = schedule.one_shot ? 1 : comm.size;
        for (slot = 4096; slot <= (size_t)1 << 20; slot *= 4)
            for (size_t total = 16; total <= (size_t)1 << 24; total = total * 3 / 2) {
                const struct gy_layout in = {.total = total, .blocks = schedule.blocks};
                add(gy_slot_tile(&comm, &schedule, gy_layout_longest(&in, 1) * 4, 4));
            }
    }
}

/* What two ends of a link over RDMA say at first, and what they write to each other's memory. */
static void add_rdma(void)
{
    struct gy_rdma_hello hello = {1 << 20, 0x1234567890, 0x2345678901, 0x345678, 2, {{.qp = 1}, {.qp = 2}}};
    uint8_t wire[GY_RDMA_HELLO_BYTES];
    gy_rdma_hello_encode(&hello, wire);
    for (size_t i = 0; i < sizeof(wire); i++)
        add(wire[i]);
    ADD_ALL(GY_RDMA_CHUNK, GY_RDMA_CHUNKS, GY_RDMA_RESERVE, GY_RDMA_SILENT, GY_RDMA_TAG_BYTES, GY_RDMA_PULL_LEAST,
            GY_RDMA_PULLS, GY_RDMA_UNITS, GY_RDMA_REMEMBER, GY_RDMA_REPEAT, GY_RDMA_PULL, GY_RDMA_CREDIT_CHUNKS,
            GY_RDMA_CREDIT_UNITS, sizeof(struct gy_rdma_words), offsetof(struct gy_rdma_words, begun));
    add(gy_rdma_sum(wire, 300, hello.secret, 5));
}

static void add_flow(void)
{
    ADD_ALL(GY_EAGER_BYTES, GY_EAGER_UNITS, GY_OLDEST_CREDITS, GY_STASHED_MOST, GY_FRAME_MAX, GY_FRAME_BYTES,
            GY_TCP_FRAME_NT, GY_TCP_FRAME_CLASS_SHIFT, GY_TCP_FRAME_TIMED);
    for (int use = 0; use < GY_CREDIT_USES; use++)
        ADD_ALL(gy_credit_most((enum gy_credit_use)use), gy_credit_batch((enum gy_credit_use)use),
                gy_eager_most((enum gy_credit_use)use));
    for (int t = 0; gy_transports[t]; t++)
        add(gy_transports[t]->eager);
}

static void add_exchanges(void)
{
    static struct gy_context oversubscribed = {.oversubscribed = true};
    ADD_ALL(GY_REGION_AHEAD, GY_REGION_LINES, GY_REGION_INLINE, GY_REGION_SHORT, GY_REGION_VECTOR);
    for (unsigned collective = 0; collective < GY_SEND_TO; collective++)
        for (int rank = 0; rank < 3; rank++) {
            const struct gyre_comm comm = {.ctx = &oversubscribed, .size = 3, .rank = rank};
            const struct gy_ranks awaited = gy_exchange_awaits(&comm, collective, 1);
            ADD_ALL(awaited.first, awaited.end);
        }
}

Test(rules, hash_is_that_of_the_library, .timeout = 240)
{
    static const int pairs[LARGEST] = {0, 0, 1, 1, 2, 2, 3, 3, 4}, growing[LARGEST] = {0, 1, 1, 2, 2, 2, 3, 3, 3};
    for (int algorithm = 0; algorithm < GY_ALGORITHMS; algorithm++) {
        bool grouped = gy_is_hierarchical((enum gy_algorithm)algorithm);
        add_schedules((enum gy_algorithm)algorithm, grouped ? pairs : NULL);
        if (grouped)
            add_schedules((enum gy_algorithm)algorithm, growing);
    }
    add_tiles();
    add_shm_tiles();
    add_flow();
    add_rdma();
    add_exchanges();
    cr_assert_eq(
        number, GY_RULES,
        "Schedules, tiles, grants or exchanges differ from those of GY_RULES 0x%08xu. If that is intended, write "
        "\"#define GY_RULES 0x%08xu\" to src/core/rules.h. Raise GY_HANDSHAKE_VERSION (now %d) as well if a "
        "release has had it: other releases then refuse this one by version.",
        GY_RULES, number, GY_HANDSHAKE_VERSION);
}
