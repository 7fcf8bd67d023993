/* The parsers, the defaults, every kind of bad value, unknown names, and what the description shows. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/config.h"

extern char **environ;

static void clean_environment(void)
{
    for (size_t i = 0; environ[i];) {
        char name[256];
        size_t length = strcspn(environ[i], "=");

        if (strncmp(environ[i], "GYRE_", 5) != 0 || length >= sizeof(name)) {
            i++;
            continue;
        }
        memcpy(name, environ[i], length);
        name[length] = '\0';
        unsetenv(name);
    }
}

TestSuite(config, .init = clean_environment);

Test(config, bytes)
{
    static const struct {
        const char *text;
        size_t bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"64k", 65536},
                {"1K", 1024},
                {"3m", 3 << 20},
                {"16G", (size_t)16 << 30},
                {"2t", (size_t)2 << 40},
                {"007", 7},
                {"18446744073709551615", SIZE_MAX}};
    static const char *const bad[] = {"",
                                      "k",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1kb",
                                      "1.5k",
                                      "0x10",
                                      "1q",
                                      "18446744073709551616",
                                      "99999999999999999999999",
                                      "18014398509481984k",
                                      "16777216t",
                                      "1\x8b",
                                      "1,"};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(good); i++) {
        size_t bytes = 1;

        cr_assert(gy_parse_bytes(good[i].text, &bytes), "%s", good[i].text);
        cr_assert_eq(bytes, good[i].bytes, "%s", good[i].text);
    }
    for (size_t i = 0; i < GY_ARRAY_LENGTH(bad); i++) {
        size_t bytes = 42;

        cr_assert_not(gy_parse_bytes(bad[i], &bytes), "'%s'", bad[i]);
        cr_assert_eq(bytes, 42);
    }
}

Test(config, seconds)
{
    static const struct {
        const char *text;
        int64_t nanoseconds;
    } good[] = {{"0", 0},
                {"30", 30 * GY_SECOND},
                {"0.5", GY_SECOND / 2},
                {"0.000000001", 1},
                {"1.5s", 3 * GY_SECOND / 2},
                {"200ms", 200 * GY_MILLISECOND},
                {"0.5us", 500},
                {"10m", 600 * GY_SECOND},
                {"1.25h", 4500 * GY_SECOND},
                {"0.999999999h", 3599999996400},
                {"1000000000", INT64_C(1000000000) * GY_SECOND}};
    static const char *const bad[] = {"",
                                      ".",
                                      ".5",
                                      "5.",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1x",
                                      "1e3",
                                      "inf",
                                      "1.2.3",
                                      "nan",
                                      "1mm",
                                      "1000000001",
                                      "0.0000000001",
                                      "1000000000.1",
                                      "9223372036854775808",
                                      "99999999999999999999",
                                      "2562048h"};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(good); i++) {
        int64_t nanoseconds = -1;

        cr_assert(gy_parse_seconds(good[i].text, &nanoseconds), "%s", good[i].text);
        cr_assert_eq(nanoseconds, good[i].nanoseconds, "%s", good[i].text);
    }
    for (size_t i = 0; i < GY_ARRAY_LENGTH(bad); i++) {
        int64_t nanoseconds = 42;

        cr_assert_not(gy_parse_seconds(bad[i], &nanoseconds), "'%s'", bad[i]);
        cr_assert_eq(nanoseconds, 42);
    }
}

static struct gy_config read_good(void)
{
    struct gy_config config;
    struct gy_error error = {0};

    gy_error_clear(&error);
    cr_assert_eq(gy_config_read_strict(&config, &error), GYRE_SUCCESS, "%s", error.text);
    return config;
}

Test(config, defaults)
{
    struct gy_config config = read_good();

    cr_assert_eq(config.log_level, 1);
    cr_assert_eq(config.timeout_ns, 1800 * GY_SECOND);
    cr_assert_eq(config.stall_timeout_ns, 30 * GY_SECOND);
    cr_assert_eq(config.peer_timeout_ns, 10 * GY_SECOND);
    cr_assert_eq(config.meet_timeout_ns, 300 * GY_SECOND);
    cr_assert_str_eq(config.transports, "shm,rdma,tcp");
    cr_assert_str_empty(config.algorithm);
    cr_assert_str_empty(config.host_id);
    cr_assert_str_empty(config.interface);
    cr_assert_str_empty(config.address);
    cr_assert_not(config.insecure);
    cr_assert_eq(config.shm_reserve, (size_t)16 << 30);
    cr_assert_eq(config.shm_slot, 256 << 10);
    cr_assert_eq(config.tcp_tile, 256 << 10);
    cr_assert_eq(config.spin_ns, -1);
    cr_assert_not(config.show_choice);
}

Test(config, values_reach_their_fields)
{
    struct gy_config config;

    setenv("GYRE_LOG", "debug", 1);
    setenv("GYRE_TIMEOUT", "2h", 1);
    setenv("GYRE_STALL_TIMEOUT", "", 1); /* empty is not set */
    setenv("GYRE_TRANSPORT", "tcp", 1);
    setenv("GYRE_ALGORITHM", "all_reduce:ring,broadcast:binary_tree", 1);
    setenv("GYRE_HIERARCHY", "2,2,3", 1);
    setenv("GYRE_HOST_ID", "left", 1);
    setenv("GYRE_SECRET", "0123456789abcdef0123456789abcdef", 1);
    setenv("GYRE_INSECURE", "1", 1);
    setenv("GYRE_SHM_SLOT", "64k", 1);
    setenv("GYRE_SPIN", "25", 1);
    config = read_good();
    cr_assert_eq(config.log_level, 3);
    cr_assert_eq(config.timeout_ns, 7200 * GY_SECOND);
    cr_assert_eq(config.stall_timeout_ns, 30 * GY_SECOND);
    cr_assert_str_eq(config.transports, "tcp");
    cr_assert_str_eq(config.algorithm, "all_reduce:ring,broadcast:binary_tree");
    cr_assert_str_eq(config.hierarchy, "2,2,3");
    cr_assert_str_eq(config.host_id, "left");
    cr_assert(config.insecure);
    cr_assert_eq(config.shm_slot, 65536);
    cr_assert_eq(config.spin_ns, 25000);
}

