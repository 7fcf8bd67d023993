/* What no soft device shows, over the stand-in: the choice of ports, the limit of locked memory, requests and devices that
 * fail, memory that is registered once, and what two ends may say to each other. Two ranks, threads of this process. */
#include "ranks.h"

#include "boot/meet.h"
#include "core/clock.h"
#include "rdma_stand_in.h"
#include "transport/rdma_private.h"
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

/* Whether there is a second node, the kernel is asked: this machine may have one only. */
static bool several_nodes;
int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
    return several_nodes && strcmp(path, "/sys/devices/system/node/node1") == 0 ? 0 : __real_access(path, mode);
}

static char lines[16][256];
static int line_count;

static void collect(void *user, const char *line)
{
    (void)user;
    snprintf(lines[line_count++], sizeof(lines[0]), "%s", line);
}

static void survey(struct gy_config *config)
{
    line_count = 0;
    gy_rdma_describe(config, collect, NULL);
}

static void says(const char *device, const char *text)
{
    for (int i = 0; i < line_count; i++)
        if (strstr(lines[i], device)) {
            CHECK(strstr(lines[i], text), "%s, and not: %s", lines[i], text);
            return;
        }
    CHECK(false, "nothing about %s", device);
}

static void test_choice(void)
{
    struct gy_config config = {.rdma_gid_index = -1};
    struct gy_error error = {.quiet = true};
    struct gy_rdma_reach reach = {0};
    char why[GY_RDMA_WHY] = "";

    stand_in_reset(6);
    stand_in_devices[1].port[0].state = IBV_PORT_DOWN;
    stand_in_devices[2].refuses = true;
    stand_in_devices[3].port[0].speed = 1;
    stand_in_devices[4].port[0].gid[0].gid.raw[0] = 0xfe; /* link-local */
    stand_in_devices[4].port[0].gid[0].gid.raw[1] = 0x80;
    stand_in_devices[4].port[0].gid[1] = stand_in_devices[5].port[0].gid[0];
    stand_in_devices[4].port[0].gid[1].gid_type = IBV_GID_TYPE_ROCE_V1;
    stand_in_devices[5].ports = 2;
    stand_in_devices[5].port[1] = stand_in_devices[5].port[0];
    stand_in_devices[5].port[1].gid[2] = stand_in_devices[5].port[0].gid[0]; /* the mapped one is worth more */
    stand_in_devices[5].port[1].gid[0].gid.raw[0] = 0x20;
    survey(&config);
    CHECK(line_count == 7, "%d ports", line_count);
    says("soft0 port 1", "chosen: RoCE v2, GID 0 ::ffff:10.9.0.1, MTU 1024");
    says("soft1 port 1", "passed over: the port is down");
    says("soft2 port 1", "passed over: it cannot be opened: Permission denied");
    says("soft3 port 1", "passed over: soft0 port 1 is faster");
    says("soft4 port 1", "passed over: it has no GID of RoCE v2");
    says("soft5 port 1", "chosen");
    says("soft5 port 2", "chosen: RoCE v2, GID 2 ");
    snprintf(config.rdma_devices, sizeof(config.rdma_devices), "soft5:2,soft4");
    survey(&config);
    says("soft0 port 1", "passed over: GYRE_RDMA_DEVICES does not name it");
    says("soft5 port 1", "passed over: GYRE_RDMA_DEVICES does not name it");
    says("soft5 port 2", "chosen");
    config.rdma_gid_index = 0;
    survey(&config);
    says("soft4 port 1", "chosen: RoCE v2, GID 0 fe80");
    stand_in_devices[4].port[0].infiniband = true;
    survey(&config);
    says("soft5 port 2", "passed over: its link is of another kind than that of soft4 port 1");
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_SUCCESS &&
              reach.bits == GY_REACH_INFINIBAND,
          "%u", reach.bits);
    snprintf(config.rdma_devices, sizeof(config.rdma_devices), "soft9");
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_BAD_CONFIGURATION &&
              strstr(error.text, "GYRE_RDMA_DEVICES names soft9"),
          "%s", error.text);
    CHECK(strstr(error.text, "it has: soft0 port 1, soft1 port 1"), "%s", error.text);
    stand_in_reset(0); /* no device at all is no excuse */
    error = (struct gy_error){.quiet = true};
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_BAD_CONFIGURATION &&
              strstr(error.text, "it has: none (libibverbs knows no device here"),
          "%s", error.text);
    config.rdma_devices[0] = '\0';
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_SUCCESS && reach.bits == 0 &&
              reach.links == INT_MAX, /* it is no limit that keeps RDMA away */
          "%u bits, %d links", reach.bits, reach.links);
    stand_in_reset(1);
    config.integrity = GY_INTEGRITY_MAC;
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_SUCCESS && reach.bits == 0 && why[0], "%u",
          reach.bits);
}

