/* Lists of hosts, as --hosts and --hostfile have them, and where the ranks go. */
#include <criterion/criterion.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run/host_list.h"

static char why[512];

/* Returns "a:2 b:1" for a list, in memory of this function's. */
static const char *show(const struct gy_host_list *list, bool ranks)
{
    static char text[512];
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < list->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s:%d", i ? " " : "", list->entries[i].name,
                                 ranks ? list->entries[i].ranks : list->entries[i].slots);
    return text;
}

static bool read_text(struct gy_host_list *list, const char *text)
{
    char path[] = "/tmp/gyre-hosts-XXXXXX";
    int fd = mkstemp(path);
    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    bool good = gy_host_list_read(list, path, why, sizeof why);
    unlink(path);
    return good;
}

Test(list, good_ones)
{
    static const struct {
        const char *text, *list;
    } rows[] = {
        {"a", "a:1"},
        {"a:2,b:3", "a:2 b:3"},
        {"me@node-1.example:2,a,me@node-1.example", "me@node-1.example:3 a:1"},
        {"10.0.0.1:4,fd77::1,[fd77::2]:3,[::1]", "10.0.0.1:4 fd77::1:1 fd77::2:3 ::1:1"},
        {"a:1024", "a:1024"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gy_host_list list = {0};
        cr_assert(gy_host_list_parse(&list, rows[i].text, why, sizeof why), "%s: %s", rows[i].text, why);
        cr_assert_str_eq(show(&list, false), rows[i].list);
        gy_host_list_free(&list);
    }
}

Test(list, bad_ones)
{
    static const char *const rows[] = {
        "",         ",",   "a,",   "a:",  "a:0",   "a:x", "a:-1", "a:1025", "-oProxyCommand=x",
        "a b:2",    "a;b", "$(x)", "me@", "me@-x", "[a",  "[a]x", "[a]:",   "a:99999999999999999999",
        "a:1024,a", "[]",  ":2"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gy_host_list list = {0};
        *why = '\0';
        cr_assert_not(gy_host_list_parse(&list, rows[i], why, sizeof why), "'%s' is %s", rows[i], show(&list, false));
        cr_assert(*why, "'%s' without a reason", rows[i]);
        gy_host_list_free(&list);
    }
}

Test(list, files)
{
    struct gy_host_list list = {0};
    cr_assert(read_text(&list, "# nodes\n\n a slots=2 # two\nb:3\r\n\tc\n"), "%s", why);
    cr_assert_str_eq(show(&list, false), "a:2 b:3 c:1");
    gy_host_list_free(&list);
    static const char *const rows[] = {"",      "# none\n",   "a slots=x\n", "a slots=2 slots=3\n", "a:2 slots=3\n",
                                       "a 2\n", "a slots=\n", "a,b\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        cr_assert_not(read_text(&list, rows[i]), "'%s' is %s", rows[i], show(&list, false));
        gy_host_list_free(&list);
    }
    cr_assert_not(read_text(&list, "a\nb slots=y\n"));
    cr_assert(strstr(why, "line 2: 'slots=y'"), "%s", why);
    gy_host_list_free(&list);
    cr_assert_not(gy_host_list_read(&list, "/nowhere/at/all", why, sizeof why));
    cr_assert(strstr(why, "No such file"), "%s", why);
}

Test(list, places_ranks_host_by_host)
{
    static const struct {
        int ranks, placed;
        const char *list;
    } rows[] = {{0, 6, "a:2 b:3 c:1"}, {6, 6, "a:2 b:3 c:1"}, {4, 4, "a:2 b:2"},
                {2, 2, "a:2"},         {1, 1, "a:1"},         {7, 0, NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gy_host_list list = {0};
        cr_assert(gy_host_list_parse(&list, "a:2,b:3,c", why, sizeof why));
        cr_assert_eq(gy_host_list_place(&list, rows[i].ranks), rows[i].placed);
        if (rows[i].list)
            cr_assert_str_eq(show(&list, true), rows[i].list);
        gy_host_list_free(&list);
    }
}
