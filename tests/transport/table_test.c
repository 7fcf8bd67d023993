/* The table: every slot of every transport is filled, names are unique and in order of preference. */
#include <criterion/criterion.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "transport/registry/registry.h"

Test(table, every_slot_is_filled)
{
    enum { FIRST = offsetof(struct gy_transport_ops, available) }; /* before it are values, from it on operations */
    void *slots[(sizeof(struct gy_transport_ops) - FIRST) / sizeof(void *)];
    for (size_t i = 0; gy_transports[i]; i++) {
        memcpy(slots, (const char *)gy_transports[i] + FIRST, sizeof(slots));
        for (size_t slot = 0; slot < GY_ARRAY_LENGTH(slots); slot++)
            cr_assert_not_null(slots[slot], "transport %zu operation %zu", i, slot);
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

/* The default of GYRE_TRANSPORT, which config.c cannot take from the table: the layer is a lower one. */
Test(table, the_default_names_all_but_self_in_order)
{
    char names[sizeof(((struct gy_config *)0)->transports)] = "";
    struct gy_config config;
    struct gy_error error = {.rank = -1};
    for (size_t i = 0; gy_transports[i]; i++)
        if (!gy_transports[i]->to_self)
            snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s", names[0] ? "," : "",
                     gy_transports[i]->name);
    unsetenv("GYRE_TRANSPORT");
    cr_assert_eq(gy_config_read(&config, &error), GYRE_SUCCESS);
    cr_assert_str_eq(config.transports, names);
}

Test(table, counters)
{
    static const size_t first = offsetof(gyre_counters, self_bytes), last = offsetof(gyre_counters, other_bytes);
    for (size_t i = 0; gy_transports[i]; i++) {
        size_t counter = gy_transports[i]->counter;
        cr_assert(counter >= first && counter <= last && (counter - first) % sizeof(uint64_t) == 0, "%s",
                  gy_transports[i]->name);
        for (size_t j = 0; j < i; j++)
            cr_assert(counter == last || counter != gy_transports[j]->counter, "%s", gy_transports[i]->name);
    }
}

Test(table, a_name_that_is_none_is_an_error_before_anybody_waits)
{
    static const char *const lists[] = {"tpc", "shm,tc", "tcp,tcpp"};
    for (size_t i = 0; i < GY_ARRAY_LENGTH(lists); i++) {
        struct gy_config config = {0};
        struct gy_error error = {.rank = -1, .quiet = true};
        snprintf(config.transports, sizeof(config.transports), "%s", lists[i]);
        cr_assert_eq(gy_transports_survey(&config, &error), GYRE_BAD_CONFIGURATION, "%s", lists[i]);
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
