/* The table of settings. A row says everything about a setting; the environment, gyre-info --config and the checks
 * follow from it. Adding one: a row here and a field in config.h; setting.h has the kinds.
 *
 * Defaults are text and go through the row's own parser, so they obey the rules that a user's value obeys. An empty
 * variable is one that is not set. The struct is written only when all of the environment was understood. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "log.h"
#include "rules.h"
#include "secret_variable.h"
#include "setting.h"

extern char **environ;

#define PREFIX "GYRE_"
#define TEST_PREFIX "GYRE_TEST_"
#define LONGEST_NAME 48  /* of a variable, when the nearest is looked for */
#define LONGEST_SHOWN 80 /* of a user's value, in an error message */

#define PLAIN GY_SETTING_PLAIN
#define SECRET GY_SETTING_SECRET
#define SHARED GY_SETTING_SHARED
#define FIELD(name) offsetof(struct gy_config, name), sizeof(((struct gy_config *)0)->name)
#define TIMEOUT_RANGE GY_MILLISECOND, GY_TIMEOUT_MOST
#define TIMEOUT_ALLOWED "a time above zero such as 30, 0.5, 200ms, 10m or 2h"

static const struct gy_setting settings[] = {
    {"GYRE_LOG", &gy_setting_level, FIELD(log_level), 0, 0, "warn", "level", "what is written to standard error",
     "error, warn, info or debug", PLAIN},
    {"GYRE_TIMEOUT", &gy_setting_time, FIELD(timeout_ns), TIMEOUT_RANGE, "1800", "s",
     "how long a live rank may take to enter an operation that others wait in", TIMEOUT_ALLOWED, PLAIN},
    {"GYRE_STALL_TIMEOUT", &gy_setting_time, FIELD(stall_timeout_ns), TIMEOUT_RANGE, "30", "s",
     "how long a rank inside an operation may move nothing", TIMEOUT_ALLOWED, PLAIN},
    {"GYRE_PEER_TIMEOUT", &gy_setting_time, FIELD(peer_timeout_ns), TIMEOUT_RANGE, "10", "s",
     "how long a host may be silent before it counts as lost", TIMEOUT_ALLOWED, PLAIN},
    {"GYRE_MEET_TIMEOUT", &gy_setting_time, FIELD(meet_timeout_ns), TIMEOUT_RANGE, "300", "s",
     "how long the ranks wait for each other when a communicator is made", TIMEOUT_ALLOWED, PLAIN},
    {"GYRE_TRANSPORT", &gy_setting_names, FIELD(transports), 0, 0, "shm,rdma,tcp", "names",
     "transports that may be used; two ranks use the first, in the order of the default, that joins both; the same on "
     "every rank",
     "names between commas, such as shm,tcp", SHARED},
    {"GYRE_ALGORITHM", &gy_setting_choices, FIELD(algorithm), 0, 0, "", "choices",
     "algorithms to force, the same on every rank: COLLECTIVE:ALGORITHM between commas; a call that one cannot do "
     "is an error",
     "COLLECTIVE:ALGORITHM between commas, such as all_reduce:ring,broadcast:binary_tree, with COLLECTIVE one of "
     "all_reduce, reduce_scatter, all_gather, broadcast, barrier, reduce, gather, scatter, all_to_all",
     SHARED},
    {"GYRE_TUNING", &gy_setting_tuning, FIELD(tuning), 0, 0, "", "path",
     "a file that gyre-tune wrote: algorithms are chosen by what they cost on that cluster; the same content on "
     "every rank",
     "a file of lines NAME = VALUE, as gyre-tune writes it", SHARED},
    {"GYRE_ORDER", &gy_setting_order, FIELD(canonical), 0, 0, "shape", "order",
     "operands of a reduction: shape, an order that is a function of the call's shape; canonical, one tree over the "
     "ranks for every element; the same on every rank",
     "shape or canonical", SHARED},
    {"GYRE_ENDS", &gy_setting_ends, FIELD(uniform), 0, 0, "local", "mode",
     "how a collective ends in which a rank fails: local, on every rank for itself; uniform, on all that are left "
     "alike, for one small exchange more; the same on every rank",
     "local or uniform", SHARED},
    {"GYRE_HIERARCHY", &gy_setting_hierarchy, FIELD(hierarchy), 0, 0, "host", "groups",
     "ranks that hierarchical algorithms take as near each other: host, those of one host; numa, those of a host "
     "that are bound to one NUMA node; cache, to one last-level cache; sizes between commas, groups of so many "
     "consecutive ranks; off; the same on every rank",
     "host, numa, cache, off, or sizes of groups between commas, such as 4 or 2,2,3", SHARED},
    {"GYRE_HOST_ID", &gy_setting_text, FIELD(host_id), 0, 0, "", "text",
     "what tells hosts apart; empty: boot id, network namespace and user", "shorter than 128 characters", PLAIN},
    {"GYRE_INTERFACE", &gy_setting_interfaces, FIELD(interface), 0, 0, "", "names",
     "network interfaces, or own addresses, as many on every rank: all meet over the first, and TCP links are "
     "spread over all; empty: the one that routes to the meeting address",
     "one to four names or addresses between commas, such as eth0 or eth0,eth1", PLAIN},
    {"GYRE_LAUNCHER", &gy_setting_launcher, FIELD(launcher), 0, 0, "", "name",
     "whose variables say rank and size: torchrun (RANK, WORLD_SIZE), openmpi, pmix, pmi (MPICH) or slurm; empty: "
     "whose there are",
     "torchrun, openmpi, pmix, pmi or slurm", PLAIN},
    {"GYRE_ADDRESS", &gy_setting_text, FIELD(address), 0, 0, "", "address",
     "where the ranks meet, tcp://HOST:PORT or file:///PATH; empty: MASTER_ADDR and MASTER_PORT, or what the "
     "launcher offers",
     "shorter than 256 characters", PLAIN},
    {"GYRE_JOIN", &gy_setting_switch, FIELD(join), 0, 0, "0", "0|1",
     "1: this process joins a world that is there already and lets joining processes in, at the address of any of its "
     "members",
     "0 or 1", PLAIN},
    {GY_SECRET_VARIABLE, &gy_setting_secret, 0, GY_SECRET_TEXT, 22, 0, "", "text",
     "the job's secret, the same on every rank: a random text of 22 characters or more; making a world empties the "
     "variable",
     "22 to 255 characters long", SECRET},
    {"GYRE_SECRET_FILE", &gy_setting_text, FIELD(secret_file), 0, 0, "", "path",
     "a file that holds the job's secret, which no other user can read", "shorter than 256 characters", PLAIN},
    {"GYRE_INSECURE", &gy_setting_switch, FIELD(insecure), 0, 0, "0", "0|1",
     "1: meet across hosts without a secret, so that anyone who reaches the port may join", "0 or 1", PLAIN},
    {"GYRE_INTEGRITY", &gy_setting_integrity, FIELD(integrity), 0, 0, "off", "mode",
     "what protects the bytes on sockets: off, nothing; crc, against accidents; mac, against changes by others; "
     "encrypt, against readers too; the same on every rank",
     "off, crc, mac or encrypt", SHARED},
    {"GYRE_VERIFY", &gy_setting_size, FIELD(verify), 0, 1024, "0", "results",
     "after so many results that are equal on every rank their hashes are compared, so that a rank that has another "
     "one is named; 0: never; the same on every rank",
     "a number from 0 to 1024", SHARED},
    {"GYRE_SHM_RESERVE", &gy_setting_size, FIELD(shm_reserve), 1 << 20, INT64_C(1) << 44, "16G", "bytes",
     "address space per rank of this host for gyre_mem_alloc; memory is taken when it is used",
     "a size from 1m to 16t, such as 512m or 16G", PLAIN},
    {"GYRE_SHM_SLOT", &gy_setting_size, FIELD(shm_slot), 4096, 1 << 30, "256k", "bytes",
     "one slot of the memory through which ranks of a host exchange data, and over any transport the most bytes in one "
     "frame of a communicator on one host; the same on every rank",
     "a size from 4k to 1g, such as 256k", SHARED},
    {"GYRE_SHM_READ", &gy_setting_switch, FIELD(shm_read), 0, 0, "1", "0|1",
     "1: where all ranks of a host may read each other's memory through the kernel, long vectors are copied "
     "once where that is quicker; 0: never, for buffers that the kernel does not read, such as a device's",
     "0 or 1", PLAIN},
    {"GYRE_TCP_TILE", &gy_setting_size, FIELD(tcp_tile), 8 << 10, 1 << 20, "256k", "bytes",
     "over any transport, not TCP alone, the most bytes in one frame of a communicator on several hosts; the same on "
     "every rank",
     "a size from 8k to 1m, such as 256k", SHARED},
    {"GYRE_TCP_CONGESTION", &gy_setting_text, FIELD(tcp_congestion), 0, 0, "", "name",
     "congestion control of TCP links between machines, such as cubic; empty: the system's "
     "(net.ipv4.tcp_congestion_control)",
     "shorter than 16 characters", PLAIN},
    {"GYRE_SPIN", &gy_setting_spin, FIELD(spin_ns), 0, 10000000, "-1", "us",
     "how long a wait spins or yields before it sleeps; -1: by the load of this host",
     "-1 or whole microseconds up to 10000000", PLAIN},
    {"GYRE_PROGRESS_THREAD", &gy_setting_switch, FIELD(progress_thread), 0, 0, "0", "0|1",
     "1: a thread of gyre's own moves requests while the program computes", "0 or 1", PLAIN},
    {"GYRE_LIBRARY", &gy_setting_text, FIELD(library), 0, 0, "", "path",
     "the file that bindings of other languages load as libgyre.so; empty: what the loader finds",
     "shorter than 1024 characters", PLAIN},
    {"GYRE_CUDA_KERNELS", &gy_setting_text, FIELD(cuda_kernels), 0, 0, "", "path",
     "the file of the GPU kernels; off: none, device memory is staged; empty: libgyre-cuda.so beside libgyre.so",
     "shorter than 1024 characters", PLAIN},
    {"GYRE_CUDA_BLOCKS", &gy_setting_int, FIELD(cuda_blocks), 0, 4096, "0", "number",
     "blocks of a kernel of gyre's, at most; 0: one for each multiprocessor of the GPU", "0 to 4096", PLAIN},
    {"GYRE_RDMA_DEVICES", &gy_setting_text, FIELD(rdma_devices), 0, 0, "", "names",
     "RDMA devices to use, DEVICE or DEVICE:PORT between commas; empty: the nearest, as gyre-info shows",
     "names between commas, such as mlx5_0,mlx5_1:2", PLAIN},
    {"GYRE_RDMA_GID_INDEX", &gy_setting_int, FIELD(rdma_gid_index), -1, 255, "-1", "index",
     "the GID of every RDMA port to use; -1: the first of RoCE v2 over an address that routes", "-1 to 255", PLAIN},
    {"GYRE_RDMA_SERVICE_LEVEL", &gy_setting_int, FIELD(rdma_service_level), 0, 15, "0", "number",
     "service level of RDMA connections: the priority on Ethernet, the virtual lane on InfiniBand", "0 to 15", PLAIN},
    {"GYRE_RDMA_TRAFFIC_CLASS", &gy_setting_int, FIELD(rdma_traffic_class), 0, 255, "0", "number",
     "traffic class of RDMA connections: DSCP times four", "0 to 255", PLAIN},
    {"GYRE_RDMA_QUEUE_PAIRS", &gy_setting_int, FIELD(rdma_queue_pairs), 1, 8, "1", "number",
     "queue pairs per RDMA device between two ranks, over which large messages are striped", "1 to 8", PLAIN},
    {"GYRE_RDMA_ACK_TIMEOUT", &gy_setting_int, FIELD(rdma_ack_timeout), -1, 31, "-1", "exponent",
     "n: an RDMA device repeats what is not acknowledged within 4.096 us * 2^n, seven times; -1, 0: by "
     "GYRE_PEER_TIMEOUT",
     "-1 to 31", PLAIN},
    {"GYRE_RDMA_RING", &gy_setting_power, FIELD(rdma_ring), 4096, 1 << 28, "256k", "bytes",
     "memory per RDMA link into which the peer writes: what may be on its way at once",
     "a power of two from 4k to 256m", PLAIN},
    {"GYRE_SHOW_CHOICE", &gy_setting_switch, FIELD(show_choice), 0, 0, "0", "0|1",
     "1: print the algorithm chosen, once per shape", "0 or 1", PLAIN},
};

