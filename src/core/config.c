/* The table of settings. A row says everything about a setting; the environment, gyre-info --config and the checks
 * follow from it. Adding one: a row here and a field in config.h.
 *
 * Defaults are text and go through the row's own parser, so they obey the rules that a user's value obeys. An empty
 * variable is one that is not set. The struct is written only when all of the environment was understood. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "clock.h"
#include "log.h"

extern char **environ;

#define PREFIX "GYRE_"
#define TEST_PREFIX "GYRE_TEST_"
#define LONGEST_NAME 48  /* of a variable, when the nearest is looked for */
#define LONGEST_SHOWN 80 /* of a user's value, in a sentence */

struct row;
typedef bool (*parse_func)(const struct row *row, const char *text, void *field);

struct row {
    const char *name;
    parse_func parse;
    size_t offset, size; /* of the field */
    int64_t least, most; /* a number in the field's unit, or the least length of a text that is not empty */
    const char *initial, *unit, *help;
    const char *allowed;                  /* the end of "… must be " */
    enum { PLAIN, SECRET, SHARED } trait; /* SECRET: never printed; SHARED: every rank must have the same value */
};

static bool parse_level(const struct row *row, const char *text, void *field)
{
    enum gy_log_level level;

    (void)row;
    if (!gy_log_level_parse(text, &level))
        return false;
    *(int *)field = (int)level;
    return true;
}

static bool parse_switch(const struct row *row, const char *text, void *field)
{
    (void)row;
    if (strcmp(text, "0") != 0 && strcmp(text, "1") != 0)
        return false;
    *(bool *)field = text[0] == '1';
    return true;
}

static bool parse_order(const struct row *row, const char *text, void *field)
{
    (void)row;
    if (strcmp(text, "shape") != 0 && strcmp(text, "canonical") != 0)
        return false;
    *(bool *)field = text[0] == 'c';
    return true;
}

static bool parse_ends(const struct row *row, const char *text, void *field)
{
    (void)row;
    if (strcmp(text, "local") != 0 && strcmp(text, "uniform") != 0)
        return false;
    *(bool *)field = text[0] == 'u';
    return true;
}

static const char *const integrities[GY_INTEGRITIES] = {"off", "crc", "mac", "encrypt"};

static bool parse_integrity(const struct row *row, const char *text, void *field)
{
    (void)row;
    for (int i = 0; i < GY_INTEGRITIES; i++) {
        if (strcmp(text, integrities[i]) != 0)
            continue;
        *(int *)field = i;
        return true;
    }
    return false;
}

static bool parse_time(const struct row *row, const char *text, void *field)
{
    int64_t nanoseconds;

    if (!gy_parse_seconds(text, &nanoseconds) || nanoseconds < row->least || nanoseconds > row->most)
        return false;
    *(int64_t *)field = nanoseconds;
    return true;
}

static bool parse_size(const struct row *row, const char *text, void *field)
{
    size_t bytes;

    if (!gy_parse_bytes(text, &bytes) || bytes < (size_t)row->least || bytes > (size_t)row->most)
        return false;
    *(size_t *)field = bytes;
    return true;
}

/* Whole microseconds; -1 leaves the choice to gyre. */
static bool parse_spin(const struct row *row, const char *text, void *field)
{
    size_t microseconds;

    if (strcmp(text, "-1") == 0) {
        *(int64_t *)field = -1;
        return true;
    }
    if (!gy_parse_bytes(text, &microseconds) || strspn(text, "0123456789") != strlen(text) ||
        microseconds > (size_t)row->most)
        return false;
    *(int64_t *)field = (int64_t)microseconds * 1000;
    return true;
}

/* A whole number, perhaps negative. */
static bool parse_int(const struct row *row, const char *text, void *field)
{
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    long value = strtol(text, NULL, 10);

    if (digits == 0 || digits > 9 || text[(*text == '-') + digits] || value < row->least || value > row->most)
        return false;
    *(int *)field = (int)value;
    return true;
}

static bool parse_power(const struct row *row, const char *text, void *field)
{
    size_t bytes;

    return gy_parse_bytes(text, &bytes) && (bytes & (bytes - 1)) == 0 && parse_size(row, text, field);
}

static bool parse_text(const struct row *row, const char *text, void *field)
{
    size_t length = strlen(text);

    if (length >= row->size || (length && length < (size_t)row->least))
        return false;
    memcpy(field, text, length + 1);
    return true;
}

