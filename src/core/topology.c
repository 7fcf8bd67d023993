/* The part of the machine that this process can use. The core count is on the set-up path of every communicator and
 * costs one system call. hwloc is loaded to describe the machine to a user, and for the choice of adapters and of
 * groups. */
#include "topology.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <hwloc.h>
#include <xxhash.h>

#define MOST_CACHES 16      /* of a core, as the kernel counts them */
#define MOST_CPUS (1 << 20) /* a bound for the search of the kernel's mask size */

static int count_usable_cores(void)
{
    for (int cpus = 1024; cpus <= MOST_CPUS; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        size_t bytes = CPU_ALLOC_SIZE((size_t)cpus);
        int count = -1;

        if (!set)
            break;
        if (sched_getaffinity(0, bytes, set) == 0)
            count = CPU_COUNT_S(bytes, set);
        else if (errno != EINVAL) /* EINVAL: the kernel's mask is longer */
            count = 1;
        CPU_FREE(set);
        if (count > 0)
            return count;
    }
    return 1;
}

int gy_topology_usable_cores(void)
{
    static _Atomic int cached;
    int count = atomic_load_explicit(&cached, memory_order_relaxed);

    if (count == 0) {
        count = count_usable_cores();
        atomic_store_explicit(&cached, count, memory_order_relaxed);
    }
    return count;
}

int gy_topology_host_cores(void)
{
    int usable = gy_topology_usable_cores();
    long online = usable > 1 ? 0 : sysconf(_SC_NPROCESSORS_ONLN);
    return online > usable ? (int)online : usable;
}

/* A number of the kernel's about a cache, with its unit; 0: there is none. */
static size_t read_cache_file(int cpu, int index, const char *name)
{
    char path[96], text[32];
    snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    if (got <= 0)
        return 0;
    text[got] = '\0';
    char *unit;
    unsigned long long value = strtoull(text, &unit, 10);
    return (size_t)(value << (*unit == 'K' ? 10 : *unit == 'M' ? 20 : *unit == 'G' ? 30 : 0));
}

/* From the kernel's files, of this core alone: it is called inside a collective, where hwloc would first scan the whole
 * machine. */
static size_t find_last_cache(void)
{
    int cpu = sched_getcpu();
    size_t highest = 0, bytes = 0, level;
    for (int index = 0; index < MOST_CACHES && (level = read_cache_file(cpu, index, "level")) > 0; index++) {
        if (level < highest)
            continue;
        highest = level;
        bytes = read_cache_file(cpu, index, "size");
    }
    return bytes;
}

size_t gy_topology_last_cache(void)
{
    static _Atomic size_t cached; /* one more, once it is known */
    size_t known = atomic_load_explicit(&cached, memory_order_relaxed);

    if (known == 0) {
        known = find_last_cache() + 1;
        atomic_store_explicit(&cached, known, memory_order_relaxed);
    }
    return known - 1;
}

GY_PRINTF(3, 4)
static void print_line(gyre_print_func print, void *user, const char *format, ...)
{
    char line[256];
    va_list args;

    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    print(user, line);
}

static void describe_cache(gyre_print_func print, void *user, hwloc_topology_t topology, hwloc_obj_type_t type,
                           const char *name)
{
    int count = hwloc_get_nbobjs_by_type(topology, type);
    hwloc_obj_t first = count > 0 ? hwloc_get_obj_by_type(topology, type, 0) : NULL;

    if (first && first->attr)
        print_line(print, user, "  %-14s %d x %llu KiB", name, count,
                   (unsigned long long)first->attr->cache.size / 1024);
}

static void describe_nodes(gyre_print_func print, void *user, hwloc_topology_t topology)
{
    int count = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE);

    for (int i = 0; i < count; i++) {
        hwloc_obj_t node = hwloc_get_obj_by_type(topology, HWLOC_OBJ_NUMANODE, (unsigned)i);

        print_line(print, user, "  NUMA node %-4u %llu MiB, %d hardware threads", node->os_index,
                   (unsigned long long)node->attr->numanode.local_memory >> 20,
                   node->cpuset ? hwloc_bitmap_weight(node->cpuset) : 0);
    }
}

