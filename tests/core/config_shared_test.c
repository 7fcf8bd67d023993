#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/config.h"

static struct gy_config_difference difference;

static void expect(const char *mine, const char *theirs, const char *name, const char *own, const char *other)
{
    cr_assert(gy_config_differs(mine, theirs, &difference), "%s", name);
    cr_assert_str_eq(difference.name, name);
    cr_assert_str_eq(difference.mine, own);
    cr_assert_str_eq(difference.theirs, other);
}

Test(config_shared, the_first_difference_is_found)
{
    cr_assert_not(gy_config_differs("", "", &difference));
    cr_assert_not(gy_config_differs("A=1\nB=\n", "A=1\nB=\n", &difference));
    cr_assert_not(gy_config_differs("A=1\nB=\n", "B=\nA=1\n", &difference));
    expect("A=1\nB=2\n", "A=1\nB=3\n", "B", "2", "3");
    expect("A=1\n", "A=\n", "A", "1", "(empty)");
    expect("A=1\n", "A=11\n", "A", "1", "11");
    expect("A=1\nB=2\n", "A=1\n", "B", "2", "no such setting");
    expect("A=1\n", "A=1\nC=3\n", "C", "no such setting", "3");
}

Test(config_shared, hostile_text_is_bounded_and_printable)
{
    char large[2000];

    memset(large, 'x', sizeof(large));
    large[sizeof(large) - 1] = '\0';
    cr_assert(gy_config_differs("A=1\n", large, &difference));
    large[1] = '=';
    cr_assert(gy_config_differs("x=1\n", large, &difference));
    cr_assert_eq(strlen(difference.theirs), sizeof(difference.theirs) - 1);
    expect("A=1\n", "A=\x1b[2J\n", "A", "1", "?[2J");
    cr_assert(gy_config_differs("A=1\n", "\n\n==\n=\nA", &difference));
    expect("the build of gyre=rules 1\nA=1\n", "the build of gyre=rules 2\nA=1\n", "the build of gyre", "rules 1",
           "rules 2");
    cr_assert_not(gy_config_differs("A=\n", "A", &difference)); /* cut off behind the name */
}

Test(config_shared, has_the_settings_that_matter_and_no_secret)
{
    char text[GY_CONFIG_SHARED], same[GY_CONFIG_SHARED];
    struct gy_config config;
    struct gy_error error = {0};

    gy_error_clear(&error);
    setenv("GYRE_SECRET", "0123456789abcdef0123456789abcdef", 1);
    setenv("GYRE_TCP_TILE", "16k", 1);
    setenv("GYRE_ALGORITHM", "all_reduce:ring", 1);
    cr_assert_eq(gy_config_read(&config, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_config_shared(&config, text), strlen(text));
    cr_assert_eq(strspn(strstr(text, "the build of gyre=rules ") + 24, "0123456789abcdef"), 8);
    cr_assert(strstr(text, "GYRE_TCP_TILE=16384\n"));
    cr_assert(strstr(text, "GYRE_ALGORITHM=all_reduce:ring\n"));
    cr_assert(strstr(text, "GYRE_SHM_SLOT=262144\n"));
    cr_assert(strstr(text, "GYRE_TRANSPORT=shm,rdma,tcp\n"));
    cr_assert_not(strstr(text, "0123456789"));
    setenv("GYRE_TCP_TILE", "16384", 1); /* spelt another way, and a setting that each rank may choose */
    setenv("GYRE_SPIN", "7", 1);
    cr_assert_eq(gy_config_read(&config, &error), GYRE_SUCCESS);
    gy_config_shared(&config, same);
    cr_assert_str_eq(text, same);
}

Test(config_shared, the_longest_settings_fit)
{
    char text[GY_CONFIG_SHARED], longest[256];
    struct gy_config config;
    struct gy_error error = {0};

    gy_error_clear(&error);
    snprintf(longest, sizeof(longest), "all_reduce:");
    memset(longest + 11, 'x', sizeof(longest) - 12);
    longest[sizeof(longest) - 1] = '\0';
    setenv("GYRE_ALGORITHM", longest, 1);
    longest[63] = '\0';
    setenv("GYRE_TRANSPORT", "a", 1);
    char sizes[128] = "1"; /* 127 characters */
    while (strlen(sizes) + 2 < sizeof(sizes))
        strcat(sizes, ",1");
    setenv("GYRE_HIERARCHY", sizes, 1);
    cr_assert_eq(gy_config_read(&config, &error), GYRE_SUCCESS, "%s", error.text);
    memset(config.transports, 'x', sizeof(config.transports) - 1);
    cr_assert_lt(gy_config_shared(&config, text) + 100, GY_CONFIG_SHARED); /* room for settings to come */
}
