/* Which transport joins two ranks: the first that reaches, unless frames between hosts would be unprotected. */
#include <criterion/criterion.h>

#include "collectives/comm/transport_select.h"

enum { RANKS = 4 }; /* two on each of two hosts; this one is rank 0 */

static bool reaches_all(void *instance, int peer)
{
    (void)instance, (void)peer;
    return true;
}

static bool reaches_odd(void *instance, int peer)
{
    (void)instance;
    return peer % 2 == 1;
}

static const struct gy_transport_ops bare = {.name = "bare", .reaches = reaches_all},
                                     odd = {.name = "odd", .reaches = reaches_odd, .seals = true},
                                     sealed = {.name = "sealed", .reaches = reaches_all, .seals = true};
static struct gy_member members[RANKS] = {{.host = 0}, {.host = 0}, {.host = 1}, {.host = 1}};
static struct gy_world world = {.rank = 0, .size = RANKS, .members = members};
static struct gy_peer peers[RANKS];

static void expect(const struct gy_transport_ops *first, enum gy_integrity integrity, const char *const names[RANKS])
{
    struct gy_context ctx = {
        .world = &world, .peers = peers, .ops = {first, &sealed}, .transports = 2, .config.integrity = (int)integrity};
    struct gy_error error = {.rank = -1};
    cr_assert_eq(gy_transports_choose(&ctx, &error), GYRE_SUCCESS);
    for (int p = 0; p < RANKS; p++)
        cr_expect_str_eq(ctx.ops[peers[p].transport]->name, names[p], "rank %d, integrity %d", p, (int)integrity);
}

Test(select, the_first_that_reaches)
{
    expect(&odd, GY_INTEGRITY_OFF, (const char *const[]){"sealed", "odd", "sealed", "odd"});
    expect(&odd, GY_INTEGRITY_ENCRYPT, (const char *const[]){"sealed", "odd", "sealed", "odd"});
}

Test(select, without_seals_it_does_not_leave_the_host_where_others_are_to_be_kept_out)
{
    static const char *const everywhere[] = {"bare", "bare", "bare", "bare"}, *const inside[] = {"bare", "bare",
                                                                                                 "sealed", "sealed"};
    expect(&bare, GY_INTEGRITY_OFF, everywhere);
    expect(&bare, GY_INTEGRITY_CRC, everywhere);
    expect(&bare, GY_INTEGRITY_MAC, inside);
    expect(&bare, GY_INTEGRITY_ENCRYPT, inside);
}

Test(select, none_in_common_is_an_error_that_both_find_alike)
{
    struct gy_context ctx = {
        .world = &world, .peers = peers, .ops = {&bare}, .transports = 1, .config.integrity = GY_INTEGRITY_MAC};
    struct gy_error error = {.rank = -1, .quiet = true};
    cr_assert_eq(gy_transports_choose(&ctx, &error), GYRE_PEER_UNREACHABLE);
    cr_assert_eq(error.rank, 2);
}
