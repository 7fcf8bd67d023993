/* Memory for keys, and the variable that is taken out of the environment. What lies where in a whole rank:
 * system.dump. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/secret_memory.h"
#include "core/secret_variable.h"

#define TEXT "c2VjcmV0IG9mIHRoZSB0ZXN0cw"

/* True if the kernel's flags of the mapping at `memory` include `flag`. */
static bool has_flag(const void *memory, const char *flag)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    unsigned long begin, end;
    bool here = false, found = false;

    cr_assert_not_null(file);
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            here = (unsigned long)memory >= begin && (unsigned long)memory < end;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    fclose(file);
    return found;
}

Test(secret_memory, is_not_dumped_and_wiped_on_request)
{
    void *key = gy_secret_alloc(32, GY_SECRET_WIPED), *text = gy_secret_alloc(200, GY_SECRET_COPIED);

    cr_assert(key && text);
    cr_assert(has_flag(key, " dd") && has_flag(key, " wf"));
    cr_assert(has_flag(text, " dd") && !has_flag(text, " wf"));
    cr_assert_not(has_flag(&key, " dd"));
}

Test(secret_memory, is_packed_zeroed_and_overwritten)
{
    unsigned char *cells[64], zeros[64] = {0}, *again;
    size_t sizes[] = {0, 1, 64, 65, 256, 257, 1344, 1345, GY_SECRET_MOST};

    for (int i = 0; i < 64; i++) {
        cells[i] = gy_secret_alloc(64, GY_SECRET_WIPED);
        cr_assert_not_null(cells[i]);
        cr_assert_arr_eq(cells[i], zeros, 64);
        memset(cells[i], i + 1, 64);
        cr_assert(i == 0 || cells[i] == cells[i - 1] + 64, "64 keys take one page");
    }
    gy_secret_free(cells[7]);
    cr_assert_arr_eq(cells[7], zeros, 64);
    again = gy_secret_alloc(33, GY_SECRET_WIPED);
    cr_assert_eq(again, cells[7]);
    for (int i = 0; i < 64; i++)
        cr_assert(i == 7 || cells[i][63] == i + 1);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        unsigned char *memory = gy_secret_alloc(sizes[i], GY_SECRET_COPIED);

        cr_assert_not_null(memory);
        cr_assert_eq((uintptr_t)memory % 64, 0);
        memset(memory, 0xff, sizes[i]);
    }
    cr_assert_null(gy_secret_alloc(GY_SECRET_MOST + 1, GY_SECRET_WIPED));
    gy_secret_free(NULL);
}

/* What is before the first cell and behind the last one cannot be accessed. */
Test(secret_memory, has_guards)
{
    unsigned char *memory = gy_secret_alloc(GY_SECRET_MOST, GY_SECRET_COPIED);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    int ends[2];

    cr_assert_not_null(memory);
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], memory, 1), 1);
    cr_assert_eq(write(ends[1], memory - 1, 1), -1);
    cr_assert_eq(write(ends[1], memory + page, 1), -1);
}

Test(secret_memory, tests_can_make_it_fail)
{
    gy_alloc_fail_at(1);
    cr_assert_null(gy_secret_alloc(32, GY_SECRET_WIPED));
    cr_assert_not_null(gy_secret_alloc(32, GY_SECRET_WIPED));
}

Test(secret_memory, a_forked_child_has_texts_and_no_keys)
{
    char *key = gy_secret_alloc(32, GY_SECRET_WIPED), *text = gy_secret_alloc(200, GY_SECRET_COPIED);
    int status;
    pid_t child;

    strcpy(key, "a key");
    strcpy(text, "a text");
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        bool good = *key == '\0' && strcmp(text, "a text") == 0;

        gy_secret_free(key); /* the child may free and allocate */
        gy_secret_free(text);
        _exit(good && gy_secret_alloc(32, GY_SECRET_WIPED) == key && gy_secret_alloc(200, GY_SECRET_COPIED) == text
                  ? 0
                  : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_assert_str_eq(key, "a key");
}

#define THREADS 4
#define ROUNDS 20000
#define HELD 24

static void *take_and_give(void *argument)
{
    unsigned char *held[HELD] = {0}, mark = (unsigned char)(intptr_t)argument;

    for (int i = 0; i < ROUNDS; i++) {
        unsigned char **cell = &held[i * 7 % HELD];

        if (*cell && ((*cell)[0] != mark || (*cell)[63] != mark))
            return argument;
        gy_secret_free(*cell);
        *cell = gy_secret_alloc(64, GY_SECRET_WIPED);
        if (!*cell || (*cell)[0] != 0)
            return argument;
        memset(*cell, mark, 64);
    }
    for (int i = 0; i < HELD; i++)
        gy_secret_free(held[i]);
    return NULL;
}

Test(secret_memory, threads_have_cells_of_their_own, .timeout = 60)
{
    pthread_t threads[THREADS];
    void *failed;

    for (intptr_t i = 0; i < THREADS; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1)), 0);
    for (int i = 0; i < THREADS; i++) {
        cr_assert_eq(pthread_join(threads[i], &failed), 0);
        cr_assert_null(failed);
    }
}

static void expect_taken(const char *wanted)
{
    char text[GY_SECRET_TEXT];

    cr_assert_eq(gy_secret_variable_is_set(), *wanted != '\0');
    cr_assert_eq(gy_secret_variable_take(text), strlen(wanted));
    cr_assert_str_eq(text, wanted);
}

Test(secret_variable, is_taken_out_of_the_environment_and_kept)
{
    const char *value;

    unsetenv("GYRE_SECRET");
    expect_taken("");
    setenv("GYRE_SECRET", TEXT, 1);
    value = getenv("GYRE_SECRET");
    expect_taken(TEXT);
    cr_assert_eq(getenv("GYRE_SECRET"), value, "the variable stays where it is");
    for (size_t i = 0; i <= strlen(TEXT); i++)
        cr_assert_eq(value[i], '\0');
    expect_taken(TEXT);
    setenv("GYRE_SECRET", TEXT "another", 1);
    expect_taken(TEXT "another");
    expect_taken(TEXT "another");
    unsetenv("GYRE_SECRET");
    expect_taken("");
}

/* An empty variable that this process has not emptied is one that is not set. */
Test(secret_variable, empty_is_not_set)
{
    static char literal[] = "GYRE_SECRET=";

    setenv("GYRE_SECRET", TEXT, 1);
    expect_taken(TEXT);
    putenv(literal);
    expect_taken("");
}

Test(secret_variable, a_value_that_cannot_be_written_stays)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *entry = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    cr_assert_neq(entry, MAP_FAILED);
    strcpy(entry, "GYRE_SECRET=" TEXT);
    cr_assert_eq(mprotect(entry, page, PROT_READ), 0);
    putenv(entry);
    expect_taken(TEXT);
    expect_taken(TEXT);
    cr_assert_str_eq(getenv("GYRE_SECRET"), TEXT);
}

Test(secret_variable, a_forked_child_has_it_too)
{
    int status;
    pid_t child;

    setenv("GYRE_SECRET", TEXT, 1);
    expect_taken(TEXT);
    child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        char text[GY_SECRET_TEXT];

        _exit(gy_secret_variable_take(text) == strlen(TEXT) && strcmp(text, TEXT) == 0 ? 0 : 1);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
