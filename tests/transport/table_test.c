/* The table: every slot of every transport is filled, names are unique and in order of preference. */
#include <criterion/criterion.h>
#include <string.h>

#include "transport/transport.h"

Test(table, every_slot_is_filled)
{
    for (size_t i = 0; gy_transports[i]; i++) {
        void *slots[sizeof(struct gy_transport_ops) / sizeof(void *)];
        memcpy(slots, gy_transports[i], sizeof(slots));
        for (size_t slot = 0; slot < GY_ARRAY_LENGTH(slots); slot++)
            cr_assert_not_null(slots[slot], "transport %zu slot %zu", i, slot);
    }
}

Test(table, order_of_preference)
{
    static const char *const names[] = {"self", "shm", "tcp"};
    size_t count = 0;
    for (; gy_transports[count]; count++)
        cr_assert_str_eq(gy_transports[count]->name, names[count]);
    cr_assert_eq(count, 3);
}

Test(table, available_says_yes_here)
{
    char why[64];
    for (size_t i = 0; gy_transports[i]; i++)
        cr_assert(gy_transports[i]->available(why, sizeof(why)), "%s", why);
}
