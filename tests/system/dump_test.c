/* What a core dump of a rank would hold. Each rank looks for the job's secret and for every key in secret memory, in
 * all of its memory that a dump includes: heap, stacks, data and the environment. Secret memory is what the kernel says
 * is left out (dd in /proc/self/smaps).
 *
 * The test itself has neither in such memory: the secret is kept changed, and keys are compared where they are. */
#include <sys/wait.h>

#include "support/rank.h"

#define MASK 0x5a
#define KEY 32
#define KEYS_MOST 256
#define MAPPINGS_MOST 1024
#define DIFFERENT_LEAST 24 /* byte values in a key: of random ones less than once in a billion */

struct mapping {
    unsigned char *begin, *end;
    bool dumped, written;
    char name[160];
};

static struct mapping mappings[MAPPINGS_MOST];
static int mapping_count;
static unsigned char masked[256];
static size_t masked_bytes;
static const unsigned char *keys[KEYS_MOST]; /* in secret memory */
static int key_count;

/* ---- memory ---- */

/* Mappings that can be read and have pages. */
static void read_mappings(void)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    struct mapping *mapping = mappings;
    char line[512], access[8];
    unsigned long begin, end, kilobytes = 0;
    bool readable = false;
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file)) {
        CHECK(mapping < &mappings[MAPPINGS_MOST]);
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, access) == 3) {
            const char *name = strpbrk(line, "/[");
            snprintf(mapping->name, sizeof mapping->name, "%.150s", name ? name : "anonymous\n");
            mapping->name[strcspn(mapping->name, "\n")] = '\0';
            mapping->begin = (unsigned char *)begin;
            mapping->end = (unsigned char *)end;
            mapping->written = access[1] == 'w';
            readable = access[0] == 'r' && strncmp(mapping->name, "[v", 2) != 0; /* the kernel's own */
        } else if (sscanf(line, "Rss: %lu", &kilobytes) != 1 && strncmp(line, "VmFlags:", 8) == 0) {
            mapping->dumped = strstr(line, " dd") == NULL;
            mapping += readable && kilobytes > 0;
        }
    }
    fclose(file);
    mapping_count = (int)(mapping - mappings);
}

static bool is_key(const unsigned char *bytes)
{
    bool seen[256] = {false};
    int different = 0;
    for (int i = 0; i < KEY; i++) {
        different += !seen[bytes[i]];
        seen[bytes[i]] = true;
    }
    return different >= DIFFERENT_LEAST;
}

static void find_keys(void)
{
    key_count = 0;
    for (int m = 0; m < mapping_count; m++) {
        if (mappings[m].dumped || !mappings[m].written)
            continue;
        for (const unsigned char *at = mappings[m].begin; at + KEY <= mappings[m].end; at += KEY) { /* cells of 64 */
            if (!is_key(at))
                continue;
            CHECK(key_count < KEYS_MOST);
            keys[key_count++] = at;
        }
    }
}

static uint64_t word(const unsigned char *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

static bool is_secret(const unsigned char *at, const unsigned char *end)
{
    if ((size_t)(end - at) < masked_bytes)
        return false;
    for (size_t i = 0; i < masked_bytes; i++)
        if ((at[i] ^ MASK) != masked[i])
            return false;
    return true;
}

/* How often the secret and the keys lie in memory that is dumped. */
static int count_leaks(bool report)
{
    int leaks = 0;
    for (int m = 0; m < mapping_count; m++) {
        const struct mapping *mapping = &mappings[m];
        if (!mapping->dumped)
            continue;
        for (const unsigned char *at = mapping->begin; at + KEY <= mapping->end; at++) {
            bool secret = (*at ^ MASK) == masked[0] && is_secret(at, mapping->end), key = false;
            uint64_t first = word(at);
            for (int k = 0; k < key_count && !key; k++)
                key = first == word(keys[k]) && memcmp(at, keys[k], KEY) == 0;
            leaks += secret || key;
            if (report && (secret || key))
                fprintf(stderr, "rank %s: %s at %p, in %s\n", getenv("RANK"), secret ? "the secret" : "a key",
                        (const void *)at, mapping->name);
        }
    }
    return leaks;
}

/* ---- the environment ---- */

static void keep_masked(const char *secret)
{
    masked_bytes = strlen(secret);
    CHECK(masked_bytes >= KEY && masked_bytes <= sizeof masked);
    for (size_t i = 0; i < masked_bytes; i++)
        masked[i] = (unsigned char)secret[i] ^ MASK;
}

/* What other processes of this user read. */
static void expect_no_secret_in_proc(void)
{
    static unsigned char block[1 << 17];
    FILE *file = fopen("/proc/self/environ", "r");
    CHECK(file != NULL);
    size_t bytes = fread(block, 1, sizeof block, file);
    CHECK(bytes > 0 && bytes < sizeof block);
    for (size_t i = 0; i < bytes; i++)
        CHECK(!is_secret(block + i, block + bytes));
    fclose(file);
}

/* ---- worlds ---- */

static gyre_comm *make_world(void)
{
    gyre_comm *comm = rank_begin(50);
    float in = 1, out = 0;
    OK(comm, gyre_all_reduce(comm, &in, &out, 1, GYRE_FLOAT32, GYRE_SUM)); /* links are there */
    CHECK(out == (float)gyre_comm_size(comm));
    return comm;
}

static void look(int keys_least)
{
    read_mappings();
    find_keys();
    if (key_count < keys_least)
        rank_fail("%d keys in secret memory instead of %d or more", key_count, keys_least);
    int leaks = count_leaks(true);
    if (leaks > 0)
        rank_fail("a core dump would hold the secret or keys, %d times", leaks);
}

/* The search finds what is there. */
static void expect_found(void)
{
    unsigned char *planted = malloc(2 * KEY);
    CHECK(planted != NULL);
    read_mappings();
    memcpy(planted + 3, keys[0], KEY);
    CHECK(count_leaks(false) >= 1);
    explicit_bzero(planted, 2 * KEY);
    for (size_t i = 0; i < masked_bytes; i++)
        planted[i] = masked[i] ^ MASK;
    CHECK(count_leaks(false) >= 1);
    explicit_bzero(planted, 2 * KEY);
    free(planted);
}

/* A forked child has the secret, for worlds of its own, and none of its parent's keys. */
static void expect_child_meets(int parent_keys)
{
    int status = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        read_mappings();
        find_keys();
        CHECK(key_count < parent_keys);
        OK(NULL, gyre_comm_destroy(make_world()));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(int count, char **arguments)
{
    int keys_least = count > 1 ? atoi(arguments[1]) : 0;
    const char *secret = getenv("GYRE_SECRET");
    CHECK(secret && strlen(secret) <= sizeof masked);
    keep_masked(secret);
    gyre_comm *comm = make_world();
    CHECK(getenv("GYRE_SECRET") && !*getenv("GYRE_SECRET"));
    expect_no_secret_in_proc();
    look(keys_least);
    expect_found();
    int key_count_then = key_count;
    OK(comm, gyre_comm_destroy(comm));
    expect_child_meets(key_count_then);
    comm = make_world(); /* again, with the secret that this process has kept */
    look(keys_least);
    OK(comm, gyre_comm_destroy(comm));
    look(0);
    return 0;
}
