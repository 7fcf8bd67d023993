/* Registrations, over the stand-in: each range once per device, as long as it is announced or under way; a GPU's memory
 * by its descriptor, and frames that devices take from there. */
#include "ranks.h"

#include "rdma_stand_in.h"
#include "transport/rdma/internal.h"
#include <unistd.h>

static void test_registrations(void)
{
    struct gy_config config = {.rdma_gid_index = -1};
    struct gy_error error = {0};
    struct gy_rdma_rail rails[GY_RDMA_RAILS];
    struct gy_rdma_memory memory = {.rails = rails};
    static unsigned char block[4][65536];
    char why[GY_RDMA_WHY];

    stand_in_reset(2);
    CHECK(gy_rdma_rails_open(&config, GY_FABRIC_ROCE, rails, &memory.rail_count, why, sizeof(why), &error) ==
              GYRE_SUCCESS,
          "%s", error.text);
    uint64_t before = stand_in_count().registrations;
    for (int i = 3; i >= 0; i--)
        CHECK(gy_rdma_memory_add(&memory, block[i], sizeof(block[i])), "no memory");
    CHECK(stand_in_count().registrations == before, "registered before it is sent from");
    struct gy_rdma_range *range = gy_rdma_memory_find(&memory, block[2] + 100, 1000);
    CHECK(range && range == gy_rdma_memory_find(&memory, block[2], sizeof(block[2])), "not found");
    CHECK(stand_in_count().registrations == before + 2, "not once per device");
    CHECK(!gy_rdma_memory_find(&memory, block[3] + 1, sizeof(block[3])), "beyond its end");
    gy_rdma_memory_add(&memory, block[2], sizeof(block[2])); /* twice announced: once withdrawn is not enough */
    gy_rdma_memory_remove(&memory, block[2]);
    CHECK(gy_rdma_memory_find(&memory, block[2], 10) == range, "forgotten too early");
    gy_rdma_range_hold(range);
    gy_rdma_memory_remove(&memory, block[2]);
    CHECK(!gy_rdma_memory_find(&memory, block[2], 10) && stand_in_count().mrs == 2, "under way, so still registered");
    CHECK(gy_rdma_memory_add(&memory, block[2], 10) && gy_rdma_memory_find(&memory, block[2], 10), "again");
    gy_rdma_range_drop(&memory, range);
    CHECK(stand_in_count().mrs == 2, "%d registered", stand_in_count().mrs);
    stand_in_fail_registration(2); /* the second device: the first is given back, and the range is copied */
    CHECK(!gy_rdma_memory_find(&memory, block[0], 10) && !gy_rdma_memory_find(&memory, block[0], 10), "refused");
    CHECK(stand_in_count().mrs == 2, "%d registered", stand_in_count().mrs);
    gy_rdma_memory_free(&memory, false);
    gy_rdma_rails_close(rails, memory.rail_count, false);
}

/* A GPU's memory is registered at once, by its descriptor, or left to its owner to stage. */
static void test_dmabuf(void)
{
    struct gy_config config = {.rdma_gid_index = -1};
    struct gy_error error = {0};
    struct gy_rdma_rail rails[GY_RDMA_RAILS];
    struct gy_rdma_memory memory = {.rails = rails};
    static unsigned char gpu[65536];
    char why[GY_RDMA_WHY];

    stand_in_reset(2);
    CHECK(gy_rdma_rails_open(&config, GY_FABRIC_ROCE, rails, &memory.rail_count, why, sizeof(why), &error) ==
              GYRE_SUCCESS,
          "%s", error.text);
    CHECK(!gy_rdma_memory_add_device(&memory, gpu, sizeof(gpu), -1, 0), "no descriptor");
    stand_in_refuses_dmabuf = true;
    CHECK(!gy_rdma_memory_add_device(&memory, gpu, sizeof(gpu), STDIN_FILENO, 0), "refused");
    stand_in_refuses_dmabuf = false;
    stand_in_fail_registration(2); /* the second device does not: the first gives it back */
    CHECK(!gy_rdma_memory_add_device(&memory, gpu, sizeof(gpu), STDIN_FILENO, 0), "one device only");
    CHECK(stand_in_count().mrs == 0 && memory.count == 0 && !gy_rdma_memory_is_device(&memory, gpu), "left behind");
    CHECK(gy_rdma_memory_add_device(&memory, gpu, sizeof(gpu), STDIN_FILENO, 4096), "not taken");
    struct gy_rdma_range *range = gy_rdma_memory_find(&memory, gpu + 5, 100);
    CHECK(range && range->device && range->writable && stand_in_count().dmabufs == 4 && memory.locked == 0,
          "%llu registrations, %zu bytes locked", (unsigned long long)stand_in_count().dmabufs, memory.locked);
    CHECK(gy_rdma_memory_is_device(&memory, gpu + sizeof(gpu) - 1), "not known");
    gy_rdma_memory_remove(&memory, gpu);
    CHECK(stand_in_count().mrs == 0 && memory.device_ranges == 0 && memory.locked == 0, "left behind");
    gy_rdma_memory_free(&memory, false);
    gy_rdma_rails_close(rails, memory.rail_count, false);
}

/* Frames of all sizes from a GPU's memory, more at once than may be sent directly, arrive whole, and the device has
 * taken each from where it lies. */
static void body_gpu(struct rank *rank)
{
    enum { FRAMES = 40 };
    static struct gy_frame_out frames[FRAMES];
    static unsigned char gpu[FRAMES][4096];
    struct rank_pair *pair = &rank->pair[0];

    rank_link(rank);
    if (rank->rank == 0) {
        CHECK(rank->ops->register_device(rank->instance, gpu, sizeof(gpu), STDIN_FILENO, 0), "not taken");
        for (unsigned i = 0; i < FRAMES; i++) {
            rank_frame(rank, 1, &frames[i], i + 1, gpu[i], 1 + i * 100);
            rank->ops->post(pair->link, &frames[i]);
        }
        for (bool all = false; !all;) {
            rank_progress(rank, false);
            all = true;
            for (unsigned i = 0; i < FRAMES; i++)
                all = all && frames[i].done;
        }
        rank->ops->unregister_memory(rank->instance, gpu);
        CHECK(stand_in_count().from_gpu == FRAMES, "%llu", (unsigned long long)stand_in_count().from_gpu);
    } else {
        while (pair->arrived < FRAMES)
            rank_progress(rank, false);
    }
    rank_barrier(rank);
}

int main(void)
{
    setenv("GYRE_TRANSPORT", "rdma", 1);
    gy_verbs_use(&stand_in_verbs);
    test_registrations();
    test_dmabuf();
    stand_in_reset(1);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "gpu", body_gpu);
    stand_in_end();
    return 0;
}