static bool parse_launcher(const struct row *row, const char *text, void *field)
{
    static const char *const names[] = {"", "torchrun", "openmpi", "pmix", "pmi", "slurm"}; /* boot/launcher.c */

    for (size_t i = 0; i < GY_ARRAY_LENGTH(names); i++) {
        if (strcmp(text, names[i]) == 0)
            return parse_text(row, text, field);
    }
    return false;
}

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

/* Length of the item that a list continues with; 0: none. */
typedef size_t (*item_func)(const char *at);

static size_t name_item(const char *at)
{
    return strspn(at, NAME_LETTERS);
}

static bool is_collective(const char *name, size_t length)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier",
                                        "reduce",     "gather",         "scatter",    "all_to_all"};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(names); i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    }
    return false;
}

static size_t choice_item(const char *at)
{
    size_t collective = name_item(at);

    if (!is_collective(at, collective) || at[collective] != ':')
        return 0;
    size_t algorithm = name_item(at + collective + 1);
    return algorithm ? collective + 1 + algorithm : 0;
}

/* At least one item, single commas between them. */
static bool parse_list(const struct row *row, const char *text, void *field, item_func item)
{
    for (const char *at = text;; at++) {
        size_t length = item(at);

        if (length == 0)
            return false;
        at += length;
        if (!*at)
            return parse_text(row, text, field);
        if (*at != ',')
            return false;
    }
}

/* "shm,rdma,tcp". Whether a transport of that name exists is the registry's to say. */
static bool parse_names(const struct row *row, const char *text, void *field)
{
    return parse_list(row, text, field, name_item);
}

/* An interface, or an address. */
static size_t interface_item(const char *at)
{
    return strcspn(at, ", \t");
}

/* "eth0,eth1": as many as there can be rails. */
static bool parse_interfaces(const struct row *row, const char *text, void *field)
{
    int names = 1;

    for (const char *at = text; (at = strchr(at, ',')); at++)
        names++;
    return names <= GY_RAILS_MOST &&
           (*text ? parse_list(row, text, field, interface_item) : parse_text(row, text, field));
}

/* A number from 1 to 9999. */
static size_t count_item(const char *at)
{
    size_t digits = strspn(at, "0123456789");

    return at[0] == '0' || digits > 4 ? 0 : digits;
}

/* "host", "numa", "cache", "off", or "2,2,3". */
static bool parse_hierarchy(const struct row *row, const char *text, void *field)
{
    static const char *const words[] = {"host", "numa", "cache", "off"};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(words); i++) {
        if (strcmp(text, words[i]) == 0)
            return parse_text(row, text, field);
    }
    return parse_list(row, text, field, count_item);
}

/* "all_reduce:ring,broadcast:binary_tree". Whether the algorithm exists is the selector's to say. */
static bool parse_choices(const struct row *row, const char *text, void *field)
{
    return *text ? parse_list(row, text, field, choice_item) : parse_text(row, text, field);
}

/* The file is read here, so that a bad one is found before anybody waits. */
static bool parse_tuning(const struct row *row, const char *text, void *field)
{
    struct gy_tuning *tuning = field;
    const char *why;

    (void)row;
    memset(tuning, 0, sizeof(*tuning));
    if (!*text)
        return true;
    if (strlen(text) >= sizeof(tuning->path))
        return false;
    tuning->cluster = gy_cluster_default();
    if (!gy_cluster_read(text, &tuning->cluster, &why)) {
        gy_log(GY_LOG_ERROR, "GYRE_TUNING: %s: %s", text, why);
        return false;
    }
    memcpy(tuning->path, text, strlen(text) + 1);
    tuning->digest = XXH3_64bits(&tuning->cluster, sizeof(tuning->cluster));
    return true;
}

#define FIELD(name) offsetof(struct gy_config, name), sizeof(((struct gy_config *)0)->name)
#define TIMEOUT_RANGE GY_MILLISECOND, INT64_C(1000000000) * GY_SECOND
#define TIMEOUT_ALLOWED "a time above zero such as 30, 0.5, 200ms, 10m or 2h"

