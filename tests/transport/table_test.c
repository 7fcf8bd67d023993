/* The table: every slot of every transport is filled, names are unique and in order of preference. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "transport/registry/registry.h"

Test(table, every_slot_is_filled)
{
    for (size_t i = 0; gy_transports[i]; i++) {
        void *slots[sizeof(struct gy_transport_ops) / sizeof(void *)];
        memcpy(slots, gy_transports[i], sizeof(slots));
        for (size_t slot = 0; slot < GY_ARRAY_LENGTH(slots); slot++)
            if (slot !=
                offsetof(struct gy_transport_ops, posts_quickly) / sizeof(void *)) /* the one that may be false */
                cr_assert_not_null(slots[slot], "transport %zu slot %zu", i, slot);
    }
}

Test(table, order_of_preference)
{
    static const char *const names[] = {"self", "shm", "rdma", "tcp"};
    size_t count = 0;
    for (; gy_transports[count]; count++)
        cr_assert_str_eq(gy_transports[count]->name, names[count]);
    cr_assert_eq(count, GY_ARRAY_LENGTH(names));
}

Test(table, a_name_that_is_none_is_an_error_before_anybody_waits)
{
    static const char *const lists[] = {"tpc", "shm,tc", "tcp,tcpp"};
    for (size_t i = 0; i < GY_ARRAY_LENGTH(lists); i++) {
        struct gy_config config = {0};
        struct gy_error error = {.rank = -1, .quiet = true};
        snprintf(config.transports, sizeof(config.transports), "%s", lists[i]);
        cr_assert_eq(gy_transports_reach(&config, &error), GYRE_BAD_CONFIGURATION, "%s", lists[i]);
        cr_assert(strstr(error.text, "there is no transport tc") || strstr(error.text, "there is no transport tpc"),
                  "%s", error.text);
    }
}

Test(table, what_is_not_available_says_why)
{
    for (size_t i = 0; gy_transports[i]; i++) {
        char why[160] = "";
        bool there = gy_transports[i]->available(why, sizeof(why));
        cr_assert(there || gy_transports[i] == &gy_transport_rdma, "%s", why);
        cr_assert(there || why[0], "%s says nothing", gy_transports[i]->name);
    }
}
