/* An all_to_all of ranks that share cores, whose operands outgrow the caches, publishes a tile in the pass that
 * consumes another (collectives/shm/slots.c): all of them but the first two, which cannot be published so, and
 * results are what they were. The size of the caches and how slots are written is the test's own; calls of the
 * library's functions come here first, by the linker. */
#include <sched.h>

#include "collectives/shm/autotune.h"
#include "collectives/shm/zero_copy.h"
#include "core/dtype.h"
#include "core/topology.h"

#include "support/launcher.h"

#define RANKS 4
#define SLOT ((size_t)16 << 10)
#define TILE (SLOT / (RANKS - 1) / 64 * 64) /* bytes */
#define LEAD 2                              /* tiles that are shown before one is taken */
#define BLOCK (11 * TILE + 200)

static size_t cache; /* bytes of it that there are */
static bool past;    /* the caches, into slots */
static size_t both;  /* bytes that were copied with as many others in one pass, */
static size_t all;   /* and all of them past the caches; the others in part */

size_t __wrap_gy_topology_last_cache(void);
size_t __wrap_gy_topology_last_cache(void)
{
    return cache;
}

enum gy_shm_variant __wrap_gy_tuner_publish(struct gyre_request *request);
enum gy_shm_variant __wrap_gy_tuner_publish(struct gyre_request *request)
{
    (void)request;
    return past ? GY_SHM_SLOT_NT : GY_SHM_SLOT;
}

/* All ranks are bound to one core, and do as if they were on two. */
bool __wrap_gy_cores_same(const struct gyre_comm *comm, int rank);
bool __wrap_gy_cores_same(const struct gyre_comm *comm, int rank)
{
    return (comm->rank + rank) % 2 == 0;
}

void __real_gy_copy_both(void *dst, const void *src, void *dst2, const void *src2, size_t bytes, unsigned stream);
void __wrap_gy_copy_both(void *dst, const void *src, void *dst2, const void *src2, size_t bytes, unsigned stream);
void __wrap_gy_copy_both(void *dst, const void *src, void *dst2, const void *src2, size_t bytes, unsigned stream)
{
    both += bytes;
    all += stream == (GY_STREAM_DST | GY_STREAM_DST2) ? bytes : 0;
    CHECK(stream & GY_STREAM_DST);
    __real_gy_copy_both(dst, src, dst2, src2, bytes, stream);
}

static gyre_comm *comm;
static int rank;

static unsigned char byte_of(int round, int from, int to, size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + (size_t)round * 31 + (size_t)from * 101 + (size_t)to * 57);
}

static void fill(unsigned char *in, int round, size_t block)
{
    for (int to = 0; to < RANKS; to++)
        for (size_t i = 0; i < block; i++)
            in[(size_t)to * block + i] = byte_of(round, rank, to, i);
}

static void check(const unsigned char *out, int round, size_t block)
{
    for (int from = 0; from < RANKS; from++)
        for (size_t i = 0; i < block; i++)
            if (out[(size_t)from * block + i] != byte_of(round, from, rank, i))
                rank_fail("round %d: byte %zu of %zu from rank %d is another", round, i, block, from);
}

/* Bytes of a block that leave in one pass with others. A short block has two tiles. */
static size_t expected(size_t block)
{
    size_t tile = block / 2 < SLOT / (RANKS - 1) ? (block / 2 > TILE / 2 ? block / 2 : TILE / 2) / 64 * 64 : TILE;
    return cache < RANKS * 2 * RANKS * block && block > LEAD * tile ? block - LEAD * tile : 0;
}

static void exchange(unsigned char *in, unsigned char *out, int round, size_t block, bool waits)
{
    size_t before = both, all_before = all, wanted = (RANKS - 1) * expected(block);
    gyre_request *request;
    fill(in, round, block);
    if (waits) {
        OK(comm, gyre_all_to_all(comm, in, out, block, GYRE_UINT8));
    } else {
        OK(comm, gyre_all_to_all_start(comm, in, out, block, GYRE_UINT8, &request));
        OK(comm, gyre_wait(&request));
    }
    check(out, round, block);
    if (both - before != wanted)
        rank_fail("round %d: of a block of %zu bytes %zu went in one pass instead of %zu", round, block, both - before,
                  wanted);
    CHECK(all - all_before == (past ? RANKS / 2 * expected(block) : 0));
}

/* Ranks that expose their input have nothing to publish, and the others have nothing to consume from them. */
static void mix(unsigned char *out, int round)
{
    void *shared = NULL;
    OK(comm, gyre_mem_alloc(comm, RANKS * BLOCK, &shared));
    unsigned char *in = rank % 2 ? shared : malloc(RANKS * BLOCK);
    CHECK(in);
    fill(in, round, BLOCK);
    OK(comm, gyre_all_to_all(comm, in, out, BLOCK, GYRE_UINT8));
    check(out, round, BLOCK);
    if (!(rank % 2))
        free(in);
    OK(comm, gyre_mem_free(comm, shared));
}

static void run_rank(int me)
{
    static const size_t blocks[] = {100, TILE, LEAD * TILE, LEAD * TILE + 1, 4 * TILE, BLOCK};
    comm = rank_begin(60);
    rank = me;
    const size_t bytes = (RANKS * BLOCK + 127) / 64 * 64;
    unsigned char *in = aligned_alloc(64, bytes), *out = aligned_alloc(64, bytes);
    CHECK(in && out);
    for (int round = 0; round < 8; round++) {
        past = round & 1;
        cache = round & 2 ? (size_t)1 << 30 : 4096;
        for (size_t b = 0; b < sizeof(blocks) / sizeof(*blocks); b++) {
            exchange(in, out, round, blocks[b], round < 4);
            exchange(in + 5, out + 9, round, blocks[b], round < 4);
        }
        mix(out, round);
    }
    for (past = 0;; past = 1) { /* in place all that is read is as long as what is written */
        cache = RANKS * RANKS * BLOCK / 2;
        exchange(in, in, past, BLOCK, true);
        if (past)
            break;
    }
    OK(comm, gyre_comm_destroy(comm));
    _exit(0);
}

int main(void)
{
    cpu_set_t usable, one;
    CPU_ZERO(&one);
    CHECK(sched_getaffinity(0, sizeof(usable), &usable) == 0);
    for (size_t c = 0; c < CPU_SETSIZE && CPU_COUNT(&one) == 0; c++)
        if (CPU_ISSET(c, &usable))
            CPU_SET(c, &one);
    CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
    launch_set_number("GYRE_SHM_SLOT", (long)SLOT);
    return !launch(RANKS, run_rank, 90, "one pass");
}
