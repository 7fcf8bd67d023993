/* Runs a fuzz target without libFuzzer: every file of a folder, then mutants of them from a fixed seed, so that the
 * decoders meet hostile bytes in every test run and with every compiler.
 *
 *   replay FOLDER      a folder that is missing or empty is a failure: a check that checks nothing must not pass */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz/fuzz.h"

#define FILE_MAX 65536
#define MUTANTS 20000 /* in all; a few seconds under a sanitizer */
#define SECONDS 20    /* for them: where both ends of a conversation have to wait for a core each time, fewer must do */

struct seed {
    uint8_t *data;
    size_t size;
};

static uint64_t state = UINT64_C(0x9e3779b97f4a7c15);

static uint64_t next_random(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* The target gets a heap copy of exactly `size` bytes, so that a sanitizer sees one byte too far. */
static void feed(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL)
        abort();
    if (size > 0)
        memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static bool read_seed(const char *folder, const char *name, struct seed *seed_p)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return false;
    seed_p->data = malloc(FILE_MAX);
    if (seed_p->data == NULL)
        abort();
    seed_p->size = fread(seed_p->data, 1, FILE_MAX, file);
    fclose(file);
    return true;
}

static size_t read_folder(const char *folder, struct seed *seeds_p, size_t most)
{
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return 0;
    size_t found = 0;
    for (const struct dirent *entry; found < most && (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.' && read_seed(folder, entry->d_name, &seeds_p[found]))
            found++;
    closedir(directory);
    return found;
}

/* Flips bits, writes extreme values, cuts or extends: what the bounds of a decoder are tried with. */
static void feed_mutant(const struct seed *seed)
{
    static const uint8_t extremes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    static uint8_t mutant[FILE_MAX];
    size_t size = seed->size;
    memcpy(mutant, seed->data, size);
    for (uint64_t changes = 1 + next_random() % 4; changes > 0; changes--) {
        const uint64_t where = size > 0 ? next_random() % size : 0;
        switch (next_random() % 4) {
        case 0: mutant[where] ^= (uint8_t)(1u << (next_random() % 8)); break;
        case 1: mutant[where] = extremes[next_random() % sizeof extremes]; break;
        case 2: size = (size_t)where; break;
        default:
            if (size < FILE_MAX)
                mutant[size++] = (uint8_t)next_random();
        }
    }
    feed(mutant, size);
}

int main(int argc, char **argv)
{
    static struct seed seeds[256];
    alarm(200);
    const size_t count = argc == 2 ? read_folder(argv[1], seeds, sizeof seeds / sizeof seeds[0]) : 0;
    if (count == 0) {
        fprintf(stderr, "replay: give a folder with at least one file\n");
        return 1;
    }
    feed((const uint8_t *)"", 0);
    for (size_t i = 0; i < count; i++)
        feed(seeds[i].data, seeds[i].size);
    int mutants = 0;
    for (const time_t began = time(NULL); mutants < MUTANTS && time(NULL) - began < SECONDS; mutants++)
        feed_mutant(&seeds[(size_t)mutants % count]);
    printf("%zu inputs and %d mutants\n", count, mutants);
    for (size_t i = 0; i < count; i++)
        free(seeds[i].data);
    return 0;
}