static size_t least3(size_t a, size_t b, size_t c)
{
    return gy_min_size(gy_min_size(a, b), c);
}

/* Levenshtein's distance, one row of the matrix at a time. `b` is at most LONGEST_NAME long. */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t line[LONGEST_NAME + 1];

    for (size_t j = 0; j <= b_length; j++)
        line[j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        size_t diagonal = line[0];

        line[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            size_t above = line[j];

            line[j] = least3(above + 1, line[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return line[b_length];
}

static const char *nearest_name(const char *name, size_t length)
{
    const char *nearest = settings[0].name;
    size_t least = SIZE_MAX;

    length = gy_min_size(length, LONGEST_NAME);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(settings); i++) {
        size_t distance = edit_distance(settings[i].name, strlen(settings[i].name), name, length);

        if (distance < least) {
            least = distance;
            nearest = settings[i].name;
        }
    }
    return nearest;
}

static bool name_is_known(const char *name, size_t length)
{
    if (strncmp(name, TEST_PREFIX, strlen(TEST_PREFIX)) == 0)
        return true;
    for (size_t i = 0; i < GY_ARRAY_LENGTH(settings); i++) {
        if (strlen(settings[i].name) == length && memcmp(settings[i].name, name, length) == 0)
            return true;
    }
    return false;
}

static gyre_status check_names(bool strict, struct gy_error *error)
{
    for (char **entry = environ; entry && *entry; entry++) {
        size_t length = strcspn(*entry, "=");
        int shown = (int)gy_min_size(length, LONGEST_SHOWN);

        if (strncmp(*entry, PREFIX, strlen(PREFIX)) != 0 || name_is_known(*entry, length))
            continue;
        if (strict)
            return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1,
                                "%.*s is no setting of gyre; did you mean %s? gyre-info --config lists them", shown,
                                *entry, nearest_name(*entry, length));
        gy_log(GY_LOG_WARN, "%.*s is no setting of gyre and is ignored; did you mean %s?", shown, *entry,
               nearest_name(*entry, length));
    }
    return GYRE_SUCCESS;
}

static gyre_status read_setting(const struct gy_setting *setting, struct gy_config *config, struct gy_error *error)
{
    const char *text = getenv(setting->name);
    void *field = (char *)config + setting->offset;

    if (!text || !*text)
        text = setting->initial;
    if (setting->kind->parse(setting, text, field))
        return GYRE_SUCCESS;
    return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "%s=%.*s is invalid: it must be %s", setting->name,
                        LONGEST_SHOWN, setting->trait == SECRET ? "(not shown)" : text, setting->allowed);
}

