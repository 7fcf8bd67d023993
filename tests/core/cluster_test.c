/* A described cluster as text: what is understood, and what is refused with a reason. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/cluster.h"
#include "support/comma.h"

static bool read_text(const char *text, struct gy_cluster *cluster, const char **why)
{
    char path[] = "/tmp/gyre-cluster-XXXXXX";
    int fd = mkstemp(path);

    cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    *cluster = gy_cluster_default();
    bool right = gy_cluster_read(path, cluster, why);
    unlink(path);
    return right;
}

Test(cluster, a_file_is_read)
{
    struct gy_cluster cluster;
    const char *why = "";

    cr_assert(read_text("# a cluster\n\nhosts = 4.35k\n bandwidth = 1.25G # of one link\r\nlatency=7.5u\nburst = 64k",
                        &cluster, &why),
              "%s", why);
    cr_assert_eq(cluster.hosts, 4350);
    cr_assert_eq(cluster.bandwidth, 1.25e9);
    cr_assert_float_eq(cluster.latency, 7.5e-6, 1e-12);
    cr_assert_eq(cluster.burst, 64e3);
}

Test(cluster, what_is_wrong_is_said)
{
    static const struct {
        const char *text, *why;
    } bad[] = {{"hosts", "name = value"},          {"hosts = four", "no whole number"},
               {"hosts = 0", "no whole number"},   {"hosts = 4 or 5", "is not"},
               {"hosts = 1e7", "no whole number"}, {"colour = 3", "has no \"colour\""},
               {"latency = 1x", "no number"},      {"latency = nan", "no number"},
               {"hosts = 2.5", "no whole number"}, {"ranks_per_host = 1500m", "no whole number"}};

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct gy_cluster cluster;
        const char *why = "";

        cr_assert_not(read_text(bad[i].text, &cluster, &why), "%s", bad[i].text);
        cr_assert(strstr(why, bad[i].why), "%s: %s", bad[i].text, why);
    }
}

/* The end of a comment is no line of its own. */
Test(cluster, a_line_may_be_long)
{
    struct gy_cluster cluster;
    char text[1000];
    const char *why = "";
    int length = snprintf(text, sizeof(text), "hosts = 8 # ");

    memset(text + length, ' ', sizeof(text) - (size_t)length);
    snprintf(text + 600, sizeof(text) - 600, "hosts = 9\nlatency = 3u\n");
    cr_assert(read_text(text, &cluster, &why), "%s", why);
    cr_assert_eq(cluster.hosts, 8);
    cr_assert_float_eq(cluster.latency, 3e-6, 1e-12);
}

Test(cluster, what_cannot_be_read_is_no_cluster)
{
    struct gy_cluster cluster = gy_cluster_default();
    const char *why = "";

    cr_assert_not(gy_cluster_read("/nonexistent/cluster", &cluster, &why));
    cr_assert(strstr(why, "No such file"), "%s", why);
    cr_assert_not(gy_cluster_read("/", &cluster, &why), "a folder");
    cr_assert(strstr(why, "Is a directory"), "%s", why);
}

/* The program's locale is no business of the file's. */
Test(cluster, numbers_have_points)
{
    struct gy_cluster cluster;
    const char *why = "";

    cr_assert(comma_begin());
    cr_assert(read_text("bandwidth = 1.25G\n", &cluster, &why), "%s", why);
    cr_assert_eq(cluster.bandwidth, 1.25e9);
}
