/* Two ranks' shared settings, compared line by line: texts of NAME=VALUE lines, one of them another rank's.
 *
 * A name that only one of them has is a difference too: the other rank is of a build that does not know it. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#define UNKNOWN "no such setting"

struct line {
    const char *name, *value;
    size_t name_bytes, value_bytes;
};

/* Takes the line at *at_p apart and moves on; false at the end. */
static bool next_line(const char **at_p, struct line *line_p)
{
    const char *at = *at_p;
    size_t bytes = strcspn(at, "\n");

    if (!*at)
        return false;
    line_p->name = at;
    line_p->name_bytes = gy_min_size(strcspn(at, "="), bytes);
    line_p->value = at + gy_min_size(line_p->name_bytes + 1, bytes);
    line_p->value_bytes = bytes - (size_t)(line_p->value - at);
    *at_p = at + bytes + (at[bytes] == '\n');
    return true;
}

static bool find_line(const char *text, const struct line *like, struct line *line_p)
{
    while (next_line(&text, line_p)) {
        if (line_p->name_bytes == like->name_bytes && memcmp(line_p->name, like->name, like->name_bytes) == 0)
            return true;
    }
    return false;
}

static void copy(const char *text, size_t bytes, char *text_p, size_t room)
{
    bytes = gy_min_size(bytes, room - 1);
    for (size_t i = 0; i < bytes; i++)
        text_p[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
    text_p[bytes] = '\0';
}

static void copy_value(const struct line *line, char *text_p, size_t room)
{
    if (line->value_bytes)
        copy(line->value, line->value_bytes, text_p, room);
    else
        snprintf(text_p, room, "(empty)");
}

bool gy_config_differs(const char *mine, const char *theirs, struct gy_config_difference *difference_p)
{
    struct line own = {0}, other = {0};
    const char *at = mine;

    while (next_line(&at, &own)) {
        bool known = find_line(theirs, &own, &other);

        if (known && own.value_bytes == other.value_bytes && memcmp(own.value, other.value, own.value_bytes) == 0)
            continue;
        copy(own.name, own.name_bytes, difference_p->name, sizeof(difference_p->name));
        copy_value(&own, difference_p->mine, sizeof(difference_p->mine));
        if (known)
            copy_value(&other, difference_p->theirs, sizeof(difference_p->theirs));
        else
            snprintf(difference_p->theirs, sizeof(difference_p->theirs), UNKNOWN);
        return true;
    }
    at = theirs;
    while (next_line(&at, &other)) {
        if (find_line(mine, &other, &own))
            continue;
        copy(other.name, other.name_bytes, difference_p->name, sizeof(difference_p->name));
        snprintf(difference_p->mine, sizeof(difference_p->mine), UNKNOWN);
        copy_value(&other, difference_p->theirs, sizeof(difference_p->theirs));
        return true;
    }
    return false;
}