Test(config, bad_values_are_named)
{
    static const struct {
        const char *name, *value;
    } cases[] = {{"GYRE_LOG", "loud"},
                 {"GYRE_ORDER", "tree"},
                 {"GYRE_ORDER", "canonical "},
                 {"GYRE_TIMEOUT", "soon"},
                 {"GYRE_TIMEOUT", "0"},
                 {"GYRE_STALL_TIMEOUT", "-1"},
                 {"GYRE_PEER_TIMEOUT", "1d"},
                 {"GYRE_MEET_TIMEOUT", "0.0001ms"},
                 {"GYRE_TRANSPORT", "shm,,tcp"},
                 {"GYRE_TRANSPORT", "shm,"},
                 {"GYRE_TRANSPORT", "SHM"},
                 {"GYRE_ALGORITHM", "ring"},
                 {"GYRE_ALGORITHM", "all:ring"},
                 {"GYRE_ALGORITHM", "all_reduce:"},
                 {"GYRE_ALGORITHM", "all_reduce:ring,"},
                 {"GYRE_HIERARCHY", "hosts"},
                 {"GYRE_HIERARCHY", "2,0"},
                 {"GYRE_HIERARCHY", "2,,3"},
                 {"GYRE_HIERARCHY", "2,3,"},
                 {"GYRE_HIERARCHY", "12345"},
                 {"GYRE_INSECURE", "yes"},
                 {"GYRE_SHM_RESERVE", "16GB"},
                 {"GYRE_SHM_SLOT", "1"},
                 {"GYRE_TCP_TILE", "1t"},
                 {"GYRE_SPIN", "-2"},
                 {"GYRE_SPIN", "1k"},
                 {"GYRE_SHOW_CHOICE", "2"}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(cases); i++) {
        struct gy_config config = {.log_level = 77};
        struct gy_error error = {0};

        gy_error_clear(&error);
        setenv(cases[i].name, cases[i].value, 1);
        cr_assert_eq(gy_config_read(&config, &error), GYRE_BAD_CONFIGURATION, "%s=%s", cases[i].name, cases[i].value);
        cr_assert_not_null(strstr(error.text, cases[i].name), "%s", error.text);
        cr_assert_not_null(strstr(error.text, cases[i].value), "%s", error.text);
        cr_assert_not_null(strstr(error.text, "must be"), "%s", error.text);
        cr_assert_eq(config.log_level, 77, "nothing is written on failure");
        unsetenv(cases[i].name);
    }
}