/* What was said in the meeting holds: a better port of another kind that has come up since is not taken. */
static void test_kept(void)
{
    struct gy_config config = {.rdma_gid_index = -1};
    struct gy_error error = {0};
    struct gy_rdma_rail rails[GY_RDMA_RAILS];
    char why[GY_RDMA_WHY] = "";
    int count = 0;

    stand_in_reset(2);
    stand_in_devices[1].port[0].infiniband = true;
    stand_in_devices[1].port[0].speed = 64;
    survey(&config);
    says("soft0 port 1", "passed over");
    CHECK(gy_rdma_rails_open(&config, GY_REACH_ROCE, rails, &count, why, sizeof(why), &error) == GYRE_SUCCESS &&
              count == 1 && strstr(rails[0].name, "soft0"),
          "%d %s", count, why);
    gy_rdma_rails_close(rails, count, false);
    stand_in_devices[0].port[0].state = IBV_PORT_DOWN;
    CHECK(gy_rdma_rails_open(&config, GY_REACH_ROCE, rails, &count, why, sizeof(why), &error) == GYRE_SUCCESS &&
              count == 0 && strstr(why, "soft0 port 1: the port is down"),
          "%d %s", count, why);
}

/* A machine of two sockets with a processor and an adapter each, as hwloc's XML: soft<adapter> at the first one. */
static void put_sockets(FILE *file, const int processor[2], int adapter)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?><topology version=\"2.0\">", file);
    unsigned long long both = 1ull << processor[0] | 1ull << processor[1];
    const char *sets = " cpuset=\"0x%llx\" complete_cpuset=\"0x%llx\" nodeset=\"0x%x\" complete_nodeset=\"0x%x\"";
    fputs("<object type=\"Machine\" os_index=\"0\"", file);
    fprintf(file, sets, both, both, 3u, 3u);
    fprintf(file, " allowed_cpuset=\"0x%llx\" allowed_nodeset=\"0x3\">", both);
    for (int i = 0; i < 2; i++) {
        unsigned long long own = 1ull << processor[i];
        fprintf(file, "<object type=\"Package\" os_index=\"%d\"", i);
        fprintf(file, sets, own, own, 1u << i, 1u << i);
        fprintf(file, "><object type=\"NUMANode\" os_index=\"%d\" local_memory=\"1048576\"", i);
        fprintf(file, sets, own, own, 1u << i, 1u << i);
        fprintf(file, "/><object type=\"PU\" os_index=\"%d\"", processor[i]);
        fprintf(file, sets, own, own, 1u << i, 1u << i);
        fprintf(file,
                "/><object type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" bridge_pci=\"000%d:[00-01]\">"
                "<object type=\"PCIDev\" pci_busid=\"000%d:01:00.0\" pci_type=\"0207 [15b3:1013] [15b3:0001] 00\">"
                "<object type=\"OSDev\" name=\"soft%d\" osdev_type=\"3\"/></object></object></object>",
                i, i, adapter ^ i);
    }
    fputs("</object></topology>", file);
}

/* Of equal ports the one at this rank's own socket, whichever it is; a list of devices overrides that. */
static void test_nearest(void)
{
    struct gy_config config = {.rdma_gid_index = -1};
    char name[] = "/tmp/gyre-sockets-XXXXXX";
    cpu_set_t before, one;
    int here = sched_getcpu(), fd = mkstemp(name), there = here == 0 ? 1 : 0;
    const int processor[2] = {here < there ? here : there, here < there ? there : here}, first = here > there;

    CHECK(here >= 0 && fd >= 0 && sched_getaffinity(0, sizeof(before), &before) == 0, "no processor");
    if (here > 62)
        return; /* the sets above have one word */
    CPU_ZERO(&one);
    CPU_SET((size_t)here, &one);
    CHECK(sched_setaffinity(0, sizeof(one), &one) == 0, "not bound");
    setenv("HWLOC_XMLFILE", name, 1);
    setenv("HWLOC_THISSYSTEM", "1", 1);
    several_nodes = true;
    for (int mine = 0; mine < 2; mine++) {
        FILE *file = fopen(name, "w");
        CHECK(file, "%s", name);
        put_sockets(file, processor, first ^ mine);
        fclose(file);
        stand_in_reset(2);
        config.rdma_devices[0] = '\0';
        survey(&config);
        says(mine == 0 ? "soft0 port 1:" : "soft1 port 1:", "chosen: ");
        says(mine == 0 ? "soft1 port 1:" : "soft0 port 1:", mine == 0
                                                                ? "passed over: soft0 port 1 is nearer to this rank"
                                                                : "passed over: soft1 port 1 is nearer to this rank");
        snprintf(config.rdma_devices, sizeof(config.rdma_devices), "soft0,soft1");
        survey(&config);
        says("soft0", "chosen: ");
        says("soft1", "chosen: ");
    }
    several_nodes = false;
    unsetenv("HWLOC_XMLFILE");
    unsetenv("HWLOC_THISSYSTEM");
    CHECK(sched_setaffinity(0, sizeof(before), &before) == 0 && unlink(name) == 0, "not as before");
    close(fd);
}

