/* The machine, over the stand-in: which ports are chosen and why others are not, the limit of locked memory, libraries
 * that cannot survive a fork. No link is made. */
#include "ranks.h"

#include "bootstrap/messages.h"
#include "rdma_stand_in.h"
#include "transport/rdma/internal.h"
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
    struct gy_config config = {
        .transports = "rdma", .rdma_gid_index = -1, .rdma_service_level = 3, .rdma_traffic_class = 104};
    struct gy_error error = {.quiet = true};
    struct gy_rdma_fabrics fabrics = {0};
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
    says("soft0 port 1", "chosen: RoCE v2, GID 0 ::ffff:10.9.0.1, MTU 1024, service level 3, traffic class 104");
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
    config.rdma_gid_index = 1;
    survey(&config);
    says("soft4 port 1", "chosen: RoCE v1, GID 1 ::ffff:10.9.5.1");
    says("soft5 port 2", "passed over: it has no GID 1");
    config.rdma_gid_index = 0;
    stand_in_devices[4].port[0].infiniband = true;
    survey(&config);
    says("soft5 port 2", "passed over: its link is of another kind than that of soft4 port 1");
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_SUCCESS &&
              fabrics.bits == GY_FABRIC_INFINIBAND,
          "%u", fabrics.bits);
}

/* gyre-info shows what a world would do: a setting that leaves RDMA out is every port's reason but that of those which
 * are of no use anyway, and a list that names what is not there is told. */
static void test_settings(void)
{
    struct gy_config config = {.transports = "shm,rdma,tcp", .rdma_gid_index = -1, .rdma_ring = 1 << 18};

    stand_in_reset(3);
    stand_in_devices[1].port[0].state = IBV_PORT_DOWN;
    stand_in_devices[2].port[0].speed = 1;
    config.integrity = GY_INTEGRITY_CRC;
    survey(&config);
    says("soft0 port 1", "chosen: ");
    for (config.integrity = GY_INTEGRITY_MAC; config.integrity <= GY_INTEGRITY_ENCRYPT; config.integrity++) {
        survey(&config);
        says("soft0 port 1", "passed over: GYRE_INTEGRITY asks for what");
        says("soft1 port 1", "passed over: the port is down");
        says("soft2 port 1", "passed over: GYRE_INTEGRITY asks for what");
    }
    config.integrity = GY_INTEGRITY_OFF;
    snprintf(config.transports, sizeof(config.transports), "shm,tcp");
    survey(&config);
    says("soft0 port 1", "passed over: GYRE_TRANSPORT does not name rdma");
    CHECK(line_count == 3, "%d lines", line_count);
    snprintf(config.transports, sizeof(config.transports), "rdma");
    snprintf(config.rdma_devices, sizeof(config.rdma_devices), "soft0,soft9");
    survey(&config);
    says("soft0 port 1:", "chosen: ");
    CHECK(line_count == 4, "%d lines", line_count);
    CHECK(strstr(lines[3], "no world can be made: GYRE_RDMA_DEVICES names soft9"), "%s", lines[3]);
}

static void test_no_choice(void)
{
    struct gy_config config = {.transports = "rdma", .rdma_gid_index = -1};
    struct gy_error error = {.quiet = true};
    struct gy_rdma_fabrics fabrics = {0};
    char why[GY_RDMA_WHY] = "";

    stand_in_reset(6);
    snprintf(config.rdma_devices, sizeof(config.rdma_devices), "soft9");
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_BAD_CONFIGURATION &&
              strstr(error.text, "GYRE_RDMA_DEVICES names soft9"),
          "%s", error.text);
    CHECK(strstr(error.text, "it has: soft0 port 1, soft1 port 1"), "%s", error.text);
    stand_in_reset(0); /* no device at all is no excuse */
    error = (struct gy_error){.quiet = true};
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_BAD_CONFIGURATION &&
              strstr(error.text, "it has: none (libibverbs knows no device here"),
          "%s", error.text);
    config.rdma_devices[0] = '\0';
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_SUCCESS && fabrics.bits == 0 &&
              fabrics.links == INT_MAX, /* it is no limit that keeps RDMA away */
          "%u bits, %d links", fabrics.bits, fabrics.links);
    stand_in_reset(1);
    config.integrity = GY_INTEGRITY_MAC;
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_SUCCESS && fabrics.bits == 0 && why[0],
          "%u", fabrics.bits);
}

/* What was said in the meeting holds: a better port of another kind that has come up since is not taken. */
static void test_kept(void)
{
    struct gy_config config = {.transports = "rdma", .rdma_gid_index = -1};
    struct gy_error error = {0};
    struct gy_rdma_rail rails[GY_RDMA_RAILS];
    char why[GY_RDMA_WHY] = "";
    int count = 0;

    stand_in_reset(2);
    stand_in_devices[1].port[0].infiniband = true;
    stand_in_devices[1].port[0].speed = 64;
    survey(&config);
    says("soft0 port 1", "passed over");
    CHECK(gy_rdma_rails_open(&config, GY_FABRIC_ROCE, rails, &count, why, sizeof(why), &error) == GYRE_SUCCESS &&
              count == 1 && strstr(rails[0].name, "soft0"),
          "%d %s", count, why);
    gy_rdma_rails_close(rails, count, false);
    stand_in_devices[0].port[0].state = IBV_PORT_DOWN;
    CHECK(gy_rdma_rails_open(&config, GY_FABRIC_ROCE, rails, &count, why, sizeof(why), &error) == GYRE_SUCCESS &&
              count == 0 && strstr(why, "soft0 port 1: the port is down"),
          "%d %s", count, why);
}