Test(config, text_too_long_is_refused)
{
    char longer[300];
    struct gy_config config;
    struct gy_error error = {0};

    memset(longer, 'a', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    gy_error_clear(&error);
    setenv("GYRE_HOST_ID", longer, 1);
    cr_assert_eq(gy_config_read(&config, &error), GYRE_BAD_CONFIGURATION);
    longer[127] = '\0';
    setenv("GYRE_HOST_ID", longer, 1);
    config = read_good();
    cr_assert_str_eq(config.host_id, longer);
}

Test(config, a_bad_secret_is_not_shown)
{
    struct gy_config config;
    struct gy_error error = {0};

    gy_error_clear(&error);
    setenv("GYRE_SECRET", "hush", 1);
    cr_assert_eq(gy_config_read(&config, &error), GYRE_BAD_CONFIGURATION);
    cr_assert_null(strstr(error.text, "hush"));
    cr_assert_not_null(strstr(error.text, "GYRE_SECRET"));
}

Test(config, unknown_names)
{
    static const struct {
        const char *name, *nearest;
    } cases[] = {{"GYRE_TIMOUT", "GYRE_TIMEOUT?"},
                 {"GYRE_TRANSPORTS", "GYRE_TRANSPORT?"},
                 {"GYRE_SHMSLOT", "GYRE_SHM_SLOT?"},
                 {"GYRE_RANK", "GYRE_"},
                 {"GYRE_", "GYRE_LOG?"}};

    setenv("GYRE_TEST_ANYTHING", "1", 1);
    setenv("GYREX", "1", 1);
    for (size_t i = 0; i < GY_ARRAY_LENGTH(cases); i++) {
        struct gy_config config;
        struct gy_error error = {0};

        read_good();
        setenv(cases[i].name, "1", 1);
        gy_error_clear(&error);
        cr_assert_eq(gy_config_read(&config, &error), GYRE_SUCCESS, "the library only warns");
        cr_assert_eq(gy_config_read_strict(&config, &error), GYRE_BAD_CONFIGURATION);
        cr_assert_not_null(strstr(error.text, cases[i].name), "%s", error.text);
        cr_assert_not_null(strstr(error.text, cases[i].nearest), "%s", error.text);
        unsetenv(cases[i].name);
    }
}

Test(config, an_enormous_unknown_name)
{
    static char name[100000];
    struct gy_config config;
    struct gy_error error = {0};

    memset(name, 'A', sizeof(name) - 1);
    memcpy(name, "GYRE_", 5);
    setenv(name, "1", 1);
    gy_error_clear(&error);
    cr_assert_eq(gy_config_read_strict(&config, &error), GYRE_BAD_CONFIGURATION);
    cr_assert_not_null(strstr(error.text, "did you mean GYRE_"));
}

struct lines {
    int count;
    char text[8192];
};

static void collect(void *user, const char *line)
{
    struct lines *lines = user;
    size_t used = strlen(lines->text);

    lines->count++;
    snprintf(lines->text + used, sizeof(lines->text) - used, "%s\n", line);
}

Test(config, description)
{
    static struct lines lines;

    setenv("GYRE_SECRET", "a secret that must stay secret", 1);
    gy_config_describe(collect, &lines);
    cr_assert_gt(lines.count, 20);
    cr_assert_not_null(strstr(lines.text, "GYRE_TIMEOUT        1800      s"));
    cr_assert_not_null(strstr(lines.text, "GYRE_SHM_RESERVE    16G       bytes"));
    cr_assert_null(strstr(lines.text, "must stay secret"));
    /* The longest one, whole. */
    cr_assert_not_null(strstr(lines.text, "cache, to one last-level cache; sizes between commas"));
    cr_assert_not_null(strstr(lines.text, "consecutive ranks; off; the same on every rank\n"));
}