/* A limit of locked memory, in force for this process, whoever started it. */
static void limit_locked(rlim_t bytes)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
    struct rlimit limit;

    CHECK(syscall(SYS_capget, &head, data) == 0, "no capabilities");
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    CHECK(syscall(SYS_capset, &head, data) == 0 && getrlimit(RLIMIT_MEMLOCK, &limit) == 0, "no limit");
    limit.rlim_cur = bytes;
    CHECK(setrlimit(RLIMIT_MEMLOCK, &limit) == 0 && gy_rdma_lockable() == bytes, "%zu", gy_rdma_lockable());
}

/* Where tcp serves as well, too little locked memory is a reason, with the number; where RDMA was asked for it is not. */
static void test_limit(void)
{
    struct gy_config config = {.rdma_gid_index = -1, .rdma_ring = 1 << 18};
    struct gy_error error = {.quiet = true};
    struct gy_rdma_reach reach = {0};
    struct rlimit before;
    char why[GY_RDMA_WHY] = "";

    CHECK(getrlimit(RLIMIT_MEMLOCK, &before) == 0, "no limit");
    stand_in_reset(2);
    limit_locked(64 << 10);
    snprintf(config.transports, sizeof(config.transports), "shm,rdma,tcp");
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_SUCCESS && reach.bits == 0 &&
              strstr(why, "soft0 port 1: the limit of locked memory is 64 KiB, and 1024 KiB are needed per link"),
          "%u %s", reach.bits, why);
    survey(&config);
    says("soft1 port 1", "passed over: the limit of locked memory is 64 KiB");
    snprintf(config.rdma_devices, sizeof(config.rdma_devices), "soft0");
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_SUCCESS && reach.bits != 0, "%s", why);
    config.rdma_devices[0] = '\0';
    snprintf(config.transports, sizeof(config.transports), "shm,rdma");
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_SUCCESS && reach.bits != 0 &&
              reach.links == INT_MAX,
          "%s", why);
    if (before.rlim_max >= 3 << 20) { /* enough for three links, and for no world of five */
        limit_locked(3 << 20);
        snprintf(config.transports, sizeof(config.transports), "rdma,tcp");
        CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_SUCCESS && reach.bits != 0 &&
                  reach.links == 3 && reach.link_bytes == 1 << 20,
              "%d %s", reach.links, why);
    }
    CHECK(setrlimit(RLIMIT_MEMLOCK, &before) == 0, "the limit stays");
}

/* Who has locked memory for too few links is reached by nothing but TCP in a world of that size, on every rank and in every
 * epoch: newcomers are judged like all others. */
static void test_links(void)
{
    const int links[] = {INT_MAX, 3, 2, 0};
    struct gy_member members[GY_ARRAY_LENGTH(links)] = {0}, own = {0};
    struct gy_config config = {.reach = GY_REACH_ROCE};
    uint8_t wire[GY_MEMBER_WIRE];
    int locals[GY_ARRAY_LENGTH(links)];

    for (int size = 4; size >= 1; size--) {
        struct gy_world world = {.size = size, .members = members, .locals = locals};
        for (int rank = 0; rank < size; rank++) {
            config.reach_links = links[rank];
            gy_member_know_myself(&own, &config);
            own.address = (struct sockaddr_storage){.ss_family = AF_INET};
            gy_member_encode(&own, wire);
            CHECK(gy_member_decode(wire, &members[rank]) && members[rank].links == (uint32_t)links[rank],
                  "not what was said");
        }
        gy_world_know_members(&world);
        for (int rank = 0; rank < size; rank++)
            CHECK((members[rank].reach == GY_REACH_ROCE) == (links[rank] >= size - 1), "rank %d of %d: %u", rank, size,
                  members[rank].reach);
    }
}