/* A machine of two sockets with a processor and an adapter each, as hwloc's XML: soft<adapter> at the first one. */
static void put_sockets(FILE *file, const int processor[2], int adapter)
{
    /* Lines: hwloc without libxml looks for the end of the first one. */
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<topology version=\"2.0\">\n", file);
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
    struct gy_config config = {.transports = "rdma", .rdma_gid_index = -1};
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

/* A limit of locked memory, in force for this process, whatever its owner. */
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

/* Where tcp serves as well, too little locked memory is a reason, with the number; where RDMA was asked for it is
 * not. */
static void test_limit(void)
{
    struct gy_config config = {.rdma_gid_index = -1, .rdma_ring = 1 << 18};
    struct gy_error error = {.quiet = true};
    struct gy_rdma_fabrics fabrics = {0};
    struct rlimit before;
    char why[GY_RDMA_WHY] = "";

    CHECK(getrlimit(RLIMIT_MEMLOCK, &before) == 0, "no limit");
    stand_in_reset(2);
    limit_locked(64 << 10);
    snprintf(config.transports, sizeof(config.transports), "shm,rdma,tcp");
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_SUCCESS && fabrics.bits == 0 &&
              strstr(why, "soft0 port 1: the limit of locked memory is 64 KiB, and 1032 KiB are needed per link"),
          "%u %s", fabrics.bits, why);
    survey(&config);
    says("soft1 port 1", "passed over: the limit of locked memory is 64 KiB");
    snprintf(config.rdma_devices, sizeof(config.rdma_devices), "soft0");
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_SUCCESS && fabrics.bits != 0, "%s", why);
    config.rdma_devices[0] = '\0';
    snprintf(config.transports, sizeof(config.transports), "shm,rdma");
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_SUCCESS && fabrics.bits != 0 &&
              fabrics.links == INT_MAX,
          "%s", why);
    if (before.rlim_max >= 4 << 20) { /* enough for three links, and for no world of five */
        limit_locked(3 * ((1 << 20) + 2 * GY_RDMA_WORDS));
        snprintf(config.transports, sizeof(config.transports), "rdma,tcp");
        CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_SUCCESS && fabrics.bits != 0 &&
                  fabrics.links == 3 && fabrics.link_bytes == (1 << 20) + 2 * GY_RDMA_WORDS,
              "%d %s", fabrics.links, why);
        survey(&config);
        says("rdma:", "the limit of locked memory, 3096 KiB, allows links to 3 other ranks");
    }
    CHECK(setrlimit(RLIMIT_MEMLOCK, &before) == 0, "the limit stays");
}

/* A rank with too little locked memory for its links uses TCP alone in a world of that size, for every rank and in
 * every epoch: joiners are treated like all others. */
static void test_links(void)
{
    const int links[] = {INT_MAX, 3, 2, 0};
    struct gy_member members[GY_ARRAY_LENGTH(links)] = {0}, own = {0};
    struct gy_config config = {.fabrics = GY_FABRIC_ROCE};
    uint8_t wire[GY_MEMBER_WIRE];
    int locals[GY_ARRAY_LENGTH(links)];

    for (int size = 4; size >= 1; size--) {
        struct gy_world world = {.size = size, .members = members, .locals = locals};
        for (int rank = 0; rank < size; rank++) {
            config.fabric_links = links[rank];
            gy_member_know_myself(&own, &config);
            own.address = (struct sockaddr_storage){.ss_family = AF_INET};
            gy_member_encode(&own, wire);
            CHECK(gy_member_decode(wire, &members[rank]) && members[rank].fabric_links == (uint32_t)links[rank],
                  "not what was said");
        }
        gy_world_know_members(&world);
        for (int rank = 0; rank < size; rank++)
            CHECK((members[rank].fabrics == GY_FABRIC_ROCE) == (links[rank] >= size - 1), "rank %d of %d: %u", rank,
                  size, members[rank].fabrics);
    }
}

/* A library that can still keep its pages from children is told to; where it cannot, there is no RDMA. */
static void test_fork(void)
{
    struct gy_config config = {.rdma_gid_index = -1};
    struct gy_error error = {.quiet = true};
    struct gy_rdma_fabrics fabrics = {0};
    char why[GY_RDMA_WHY] = "";

    stand_in_reset(1);
    stand_in_fork_status = IBV_FORK_DISABLED;
    stand_in_refuses_fork = true;
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_SUCCESS && fabrics.bits == 0 &&
              strstr(why, "RDMAV_FORK_SAFE=1"),
          "%s", why);
    stand_in_refuses_fork = false;
    CHECK(!gy_verbs_keep_pages(&stand_in_verbs), "pages are there");
    CHECK(gy_rdma_survey(&config, &fabrics, why, sizeof(why), &error) == GYRE_SUCCESS && fabrics.bits != 0, "%s", why);
    CHECK(stand_in_fork_status == IBV_FORK_ENABLED && gy_verbs_keep_pages(&stand_in_verbs), "nobody asked");
    stand_in_reset(1);
}

int main(void)
{
    setenv("GYRE_TRANSPORT", "rdma", 1);
    gy_verbs_use(&stand_in_verbs);
    test_choice();
    test_settings();
    test_no_choice();
    test_nearest();
    test_kept();
    test_limit();
    test_links();
    test_fork();
    stand_in_end();
    return 0;
}