static gyre_status config_read(bool strict, struct gy_config *config_p, struct gy_error *error)
{
    struct gy_config config;
    gyre_status status;

    memset(&config, 0, sizeof(config));
    for (size_t i = 0; i < GY_ARRAY_LENGTH(settings); i++) {
        status = read_setting(&settings[i], &config, error);
        if (status)
            return status;
    }
    status = check_names(strict, error);
    if (status)
        return status;
    *config_p = config;
    return GYRE_SUCCESS;
}

gyre_status gy_config_read(struct gy_config *config_p, struct gy_error *error)
{
    return config_read(false, config_p, error);
}

gyre_status gy_config_read_strict(struct gy_config *config_p, struct gy_error *error)
{
    return config_read(true, config_p, error);
}

void gy_config_describe(gyre_print_func print, void *user)
{
    for (size_t i = 0; i < GY_ARRAY_LENGTH(settings); i++) {
        const struct gy_setting *setting = &settings[i];
        char line[512];

        snprintf(line, sizeof(line), "%-18s  %-8s  %-7s  %s", setting->name,
                 setting->initial[0] ? setting->initial : "(empty)", setting->unit, setting->help);
        print(user, line);
    }
}

int gy_config_rails(const struct gy_config *config)
{
    int rails = 1;

    for (const char *at = config->interface; (at = strchr(at, ',')); at++)
        rails++;
    return rails;
}

size_t gy_config_shared(const struct gy_config *config, char text_p[GY_CONFIG_SHARED])
{
    size_t used = (size_t)snprintf(text_p, GY_CONFIG_SHARED, "the build of gyre=rules %08x\n", GY_RULES);

    for (size_t i = 0; i < GY_ARRAY_LENGTH(settings); i++) {
        char value[GY_CONFIG_SHARED];

        if (settings[i].trait != SHARED)
            continue;
        settings[i].kind->print(&settings[i], (const char *)config + settings[i].offset, value, sizeof(value));
        used += (size_t)snprintf(text_p + used, GY_CONFIG_SHARED - used, "%s=%s\n", settings[i].name, value);
        if (used >= GY_CONFIG_SHARED)
            return GY_CONFIG_SHARED - 1; /* cut off, and so on every rank at the same place */
    }
    /* The names are each host's own. */
    used += (size_t)snprintf(text_p + used, GY_CONFIG_SHARED - used, "GYRE_INTERFACE=%d name%s\n",
                             gy_config_rails(config), gy_config_rails(config) > 1 ? "s" : "");
    return gy_min_size(used, GY_CONFIG_SHARED - 1);
}