/* A library that can still keep its pages from children is told to; where it cannot, there is no RDMA. */
static void test_fork(void)
{
    struct gy_config config = {.rdma_gid_index = -1};
    struct gy_error error = {.quiet = true};
    struct gy_rdma_reach reach = {0};
    char why[GY_RDMA_WHY] = "";

    stand_in_reset(1);
    stand_in_fork_status = IBV_FORK_DISABLED;
    stand_in_refuses_fork = true;
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_SUCCESS && reach.bits == 0 &&
              strstr(why, "RDMAV_FORK_SAFE=1"),
          "%s", why);
    stand_in_refuses_fork = false;
    CHECK(!gy_verbs_keep_pages(&stand_in_verbs), "pages are there");
    CHECK(gy_rdma_survey(&config, &reach, why, sizeof(why), &error) == GYRE_SUCCESS && reach.bits != 0, "%s", why);
    CHECK(stand_in_fork_status == IBV_FORK_ENABLED && gy_verbs_keep_pages(&stand_in_verbs), "nobody asked");
    stand_in_reset(1);
}

static void test_hello(void)
{
    struct gy_rdma_hello hello = {.ring_bytes = 1 << 18, .paths = GY_RDMA_PATHS}, back;
    uint8_t wire[GY_RDMA_HELLO_BYTES], changed[GY_RDMA_HELLO_BYTES];
    int refused = 0;

    for (int i = 0; i < hello.paths; i++)
        hello.end[i] = (struct gy_rdma_end){
            .qp = 17u + (unsigned)i, .psn = 99, .ring = 1u << 30, .key = 5, .mtu = 3, .reads = 16};
    gy_rdma_hello_encode(&hello, wire);
    CHECK(gy_rdma_hello_decode(wire, &back) && memcmp(&back, &hello, sizeof(hello)) == 0, "not what was said");
    for (size_t i = 0; i < sizeof(wire); i++) { /* every byte that has a rule */
        memcpy(changed, wire, sizeof(wire));
        changed[i] ^= 0xff;
        refused += !gy_rdma_hello_decode(changed, &back);
    }
    /* magic, version, pairs, ring, zeros; of each pair the top bytes of its numbers, mtu, Ethernet, zeros */
    CHECK(refused == 4 + 2 + 2 + 8 + 48 + GY_RDMA_PATHS * (1 + 1 + 1 + 1 + 7), "%d bytes refused", refused);
    hello.paths = 0;
    gy_rdma_hello_encode(&hello, wire);
    CHECK(!gy_rdma_hello_decode(wire, &back), "no queue pair at all");
}

/* Frames from rank 0 to rank 1 until the links of both are broken; the sentence is that of `sentences`. */
static char sentence[2][GY_ERROR_TEXT];
static gyre_status sentence_status[2];
static void (*breaks)(void);

static void keep_sentence(struct rank *rank)
{
    struct gy_link *link = rank->pair[0].link;
    snprintf(sentence[rank->rank], sizeof(sentence[0]), "%s", link->error.text);
    sentence_status[rank->rank] = link->error.status;
}

static void body_breaks(struct rank *rank)
{
    static struct gy_frame_out frames[4];
    static unsigned char payload[4][60000];
    struct rank_pair *pair = &rank->pair[0];
    uint64_t number = 0;

    if (rank->rank == 0)
        memset(frames, 0, sizeof(frames));
    rank_link(rank);
    while (!pair->broken) {
        CHECK(number < 20000, "it goes on");
        for (int i = 0; i < 4 && rank->rank == 0; i++)
            if (!frames[i].queued) {
                rank_frame(rank, 1, &frames[i], ++number, payload[i], sizeof(payload[i]));
                rank->ops->post(pair->link, &frames[i]);
            }
        if (rank->rank == 0 && pair->link && number > 40 && breaks) {
            void (*now)(void) = breaks;
            breaks = NULL;
            now();
        }
        gy_poller_poll(rank->poller, 0);
        rank_turn(rank, false);
        if (stand_in_mute && rank->ops->arm(rank->instance)) /* before a sleep */
            CHECK(pair->broken || !pair->link->first, "a sleep from which nothing wakes");
    }
    keep_sentence(rank);
    CHECK(pair->broken == 1, "told %d times", (int)pair->broken);
    rank->ops->close(rank->instance); /* which the other notices */
    rank->closed = true;
}

