/* Handles: known by address and kind as long as they live; where there are more than there is room for, those that live
 * still pass, and when they have gone, none is left; and several threads at once. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "core/handle.h"

static const void *handle(size_t number)
{
    return (const void *)(uintptr_t)((number + 1) * 48);
}

Test(handle, known_while_it_lives)
{
    cr_assert_not(gy_handle_lives(handle(1), GY_HANDLE_COMM));
    gy_handle_add(handle(1), GY_HANDLE_COMM);
    cr_assert(gy_handle_lives(handle(1), GY_HANDLE_COMM));
    cr_assert_not(gy_handle_lives(handle(1), GY_HANDLE_WINDOW), "another kind");
    cr_assert_not(gy_handle_lives(handle(2), GY_HANDLE_COMM));
    cr_assert_not(gy_handle_lives(NULL, GY_HANDLE_COMM));
    cr_assert_not(gy_handle_lives((const char *)handle(1) + 1, GY_HANDLE_COMM), "no handle lies there");
    gy_handle_add(handle(1), GY_HANDLE_WINDOW); /* its memory cannot be both at once, but the set does not mind */
    gy_handle_remove(handle(1), GY_HANDLE_COMM);
    cr_assert_not(gy_handle_lives(handle(1), GY_HANDLE_COMM));
    cr_assert(gy_handle_lives(handle(1), GY_HANDLE_WINDOW));
    gy_handle_remove(handle(1), GY_HANDLE_WINDOW);
}

/* A place that one has left is found again, however often. */
Test(handle, come_and_go)
{
    for (size_t i = 0; i < 200000; i++) {
        gy_handle_add(handle(i), GY_HANDLE_REQUEST);
        cr_assert(gy_handle_lives(handle(i), GY_HANDLE_REQUEST));
        gy_handle_remove(handle(i), GY_HANDLE_REQUEST);
        cr_assert_not(gy_handle_lives(handle(i), GY_HANDLE_REQUEST));
    }
}

Test(handle, more_than_there_is_room_for)
{
    enum { MANY = 100000 };
    for (size_t i = 0; i < MANY; i++)
        gy_handle_add(handle(i), GY_HANDLE_REQUEST);
    for (size_t i = 0; i < MANY; i++)
        cr_assert(gy_handle_lives(handle(i), GY_HANDLE_REQUEST));
    for (size_t i = 0; i < MANY; i++)
        gy_handle_remove(handle(i), GY_HANDLE_REQUEST);
    for (size_t i = 0; i < MANY; i++)
        cr_assert_not(gy_handle_lives(handle(i), GY_HANDLE_REQUEST));
}

static void *churn(void *first)
{
    for (size_t round = 0; round < 2000; round++)
        for (size_t i = 0; i < 8; i++) {
            const void *own = handle((size_t)(uintptr_t)first + i);
            gy_handle_add(own, GY_HANDLE_COMM);
            if (!gy_handle_lives(own, GY_HANDLE_COMM))
                return (void *)1;
            gy_handle_remove(own, GY_HANDLE_COMM);
        }
    return NULL;
}

Test(handle, several_threads)
{
    pthread_t threads[4];
    for (size_t t = 0; t < 4; t++)
        cr_assert_eq(pthread_create(&threads[t], NULL, churn, (void *)(uintptr_t)(t * 8)), 0);
    for (size_t t = 0; t < 4; t++) {
        void *lost;
        cr_assert_eq(pthread_join(threads[t], &lost), 0);
        cr_assert_null(lost);
    }
}
