/* Allocation: counts, alignment, overflow, and failure of any chosen allocation. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/poller.h"

Test(mem, zero_bytes_give_a_pointer)
{
    void *memory[] = {gy_alloc(0), gy_alloc_zero(0, 8), gy_alloc_zero(8, 0), gy_alloc_aligned(64, 0),
                      gy_realloc(NULL, 0)};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(memory); i++) {
        cr_assert_not_null(memory[i]);
        gy_free(memory[i]);
    }
    gy_free(NULL);
}

Test(mem, zeroed_and_checked_for_overflow)
{
    volatile size_t huge = SIZE_MAX / 2;
    unsigned char *memory = gy_alloc_zero(100, 3);

    for (size_t i = 0; i < 300; i++)
        cr_assert_eq(memory[i], 0);
    gy_free(memory);
    cr_assert_null(gy_alloc_zero(huge, 4));
}

Test(mem, aligned)
{
    for (size_t align = 1; align <= 4096; align *= 2) {
        void *memory = gy_alloc_aligned(align, 100);

        cr_assert_eq((uintptr_t)memory % align, 0);
        gy_free(memory);
    }
}

Test(mem, exactly_the_nth_fails)
{
    for (uint64_t nth = 1; nth <= 6; nth++) {
        gy_alloc_fail_at(nth);
        for (uint64_t i = 1; i <= 8; i++) {
            void *memory = i % 2 ? gy_alloc(8) : gy_alloc_aligned(64, 8);

            cr_assert_eq(memory == NULL, i == nth, "allocation %d of fail_at(%d)", (int)i, (int)nth);
            gy_free(memory);
        }
    }
    gy_alloc_fail_at(1);
    gy_alloc_fail_at(0);
    char *copy = gy_strdup("text");
    cr_assert_str_eq(copy, "text");
    gy_alloc_fail_at(1);
    cr_assert_null(gy_realloc(copy, 100));
    cr_assert_str_eq(copy, "text");
    gy_alloc_fail_at(1);
    cr_assert_null(gy_strdup("text"));
    gy_alloc_fail_at(1);
    cr_assert_null(gy_alloc_zero(1, 1));
    gy_free(copy);
}

Test(mem, the_environment_names_the_failing_one)
{
    setenv("GYRE_TEST_FAIL_ALLOC", "2", 1);
    void *first = gy_alloc(1);
    cr_assert_not_null(first);
    cr_assert_null(gy_alloc(1));
    gy_free(first);
}

static atomic_int failures;

static void *allocate_many(void *unused)
{
    (void)unused;
    for (int i = 0; i < 1000; i++) {
        void *memory = gy_alloc(16);

        if (!memory)
            atomic_fetch_add(&failures, 1);
        gy_free(memory);
    }
    return NULL;
}

Test(mem, threads_draw_distinct_numbers)
{
    pthread_t threads[4];
    uint64_t before;

    gy_alloc_fail_at(1500);
    before = gy_alloc_count();
    for (size_t i = 0; i < 4; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, allocate_many, NULL), 0);
    for (size_t i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cr_assert_eq(gy_alloc_count() - before, 4000);
    cr_assert_eq(atomic_load(&failures), 1);
}

Test(mem, a_user_of_it_reports_the_failure)
{
    struct gy_poller *poller = NULL;
    struct gy_error error = {.quiet = false};

    gy_error_clear(&error);
    gy_alloc_fail_at(1);
    cr_assert_eq(gy_poller_create(&poller, &error), GYRE_NO_MEMORY);
    cr_assert_null(poller);
    cr_assert_eq(error.status, GYRE_NO_MEMORY);
}

/* A user's allocator: its pieces begin in the middle of libc's, so that neither takes the other's. */
#define GUARD 64
static struct {
    int allocated, resized, released;
} asked;

static void *own_allocate(void *user, size_t bytes, size_t align)
{
    cr_assert_eq(user, &asked);
    cr_assert_leq(align, GUARD);
    char *memory = aligned_alloc(GUARD, (bytes + 2 * GUARD - 1) / GUARD * GUARD);
    memset(memory, 0x5a, bytes + GUARD);
    asked.allocated++;
    return memory + GUARD;
}

static void *own_resize(void *user, void *memory, size_t bytes)
{
    cr_assert_eq(user, &asked);
    char *whole = realloc((char *)memory - GUARD, bytes + GUARD);
    asked.resized++;
    return whole + GUARD;
}

static void own_release(void *user, void *memory)
{
    cr_assert_eq(user, &asked);
    asked.released++;
    free((char *)memory - GUARD);
}

Test(mem, all_of_it_comes_from_the_users_functions)
{
    const gyre_allocator own = {sizeof(own), own_allocate, own_resize, own_release, &asked};
    char *zero, *text;
    void *memory;

    memory = gy_alloc(10);
    cr_assert_not(gy_mem_set_allocator(&own), "libc's memory is still there");
    gy_free(memory);
    cr_assert(gy_mem_set_allocator(&own));
    zero = gy_alloc_zero(3, 5);
    for (int i = 0; i < 15; i++)
        cr_assert_eq(zero[i], 0);
    memory = gy_realloc(zero, 5000);
    cr_assert_eq(memcmp(memory, (char[15]){0}, 15), 0);
    text = gy_strdup("text");
    cr_assert_str_eq(text, "text");
    gy_free(gy_alloc_aligned(64, 100));
    gy_free(gy_realloc(NULL, 7));
    cr_assert_not(gy_mem_set_allocator(NULL), "the user's memory is still there");
    gy_free(text);
    gy_free(memory);
    gy_free(NULL);
    cr_assert_eq(asked.allocated, 4);
    cr_assert_eq(asked.resized, 1);
    cr_assert_eq(asked.released, 4);
    cr_assert(gy_mem_set_allocator(NULL));
    gy_free(gy_alloc(1));
    cr_assert_eq(asked.allocated, 4);
}