static void break_requests(void)
{
    stand_in_fail_requests(0, IBV_WC_RETRY_EXC_ERR);
}
static void break_port(void)
{
    stand_in_event(0, IBV_EVENT_PORT_ERR, 1);
    breaks = break_requests; /* when that was heard */
}
static void break_port_and_mend_it(void)
{
    stand_in_event(0, IBV_EVENT_PORT_ERR, 2); /* none of ours */
    stand_in_event(0, IBV_EVENT_PORT_ERR, 1);
    stand_in_event(0, IBV_EVENT_PORT_ACTIVE, 2);
    stand_in_event(0, IBV_EVENT_PORT_ACTIVE, 1);
    stand_in_event(0, IBV_EVENT_PORT_ERR, 2);
    breaks = break_requests;
}
static void break_device(void)
{
    stand_in_event(0, IBV_EVENT_DEVICE_FATAL, 1);
}
static void break_queue(void)
{
    stand_in_event(0, IBV_EVENT_CQ_ERR, 1);
}
static void break_second(void)
{
    stand_in_fail_requests(1, IBV_WC_RETRY_EXC_ERR);
}
static void break_memory(void)
{
    stand_in_fail_requests(0, IBV_WC_LOC_PROT_ERR);
}
static void break_access(void)
{
    stand_in_event(0, IBV_EVENT_QP_ACCESS_ERR, 1);
}
static void break_events(void)
{
    stand_in_mute = true;
}
static void break_pair(void)
{
    stand_in_event(0, IBV_EVENT_QP_FATAL, 1);
}

static void breaking(const char *name, void (*how)(void), const char *wanted)
{
    const struct ranks_options two = {.transport = "rdma", .size = 2};

    stand_in_reset(strcmp(name, "second") == 0 ? 2 : 1);
    memset(sentence, 0, sizeof(sentence));
    breaks = how;
    ranks_run(&two, name, body_breaks);
    const char *device = stand_in_device_count == 2 ? "device soft1 port 1, to rank" : "device soft0 port 1, to rank";
    CHECK((strstr(sentence[0], wanted) && strstr(sentence[0], device)) ||
              (strstr(sentence[1], wanted) && strstr(sentence[1], device)),
          "%s / %s", sentence[0], sentence[1]);
}

/* Whose fault it was: of all ranks that saw it. */
static void blames(gyre_status status)
{
    for (int r = 0; r < 2; r++)
        CHECK(sentence_status[r] == status || strstr(sentence[r], "closed by the peer"), "%s: %d", sentence[r],
              sentence_status[r]);
}

/* The lower rank cannot register: its sentence has the number. */
static void body_locked(struct rank *rank)
{
    struct rank_pair *pair = &rank->pair[0];

    rank_link(rank);
    while (!pair->broken)
        rank_turn(rank, false);
    keep_sentence(rank);
    rank->ops->close(rank->instance);
    rank->closed = true;
}

static void test_locked(void)
{
    const struct ranks_options two = {.transport = "rdma", .size = 2};

    stand_in_reset(1);
    stand_in_fail_registration(1);
    ranks_run(&two, "locked", body_locked);
    CHECK(strstr(sentence[0], "cannot") || strstr(sentence[1], "cannot"), "%s / %s", sentence[0], sentence[1]);
}