static const struct row rows[] = {
    {"GYRE_LOG", parse_level, FIELD(log_level), 0, 0, "warn", "level", "what is written to standard error",
     "error, warn, info or debug", PLAIN},
    {"GYRE_TIMEOUT", parse_time, FIELD(timeout_ns), TIMEOUT_RANGE, "1800", "s",
     "how long a live rank may take to enter an operation that others wait in", TIMEOUT_ALLOWED, PLAIN},
    {"GYRE_STALL_TIMEOUT", parse_time, FIELD(stall_timeout_ns), TIMEOUT_RANGE, "30", "s",
     "how long a rank inside an operation may move nothing", TIMEOUT_ALLOWED, PLAIN},
    {"GYRE_PEER_TIMEOUT", parse_time, FIELD(peer_timeout_ns), TIMEOUT_RANGE, "10", "s",
     "how long a host may be silent before it counts as lost", TIMEOUT_ALLOWED, PLAIN},
    {"GYRE_MEET_TIMEOUT", parse_time, FIELD(meet_timeout_ns), TIMEOUT_RANGE, "300", "s",
     "how long the ranks wait for each other when a communicator is made", TIMEOUT_ALLOWED, PLAIN},
    {"GYRE_TRANSPORT", parse_names, FIELD(transports), 0, 0, "shm,rdma,tcp", "names",
     "transports that may be used; between two ranks that of shm, rdma, tcp which comes first; the same on every rank",
     "names between commas, such as shm,tcp", SHARED},
    {"GYRE_ALGORITHM", parse_choices, FIELD(algorithm), 0, 0, "", "choices",
     "algorithms to force, the same on every rank: COLLECTIVE:ALGORITHM between commas; a call that one cannot do is "
     "an "
     "error",
     "COLLECTIVE:ALGORITHM between commas, such as all_reduce:ring,broadcast:binary_tree", SHARED},
    {"GYRE_TUNING", parse_tuning, FIELD(tuning), 0, 0, "", "path",
     "a file that gyre-tune wrote: algorithms are chosen by what they cost on that cluster; the same content on every "
     "rank",
     "a file of lines NAME = VALUE, as gyre-tune writes it", SHARED},
    {"GYRE_ORDER", parse_order, FIELD(canonical), 0, 0, "shape", "order",
     "operands of a reduction: shape, an order that is a function of the call's shape; canonical, one tree over the "
     "ranks "
     "for every element; the same on every rank",
     "shape or canonical", SHARED},
    {"GYRE_ENDS", parse_ends, FIELD(uniform), 0, 0, "local", "mode",
     "how a collective ends in which a rank fails: local, on every rank for itself; uniform, on all that are left "
     "alike, "
     "for one small exchange more; the same on every rank",
     "local or uniform", SHARED},
    {"GYRE_HIERARCHY", parse_hierarchy, FIELD(hierarchy), 0, 0, "host", "groups",
     "ranks that hierarchical algorithms take as near each other: host, those of one host; numa, those of a host that "
     "are bound to one NUMA node; cache, to one last-level cache; sizes between commas, groups of so many consecutive "
     "ranks; off; the same on every rank",
     "host, numa, cache, off, or sizes of groups between commas, such as 4 or 2,2,3", SHARED},
    {"GYRE_HOST_ID", parse_text, FIELD(host_id), 0, 0, "", "text",
     "what tells hosts apart; empty: boot id, network namespace and user", "shorter than 128 characters", PLAIN},
    {"GYRE_INTERFACE", parse_interfaces, FIELD(interface), 0, 0, "", "names",
     "network interfaces, or own addresses, as many on every rank: all meet over the first, and TCP links are spread "
     "over all; "
     "empty: the one that routes to the meeting address",
     "one to four names or addresses between commas, such as eth0 or eth0,eth1", PLAIN},
    {"GYRE_LAUNCHER", parse_launcher, FIELD(launcher), 0, 0, "", "name",
     "whose variables say rank and size: torchrun (RANK, WORLD_SIZE), openmpi, pmix, pmi (MPICH) or slurm; empty: "
     "whose there are",
     "torchrun, openmpi, pmix, pmi or slurm", PLAIN},
    {"GYRE_ADDRESS", parse_text, FIELD(address), 0, 0, "", "address",
     "where the ranks meet, tcp://HOST:PORT or file:///PATH; empty: MASTER_ADDR and MASTER_PORT, or what the launcher "
     "offers",
     "shorter than 256 characters", PLAIN},
    {"GYRE_JOIN", parse_switch, FIELD(join), 0, 0, "0", "0|1",
     "1: this process joins a world that is there already and lets newcomers in, at the address of any of its members",
     "0 or 1", PLAIN},
    {"GYRE_SECRET", parse_text, FIELD(secret), 16, 0, "", "text",
     "the job's secret, the same on every rank, at least 16 characters", "16 to 255 characters long", SECRET},
    {"GYRE_SECRET_FILE", parse_text, FIELD(secret_file), 0, 0, "", "path", "a file that holds the job's secret",
     "shorter than 256 characters", PLAIN},
    {"GYRE_INSECURE", parse_switch, FIELD(insecure), 0, 0, "0", "0|1",
     "1: meet across hosts without a secret, so that anyone who reaches the port may join", "0 or 1", PLAIN},
    {"GYRE_INTEGRITY", parse_integrity, FIELD(integrity), 0, 0, "off", "mode",
     "what protects the bytes on sockets: off, nothing; crc, against accidents; mac, against changes by others; "
     "encrypt, "
     "against readers too; the same on every rank",
     "off, crc, mac or encrypt", SHARED},
    {"GYRE_VERIFY", parse_size, FIELD(verify), 0, 1024, "0", "results",
     "after so many results that are equal on every rank their hashes are compared, so that a rank that has another "
     "one "
     "is named; 0: never; the same on every rank",
     "a number from 0 to 1024", SHARED},
    {"GYRE_SHM_RESERVE", parse_size, FIELD(shm_reserve), 1 << 20, INT64_C(1) << 44, "16G", "bytes",
     "address space per rank of this host for gyre_mem_alloc; memory is taken when it is used",
     "a size from 1m to 16t, such as 512m or 16G", PLAIN},
    {"GYRE_SHM_SLOT", parse_size, FIELD(shm_slot), 4096, 1 << 30, "256k", "bytes",
     "one slot of the window through which ranks of a host exchange data; the same on every rank",
     "a size from 4k to 1g, such as 256k", SHARED},
    {"GYRE_SHM_READ", parse_switch, FIELD(shm_read), 0, 0, "1", "0|1",
     "1: where all ranks of a host may read each other's memory through the kernel, long vectors that are only "
     "moved are copied once; 0: never, for buffers that the kernel does not read, such as a device's",
     "0 or 1", PLAIN},
    {"GYRE_TCP_TILE", parse_size, FIELD(tcp_tile), 8 << 10, 1 << 20, "256k", "bytes",
     "the most bytes in one frame of ranks on several hosts; the same on every rank",
     "a size from 8k to 1m, such as 256k", SHARED},
    {"GYRE_TCP_CONGESTION", parse_text, FIELD(tcp_congestion), 0, 0, "", "name",
     "congestion control of TCP links between machines, such as cubic; empty: the system's "
     "(net.ipv4.tcp_congestion_control)",
     "shorter than 16 characters", PLAIN},
    {"GYRE_SPIN", parse_spin, FIELD(spin_ns), 0, 10000000, "-1", "us",
     "how long a wait spins or yields before it sleeps; -1: by the load of this host",
     "-1 or whole microseconds up to 10000000", PLAIN},
    {"GYRE_PROGRESS_THREAD", parse_switch, FIELD(progress_thread), 0, 0, "0", "0|1",
     "1: a thread of gyre's own moves requests while the program computes", "0 or 1", PLAIN},
    {"GYRE_LIBRARY", parse_text, FIELD(library), 0, 0, "", "path",
     "the file that bindings of other languages load as libgyre.so; empty: what the loader finds",
     "shorter than 1024 characters", PLAIN},
    {"GYRE_RDMA_DEVICES", parse_text, FIELD(rdma_devices), 0, 0, "", "names",
     "RDMA devices to use, DEVICE or DEVICE:PORT between commas; empty: the nearest, as gyre-info shows",
     "names between commas, such as mlx5_0,mlx5_1:2", PLAIN},
    {"GYRE_RDMA_GID_INDEX", parse_int, FIELD(rdma_gid_index), -1, 255, "-1", "index",
     "the GID of every RDMA port to use; -1: the first of RoCE v2 over an address that routes", "-1 to 255", PLAIN},
    {"GYRE_RDMA_SERVICE_LEVEL", parse_int, FIELD(rdma_service_level), 0, 15, "0", "number",
     "service level of RDMA connections: the priority on Ethernet, the virtual lane on InfiniBand", "0 to 15", PLAIN},
    {"GYRE_RDMA_TRAFFIC_CLASS", parse_int, FIELD(rdma_traffic_class), 0, 255, "0", "number",
     "traffic class of RDMA connections: DSCP times four", "0 to 255", PLAIN},
    {"GYRE_RDMA_QUEUE_PAIRS", parse_int, FIELD(rdma_queue_pairs), 1, 8, "1", "number",
     "queue pairs per RDMA device between two ranks, over which large messages are striped", "1 to 8", PLAIN},
    {"GYRE_RDMA_ACK_TIMEOUT", parse_int, FIELD(rdma_ack_timeout), -1, 31, "-1", "exponent",
     "n: an RDMA device repeats what is not acknowledged within 4.096 us * 2^n, seven times; -1, 0: by "
     "GYRE_PEER_TIMEOUT",
     "-1 to 31", PLAIN},
    {"GYRE_RDMA_RING", parse_power, FIELD(rdma_ring), 4096, 1 << 28, "256k", "bytes",
     "memory per RDMA link into which the peer writes: what may be on its way at once",
     "a power of two from 4k to 256m", PLAIN},
    {"GYRE_SHOW_CHOICE", parse_switch, FIELD(show_choice), 0, 0, "0", "0|1",
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
    const char *nearest = rows[0].name;
    size_t least = SIZE_MAX;

    length = gy_min_size(length, LONGEST_NAME);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(rows); i++) {
        size_t distance = edit_distance(rows[i].name, strlen(rows[i].name), name, length);

        if (distance < least) {
            least = distance;
            nearest = rows[i].name;
        }
    }
    return nearest;
}

