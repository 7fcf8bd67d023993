/* The first rank of the new membership writes each change: the lines so far and one more, into a new file that
 * replaces the old one. So the file is complete when any rank dies. A new line replaces the earlier lines whose step
 * is not below its own: the state of those changes was lost with the ranks that had it. Reading gives increasing
 * steps. */
#include "train/membership.h"

#include "base/aside.h"
#include "base/input.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES_MOST 1000000

/* Reads what the file holds so far; true also where there is no file. */
static bool copy_lines(const char *path, FILE *to)
{
    char line[128];
    FILE *from = fopen(path, "re");
    while (from && fgets(line, sizeof(line), from))
        fputs(line, to);
    bool good = from ? !ferror(from) : errno == ENOENT;
    if (from)
        fclose(from);
    return good;
}

bool membership_write(const char *path, const struct gyre_nn_membership *now, bool first)
{
    struct gy_aside aside;
    if (!gy_aside_open(&aside, path))
        return false;
    bool good = first || !aside.fresh || copy_lines(path, aside.stream);
    fprintf(aside.stream, "%" PRIu64 " %d\n", now->step, now->ranks);
    return gy_aside_close(&aside, good) && good;
}

static bool read_line(const char *line, struct gyre_nn_membership *out)
{
    char *end;
    errno = 0;
    uint64_t step = strtoull(line, &end, 10);
    if (*line < '0' || *line > '9' || *end != ' ')
        return false;
    long ranks = strtol(end + 1, &end, 10);
    *out = (struct gyre_nn_membership){.step = step, .ranks = (int)ranks};
    return errno == 0 && (*end == '\n' || *end == 0) && ranks >= 1 && ranks <= INT_MAX;
}

const char *membership_read(const char *path, struct gyre_nn_membership **list_p, size_t *count_p)
{
    static char problem[400];
    struct gyre_nn_membership *list = NULL, now;
    char line[128];
    size_t count = 0, number = 0;
    int fd = gy_input_open(path, 0);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    *problem = 0;
    if (!file)
        snprintf(problem, sizeof(problem), "cannot open %s: %s", path, strerror(errno));
    while (file && !*problem && fgets(line, sizeof(line), file)) {
        number++;
        if (!read_line(line, &now) || number > LINES_MOST) {
            snprintf(problem, sizeof(problem), "%s, line %zu: not \"STEP RANKS\"", path, number);
            break;
        }
        while (count > 0 && list[count - 1].step >= now.step)
            count--;
        struct gyre_nn_membership *more = realloc(list, (count + 1) * sizeof(*list));
        if (!more) {
            snprintf(problem, sizeof(problem), "no memory for %s", path);
            break;
        }
        list = more;
        list[count++] = now;
    }
    if (file)
        fclose(file);
    if (!*problem && count == 0)
        snprintf(problem, sizeof(problem), "%s holds no membership", path);
    if (*problem) {
        free(list);
        return problem;
    }
    *list_p = list;
    *count_p = count;
    return NULL;
}