static void test_registrations(void)
{
    struct gy_config config = {.rdma_gid_index = -1};
    struct gy_error error = {0};
    struct gy_rdma_rail rails[GY_RDMA_RAILS];
    struct gy_rdma_memory memory = {.rails = rails};
    static unsigned char block[4][65536];
    char why[GY_RDMA_WHY];

    stand_in_reset(2);
    CHECK(gy_rdma_rails_open(&config, GY_REACH_ROCE, rails, &memory.rail_count, why, sizeof(why), &error) ==
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
    CHECK(gy_rdma_rails_open(&config, GY_REACH_ROCE, rails, &memory.rail_count, why, sizeof(why), &error) ==
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

/* Frames of all sizes from a GPU's memory, more at once than may be sent directly, arrive whole, and the device has taken
 * each from where it lies. */
static void body_gpu(struct rank *rank)
{
    enum { FRAMES = 40 };
    static struct gy_frame_out frames[FRAMES];
    static unsigned char gpu[FRAMES][4096];
    struct rank_pair *pair = &rank->pair[0];

    rank_link(rank);
    if (rank->rank == 0) {
        CHECK(rank->ops->know_device(rank->instance, gpu, sizeof(gpu), STDIN_FILENO, 0), "not taken");
        for (unsigned i = 0; i < FRAMES; i++) {
            rank_frame(rank, 1, &frames[i], i + 1, gpu[i], 1 + i * 100);
            rank->ops->post(pair->link, &frames[i]);
        }
        for (bool all = false; !all;) {
            rank_turn(rank, false);
            all = true;
            for (unsigned i = 0; i < FRAMES; i++)
                all = all && frames[i].done;
        }
        rank->ops->forget(rank->instance, gpu);
        CHECK(stand_in_count().from_gpu == FRAMES, "%llu", (unsigned long long)stand_in_count().from_gpu);
    } else {
        while (pair->arrived < FRAMES)
            rank_turn(rank, false);
    }
    rank_barrier(rank);
}

/* An empty frame to everybody and one from everybody: the links are ready. */
static void body_ready(struct rank *rank)
{
    static struct gy_frame_out first[RANKS_MOST][RANKS_MOST];

    rank_link(rank);
    for (int i = 0; i < rank->pairs; i++) {
        struct gy_frame_out *frame = &first[rank->rank][i];
        rank_frame(rank, rank->pair[i].peer, frame, 1, NULL, 0);
        rank->ops->post(rank->pair[i].link, frame);
    }
    for (int i = 0; i < rank->pairs; i++)
        while (rank->pair[i].arrived < 1 || !first[rank->rank][i].done)
            rank_turn(rank, false);
    rank_barrier(rank);
}

/* Rank 0 stops and closes while the devices take nothing that it sends to the others, but to the last: its wait is one for all of
 * them, and the last gets what was handed over for it. */
#define STUCK 3

static void stop_with_some_stuck(struct rank *rank)
{
    static struct gy_frame_out frames[STUCK + 1][2];
    static unsigned char payloads[STUCK + 1][2][60000];

    for (int i = 0; i <= STUCK; i++) {
        struct gy_rdma_link *link = (struct gy_rdma_link *)rank->pair[i].link;
        if (i < STUCK)
            stand_in_stall(link->path[0].qp);
        for (unsigned f = 0; f < 2; f++) {
            rank_frame(rank, rank->pair[i].peer, &frames[i][f], 2 + f, payloads[i][f], sizeof(payloads[i][f]));
            rank->ops->post(&link->base, &frames[i][f]);
        }
    }
    int64_t start = gy_now();
    rank->ops->stop(rank->instance);
    int64_t took = gy_now() - start;
    CHECK(took < STUCK * 750 * GY_MILLISECOND, "%d links that are stuck took %lld ms", STUCK,
          (long long)(took / GY_MILLISECOND));
    rank->ops->close(rank->instance);
    rank->closed = true;
}

static void body_stop(struct rank *rank)
{
    body_ready(rank);
    if (rank->rank == 0)
        stop_with_some_stuck(rank);
    while (rank->rank == STUCK + 1 && rank->pair[0].arrived < 3)
        rank_turn(rank, false);
    rank_barrier(rank);
}

/* Short frames among others, in turns of equal ones, whose headers are left out from the second on: what arrives is what the
 * sink of ranks.c expects, in order. A frame of 200 bytes fits a request itself only without its header. Whoever looks before
 * it sleeps and sees that something has come finds it at the next progress. */
static void body_short(struct rank *rank)
{
    static const uint32_t sizes[] = {200, 8, 0, 64, 4096, 8192, 1, 63, 8191, 8};
    enum { FRAMES = 2000, TURN = 40, EACH_POSTED = 13 };
    static _Thread_local struct gy_frame_out posted;
    static _Thread_local unsigned char payload[8192];
    unsigned sent_short = 0;

    body_ready(rank);
    struct rank_pair *pair = &rank->pair[0];
    uint64_t first = pair->arrived;
    for (uint64_t k = 1; k <= FRAMES || pair->arrived < first + FRAMES || posted.queued;) {
        uint64_t turn = (k - 1) / TURN;
        /* The other answers, and in the first half it is waited for. */
        uint64_t before = rank->rank == 1 ? k : k <= FRAMES / 2 ? k - 1 : 0;
        if (k <= FRAMES && !posted.queued && pair->arrived >= first + before) {
            struct gy_frame_out frame;
            rank_frame(rank, pair->peer, &frame, turn, payload, sizes[turn % GY_ARRAY_LENGTH(sizes)]);
            frame.header.sequence = first + k;
            if (k % EACH_POSTED != 0 && rank->ops->send_short(pair->link, &frame.header, frame.payload)) {
                memset(payload, 0xee, sizeof(payload)); /* it is ours again */
                sent_short++;
                k++;
                continue;
            }
            posted = frame;
            rank->ops->post(pair->link, &posted);
            k++;
        }
        if (!rank->ops->progress(pair->link) && !rank->ops->arm(rank->instance) &&
            gy_rdma_digestible((const struct gy_rdma_link *)pair->link))
            CHECK(rank->ops->progress(pair->link), "what was seen before the sleep is not there");
        gy_poller_poll(rank->poller, 0);
    }
    CHECK(sent_short > FRAMES / 2, "%u short frames", sent_short);
    rank_barrier(rank);
}

static void test_short(int devices, const char *queue_pairs)
{
    stand_in_reset(devices);
    stand_in_most_inline = 220;
    setenv("GYRE_RDMA_QUEUE_PAIRS", queue_pairs, 1);
    struct stand_in_counters before = stand_in_count();
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "short", body_short);
    struct stand_in_counters after = stand_in_count();
    /* Of 4000 frames 400 have 200 bytes, and 400 each 8 (twice), 0, 64, 1 and 63. */
    CHECK(after.inlines - before.inlines > 2500, "%llu requests with their bytes",
          (unsigned long long)(after.inlines - before.inlines));
    CHECK(after.not_ready == 0, "a receiver was not ready");
    /* Alone it would be one request for sixteen frames; who is waited for owes less. */
    CHECK(after.sends - before.sends < 4000 + 190, "%llu requests for 4000 frames: credit does not go along",
          (unsigned long long)(after.sends - before.sends));
    unsetenv("GYRE_RDMA_QUEUE_PAIRS");
    stand_in_reset(1);
}

/* Rank 0 says that rank 1 knows the header, which has none in mind, or that of a shorter frame: rank 1 must not take what lies behind
 * the payload for a part of it. Or it writes on where rank 1 has not read yet. */
static enum { OF_A_HEADER, OF_ANOTHER_HEADER, OF_ROOM, LIES } lie;

static void send_too_much(struct rank *rank, struct gy_rdma_link *link)
{
    static struct gy_frame_out frames[6];
    static unsigned char payload[60000];

    for (unsigned i = 0; i < GY_ARRAY_LENGTH(frames); i++) { /* 352 KiB into 256 */
        rank_frame(rank, 1, &frames[i], 2 + i, payload, sizeof(payload));
        link->out_tail = link->out_head;
        rank->ops->post(&link->base, &frames[i]);
    }
}

static void body_lies(struct rank *rank)
{
    struct rank_pair *pair = &rank->pair[0];
    struct gy_rdma_link *link;
    struct gy_frame_out frame;
    static unsigned char payload[200];

    body_ready(rank);
    link = (struct gy_rdma_link *)pair->link;
    if (rank->rank == 0 && lie == OF_ROOM)
        send_too_much(rank, link);
    rank_barrier(rank);
    if (rank->rank == 0 && lie != OF_ROOM) {
        rank_frame(rank, 1, &frame, 2, payload, 8);
        if (lie == OF_ANOTHER_HEADER)
            CHECK(rank->ops->send_short(pair->link, &frame.header, payload), "it has no room");
        frame.header.bytes = sizeof(payload);
        link->model = frame.header;
        frame.header.sequence++;
        CHECK(rank->ops->send_short(pair->link, &frame.header, payload), "it has no room");
    }
    while (!pair->broken)
        rank_turn(rank, false);
    keep_sentence(rank);
    rank->ops->close(rank->instance);
    rank->closed = true;
}

static void test_lies(void)
{
    for (lie = OF_A_HEADER; lie < LIES; lie++) {
        stand_in_reset(1);
        ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "lies", body_lies);
        CHECK(sentence_status[1] == GYRE_PROTOCOL && strstr(sentence[1], "device soft0 port 1, to rank 0") &&
                  strstr(sentence[1], lie == OF_ROOM ? "it overran its ring" : "remember"),
              "%s", sentence[1]);
    }
}

/* How long the device waits for an acknowledgement: together less than a silent peer is waited for, or what was asked for. */
static void test_ack_timeout(void)
{
    static const struct {
        const char *peer_timeout, *asked;
        int wanted; /* 8 waits of up to 4 · 4.096 µs · 2^wanted */
    } cases[] = {{"10", "0", 16}, {"5", "0", 15}, {"1", "0", 12}, {"10", "14", 14}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(cases); i++) {
        stand_in_reset(1);
        setenv("GYRE_PEER_TIMEOUT", cases[i].peer_timeout, 1);
        setenv("GYRE_RDMA_ACK_TIMEOUT", cases[i].asked, 1);
        ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "timeout", body_ready);
        CHECK(stand_in_count().ack_timeout == cases[i].wanted, "%d and not %d", stand_in_count().ack_timeout,
              cases[i].wanted);
    }
    unsetenv("GYRE_PEER_TIMEOUT");
    unsetenv("GYRE_RDMA_ACK_TIMEOUT");
}