void gy_topology_describe(gyre_print_func print, void *user)
{
    hwloc_topology_t topology;

    print_line(print, user, "topology: %d hardware threads usable by this process", gy_topology_usable_cores());
    if (hwloc_topology_init(&topology) < 0) {
        print_line(print, user, "  hwloc cannot be initialised");
        return;
    }
    if (hwloc_topology_load(topology) < 0) {
        print_line(print, user, "  hwloc cannot read this machine");
        hwloc_topology_destroy(topology);
        return;
    }
    print_line(print, user, "  %-14s %d", "packages", hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PACKAGE));
    print_line(print, user, "  %-14s %d", "cores", hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE));
    describe_nodes(print, user, topology);
    describe_cache(print, user, topology, HWLOC_OBJ_L1CACHE, "L1 data cache");
    describe_cache(print, user, topology, HWLOC_OBJ_L2CACHE, "L2 cache");
    describe_cache(print, user, topology, HWLOC_OBJ_L3CACHE, "L3 cache");
    hwloc_topology_destroy(topology);
}

/* The kernel's boot id; where /proc hides it, the host's name, which at least differs between hosts. */
static void read_boot_id(char *text, size_t text_bytes)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, text_bytes - 1);
    struct utsname name;

    if (fd >= 0)
        close(fd);
    if (got > 0) {
        text[got] = '\0';
        return;
    }
    uname(&name);
    snprintf(text, text_bytes, "%s", name.nodename);
}

static hwloc_obj_t find_device(hwloc_topology_t topology, const char *name)
{
    hwloc_obj_t device = NULL;

    while ((device = hwloc_get_next_osdev(topology, device)))
        if (device->name && strcmp(device->name, name) == 0)
            return hwloc_get_non_io_ancestor_obj(topology, device);
    return NULL;
}

void gy_topology_device_distances(const char *const *names, int count, int *distances_p)
{
    hwloc_topology_t topology;
    hwloc_bitmap_t here;

    for (int i = 0; i < count; i++)
        distances_p[i] = access("/sys/devices/system/node/node1", F_OK) == 0;
    if (count == 0 || distances_p[0] == 0 || hwloc_topology_init(&topology) != 0)
        return;
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    here = hwloc_bitmap_alloc();
    if (here && hwloc_topology_load(topology) == 0 &&
        hwloc_get_last_cpu_location(topology, here, HWLOC_CPUBIND_THREAD) == 0) {
        for (int i = 0; i < count; i++) {
            hwloc_obj_t object = find_device(topology, names[i]);
            if (object && object->cpuset)
                distances_p[i] = hwloc_bitmap_intersects(object->cpuset, here) ? 0 : 2;
        }
    }
    hwloc_bitmap_free(here);
    hwloc_topology_destroy(topology);
}

static hwloc_obj_type_t last_cache(hwloc_topology_t topology)
{
    static const hwloc_obj_type_t levels[] = {HWLOC_OBJ_L5CACHE, HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L3CACHE};

    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (hwloc_get_nbobjs_by_type(topology, levels[i]) > 0)
            return levels[i];
    }
    return HWLOC_OBJ_L2CACHE;
}

int gy_topology_binding(bool caches)
{
    hwloc_topology_t topology;
    hwloc_bitmap_t bound;
    int place = 0;

    if (hwloc_topology_init(&topology) != 0)
        return 0;
    bound = hwloc_bitmap_alloc();
    if (bound && hwloc_topology_load(topology) == 0 && hwloc_get_cpubind(topology, bound, HWLOC_CPUBIND_THREAD) == 0 &&
        !hwloc_bitmap_iszero(bound)) {
        hwloc_obj_type_t type = caches ? last_cache(topology) : HWLOC_OBJ_NUMANODE;
        for (hwloc_obj_t at = hwloc_get_next_obj_by_type(topology, type, NULL); at && place == 0;
             at = hwloc_get_next_obj_by_type(topology, type, at)) {
            if (hwloc_bitmap_isincluded(bound, at->cpuset))
                place = (int)at->logical_index + 1;
        }
    }
    hwloc_bitmap_free(bound);
    hwloc_topology_destroy(topology);
    return place;
}

uint64_t gy_topology_host_key(const char *host_id)
{
    char boot_id[80], text[192];
    struct stat space = {0};

    if (host_id && host_id[0])
        return XXH3_64bits(host_id, strlen(host_id));
    read_boot_id(boot_id, sizeof(boot_id));
    if (stat("/proc/self/ns/net", &space) < 0)
        memset(&space, 0, sizeof(space));
    snprintf(text, sizeof(text), "%s %llx:%llx %lu", boot_id, (unsigned long long)space.st_dev,
             (unsigned long long)space.st_ino, (unsigned long)geteuid());
    return XXH3_64bits(text, strlen(text));
}