static bool name_is_known(const char *name, size_t length)
{
    if (strncmp(name, TEST_PREFIX, strlen(TEST_PREFIX)) == 0)
        return true;
    for (size_t i = 0; i < GY_ARRAY_LENGTH(rows); i++) {
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
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

static gyre_status read_row(const struct row *row, struct gy_config *config, struct gy_error *error)
{
    const char *text = getenv(row->name);
    void *field = (char *)config + row->offset;

    if (!text || !*text)
        text = row->initial;
    if (row->parse(row, text, field))
        return GYRE_SUCCESS;
    return gy_error_set(error, GYRE_BAD_CONFIGURATION, -1, "%s=%.*s is invalid: it must be %s", row->name,
                        LONGEST_SHOWN, row->trait == SECRET ? "(not shown)" : text, row->allowed);
}

static gyre_status config_read(bool strict, struct gy_config *config_p, struct gy_error *error)
{
    struct gy_config config;
    gyre_status status;

    memset(&config, 0, sizeof(config));
    for (size_t i = 0; i < GY_ARRAY_LENGTH(rows); i++) {
        status = read_row(&rows[i], &config, error);
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
    for (size_t i = 0; i < GY_ARRAY_LENGTH(rows); i++) {
        const struct row *row = &rows[i];
        char line[256];

        snprintf(line, sizeof(line), "%-18s  %-8s  %-7s  %s", row->name, row->initial[0] ? row->initial : "(empty)",
                 row->unit, row->help);
        print(user, line);
    }
}

static void print_value(const struct row *row, const struct gy_config *config, char *text_p, size_t bytes)
{
    const void *field = (const char *)config + row->offset;

    if (row->parse == parse_size || row->parse == parse_power)
        snprintf(text_p, bytes, "%zu", *(const size_t *)field);
    else if (row->parse == parse_time || row->parse == parse_spin)
        snprintf(text_p, bytes, "%" PRId64, *(const int64_t *)field);
    else if (row->parse == parse_order)
        snprintf(text_p, bytes, "%s", *(const bool *)field ? "canonical" : "shape");
    else if (row->parse == parse_ends)
        snprintf(text_p, bytes, "%s", *(const bool *)field ? "uniform" : "local");
    else if (row->parse == parse_switch)
        snprintf(text_p, bytes, "%d", *(const bool *)field);
    else if (row->parse == parse_integrity)
        snprintf(text_p, bytes, "%s", integrities[*(const int *)field]);
    else if (row->parse == parse_tuning)
        snprintf(text_p, bytes, "%.0" PRIx64, ((const struct gy_tuning *)field)->digest);
    else if (row->parse == parse_level || row->parse == parse_int)
        snprintf(text_p, bytes, "%d", *(const int *)field);
    else
        snprintf(text_p, bytes, "%s", (const char *)field);
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
    size_t used = 0;

    text_p[0] = '\0';
    for (size_t i = 0; i < GY_ARRAY_LENGTH(rows); i++) {
        char value[GY_CONFIG_SHARED];

        if (rows[i].trait != SHARED)
            continue;
        print_value(&rows[i], config, value, sizeof(value));
        used += (size_t)snprintf(text_p + used, GY_CONFIG_SHARED - used, "%s=%s\n", rows[i].name, value);
        if (used >= GY_CONFIG_SHARED)
            return GY_CONFIG_SHARED - 1; /* cut off, and so on every rank at the same place */
    }
    /* The names are each host's own. */
    used += (size_t)snprintf(text_p + used, GY_CONFIG_SHARED - used, "GYRE_INTERFACE=%d name%s\n",
                             gy_config_rails(config), gy_config_rails(config) > 1 ? "s" : "");
    return gy_min_size(used, GY_CONFIG_SHARED - 1);
}