/* Two ranks whose devices have little in common: addresses, packets, reads at once, the service that was asked for. What each of
 * them may do to the other's memory is what the stream needs. */
static void body_ends(struct rank *rank)
{
    static struct gy_frame_out frames[2];
    static unsigned char payload[2][60000];
    struct rank_pair *pair = &rank->pair[0];

    body_ready(rank);
    struct gy_rdma_link *link = (struct gy_rdma_link *)pair->link;
    CHECK(link->rdma->rails == 1 && link->rdma->rail[0].name[4] == '0' + rank->rank, "%s", link->rdma->rail[0].name);
    CHECK(rank->ops->know, "nothing is announced");
    rank->ops->know(rank->instance, payload[rank->rank], sizeof(payload[0]));
    rank_frame(rank, pair->peer, &frames[rank->rank], 2, payload[rank->rank], sizeof(payload[0]));
    rank->ops->post(pair->link, &frames[rank->rank]);
    while (pair->arrived < 2 || !frames[rank->rank].done)
        rank_turn(rank, false);
    const struct gy_rdma_range *range = gy_rdma_memory_find(&link->rdma->memory, payload[rank->rank], 1);
    CHECK(range && range->registered && stand_in_rights(range->mr[0]) == IBV_ACCESS_LOCAL_WRITE,
          "announced memory is the device's own");
    CHECK(stand_in_rights(link->ring_mr[0]) == (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), "the ring: %#x",
          (unsigned)stand_in_rights(link->ring_mr[0]));
    CHECK(stand_in_rights(link->staging_mr[0]) == 0, "staging: %#x", (unsigned)stand_in_rights(link->staging_mr[0]));
    rank->ops->forget(rank->instance, payload[rank->rank]);
    rank_barrier(rank);
}

