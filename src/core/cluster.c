/* Descriptions of clusters as text: a table of names, where each is kept and what it may be. */
#include "cluster.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"

static const struct {
    const char *name;
    size_t offset;
    double least, most;
    bool whole;
} settings[] = {
    {"hosts", offsetof(struct gy_cluster, hosts), 1, 1e6, true},
    {"ranks_per_host", offsetof(struct gy_cluster, ranks_per_host), 1, 1024, true},
    {"bandwidth", offsetof(struct gy_cluster, bandwidth), 1, 1e13, false},
    {"latency", offsetof(struct gy_cluster, latency), 0, 100, false},
    {"burst", offsetof(struct gy_cluster, burst), 0, 1e12, false},
    {"send_overhead", offsetof(struct gy_cluster, send_overhead), 0, 1, false},
    {"receive_overhead", offsetof(struct gy_cluster, receive_overhead), 0, 1, false},
    {"copy", offsetof(struct gy_cluster, copy), 1, 1e13, false},
    {"reduce", offsetof(struct gy_cluster, reduce), 1, 1e13, false},
    {"local_latency", offsetof(struct gy_cluster, local_latency), 0, 1, false},
    {"local_copy", offsetof(struct gy_cluster, local_copy), 1, 1e13, false},
};

#define TEXT_MOST 65536

static _Thread_local char why[200]; /* ranks may be threads */

struct gy_cluster gy_cluster_default(void)
{
    return (struct gy_cluster){.hosts = 4,
                               .ranks_per_host = 1,
                               .bandwidth = 1.17e9,
                               .latency = 10e-6,
                               .send_overhead = 2e-6,
                               .receive_overhead = 2e-6,
                               .copy = 5e9,
                               .reduce = 8e9,
                               .local_latency = 0.2e-6};
}

static bool scale(const char *suffix, double *value_p)
{
    static const struct {
        char letter;
        double factor;
    } known[] = {{'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'m', 1e-3}, {'u', 1e-6}, {'n', 1e-9}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (suffix[0] == known[i].letter && suffix[1] == '\0') {
            *value_p *= known[i].factor;
            return true;
        }
    return suffix[0] == '\0';
}

bool gy_cluster_set(struct gy_cluster *cluster, const char *setting, const char **why_p)
{
    char name[32], text[64], rest;
    *why_p = why;
    if (sscanf(setting, " %31[a-z_] = %63s %c", name, text, &rest) != 2) {
        snprintf(why, sizeof(why), "\"%.80s\" is not name = value", setting);
        return false;
    }
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        if (strcmp(name, settings[i].name) != 0)
            continue;
        char *end;
        double value = gy_parse_double(text, &end);
        bool right = end != text && scale(end, &value) && value >= settings[i].least && value <= settings[i].most;
        if (right && settings[i].whole) { /* 4.35k is, whatever its thousandfold is in binary */
            double nearest = (double)(int64_t)(value + 0.5);
            right = nearest - value < 1e-9 * value && value - nearest < 1e-9 * value;
            value = nearest;
        }
        if (!right) {
            snprintf(why, sizeof(why), "%s: \"%s\" is no %snumber from %g to %g (with k, M, G, m, u or n)", name, text,
                     settings[i].whole ? "whole " : "", settings[i].least, settings[i].most);
            return false;
        }
        *(double *)(void *)((char *)cluster + settings[i].offset) = value;
        return true;
    }
    snprintf(why, sizeof(why), "a cluster has no \"%s\"; see docs/tuning.md", name);
    return false;
}

/* NULL: errno. open() of a pipe would block until a writer opens it. */
static FILE *open_text(const char *path)
{
    struct stat about;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *file = fd >= 0 && fstat(fd, &about) == 0 && !S_ISFIFO(about.st_mode) ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && !file) {
        close(fd);
        errno = ESPIPE;
    }
    return file;
}

/* The whole text of a description, at most TEXT_MOST bytes: a device would give bytes without end. NULL: *why_p. */
static char *read_text(const char *path, const char **why_p)
{
    FILE *file = open_text(path);
    char *text = malloc(TEXT_MOST + 2);
    size_t got = file && text ? fread(text, 1, TEXT_MOST + 1, file) : 0;
    bool failed = !file || !text || ferror(file);
    *why_p = NULL;
    if (failed) {
        snprintf(why, sizeof(why), "it cannot be read: %s", strerror(errno));
        *why_p = why;
    } else if (got > TEXT_MOST) {
        *why_p = "it is longer than 64 KiB, which no description is";
    } else if (memchr(text, 0, got)) {
        *why_p = "it is no text";
    }
    if (file)
        fclose(file);
    if (*why_p) {
        free(text);
        return NULL;
    }
    text[got] = '\0';
    return text;
}

bool gy_cluster_read(const char *path, struct gy_cluster *cluster, const char **why_p)
{
    char *text = read_text(path, why_p), *rest = text;
    bool right = text != NULL;
    while (right && rest) {
        char *line = strsep(&rest, "\n");
        line[strcspn(line, "#")] = '\0';
        if (line[strspn(line, " \t\r")] != '\0')
            right = gy_cluster_set(cluster, line, why_p);
    }
    free(text);
    return right;
}