static void test_ends(void)
{
    static const char *const devices[] = {"soft0", "soft1"};

    stand_in_reset(2);
    stand_in_devices[0].port[0].mtu = IBV_MTU_4096;
    stand_in_devices[1].port[0].gid[3] = stand_in_devices[1].port[0].gid[0];
    memset(&stand_in_devices[1].port[0].gid[0], 0, sizeof(stand_in_devices[1].port[0].gid[0]));
    setenv("GYRE_RDMA_SERVICE_LEVEL", "3", 1);
    setenv("GYRE_RDMA_TRAFFIC_CLASS", "104", 1);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2, .devices = devices}, "ends", body_ends);
    CHECK(stand_in_count().service_level == 3 && stand_in_count().traffic_class == 104, "level %d, class %d",
          stand_in_count().service_level, stand_in_count().traffic_class);
    unsetenv("GYRE_RDMA_SERVICE_LEVEL");
    unsetenv("GYRE_RDMA_TRAFFIC_CLASS");
}

int main(void)
{
    setenv("GYRE_TRANSPORT", "rdma", 1);
    gy_verbs_use(&stand_in_verbs);
    test_choice();
    test_nearest();
    test_kept();
    test_limit();
    test_links();
    test_fork();
    test_hello();
    test_registrations();
    breaking("request", break_requests, "a request failed: transport retry counter exceeded");
    blames(GYRE_PEER_UNREACHABLE);
    breaking("second", break_second, "a request failed: transport retry counter exceeded");
    breaking("memory", break_memory, "a request failed: local protection error");
    blames(GYRE_SYSTEM);
    breaking("port", break_port, "(the device said before: port error)");
    breaking("mended", break_port_and_mend_it, "a request failed: transport retry counter exceeded");
    CHECK(!strstr(sentence[0], "said before") && !strstr(sentence[1], "said before"), "%s / %s", sentence[0],
          sentence[1]);
    breaking("queue", break_queue, "the device reports: ");
    breaking("access", break_access, "the device reports: ");
    breaking("device", break_device, "the device reports: device fatal");
    breaking("events", break_events, "no event can be asked for: Input/output error");
    breaking("pair", break_pair, "the device reports: queue pair fatal");
    test_locked();
    test_ack_timeout();
    test_ends();
    test_lies();
    stand_in_reset(1);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = STUCK + 2}, "stop", body_stop);
    test_short(1, "1");
    test_short(3, "2");
    test_dmabuf();
    stand_in_reset(1);
    ranks_run(&(struct ranks_options){.transport = "rdma", .size = 2}, "gpu", body_gpu);
    struct stand_in_counters c = stand_in_count();
    CHECK(c.unacknowledged == 0, "%d events that were read", c.unacknowledged);
    CHECK(c.early > 0, "links' memory is written in order");
    CHECK(c.contexts + c.pds + c.mrs + c.cqs + c.qps + c.channels == 0, "left: %d %d %d %d %d %d", c.contexts, c.pds,
          c.mrs, c.cqs, c.qps, c.channels);
    return 0;
}
