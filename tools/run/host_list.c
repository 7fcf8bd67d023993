/* A name goes to ssh as an argument, so it has no character but those of host names, addresses and user names, and
 * does not begin with a hyphen, which would make it an option. */
#include "run/host_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/launch.h"

static bool valid_name(const char *name, size_t length)
{
    const char *at = memchr(name, '@', length);
    const char *host = at ? at + 1 : name;
    if (length == 0 || length >= GY_HOST_NAME_BYTES || *name == '-' || *host == '-' || host == name + length)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("._-@:%+", name[i]))
            return false;
    return true;
}

static bool parse_slots(const char *text, size_t length, int *slots_p)
{
    long value = 0;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]) || value > GY_LAUNCH_RANKS_MOST)
            return false;
        value = 10 * value + (text[i] - '0');
    }
    *slots_p = (int)value;
    return value >= 1 && value <= GY_LAUNCH_RANKS_MOST;
}

static struct gy_host_entry *find_or_add(struct gy_host_list *list, const char *name, size_t length)
{
    for (int i = 0; i < list->count; i++)
        if (strlen(list->entries[i].name) == length && memcmp(list->entries[i].name, name, length) == 0)
            return &list->entries[i];
    if (!list->entries)
        list->entries = calloc(GY_HOST_LIST_MOST, sizeof *list->entries);
    if (!list->entries || list->count == GY_HOST_LIST_MOST)
        return NULL;
    struct gy_host_entry *entry = &list->entries[list->count++];
    memcpy(entry->name, name, length);
    return entry;
}

static bool add(struct gy_host_list *list, const char *name, size_t length, int slots, char *why, size_t bytes)
{
    struct gy_host_entry *entry = find_or_add(list, name, length);
    if (!entry || entry->slots + slots > GY_LAUNCH_RANKS_MOST) {
        snprintf(why, bytes, "there are more than %d %s", GY_LAUNCH_RANKS_MOST, entry ? "slots on one host" : "hosts");
        return false;
    }
    entry->slots += slots;
    return true;
}

/* Splits HOST:SLOTS. An address of IPv6 has colons of its own: without brackets it is a name without slots. */
static bool parse_item(struct gy_host_list *list, const char *item, size_t length, int slots, char *why, size_t bytes)
{
    const char *name = item, *colon = memchr(item, ':', length);
    size_t name_length = length;
    if (length > 0 && *item == '[') {
        const char *close = memchr(item, ']', length);
        name++;
        name_length = close ? (size_t)(close - name) : 0;
        colon = close && close + 1 < item + length ? close + 1 : NULL;
    } else if (colon && !memchr(colon + 1, ':', length - (size_t)(colon + 1 - item))) {
        name_length = (size_t)(colon - item);
    } else {
        colon = NULL;
    }
    size_t rest = colon ? length - (size_t)(colon + 1 - item) : 0;
    if (!valid_name(name, name_length) || (colon && *colon != ':')) {
        snprintf(why, bytes, "'%.*s' is no HOST or HOST:SLOTS", (int)(length < 80 ? length : 80), item);
        return false;
    }
    if (colon && (slots > 0 || !parse_slots(colon + 1, rest, &slots))) {
        snprintf(why, bytes, "'%.*s': the slots are one whole number from 1 to %d", (int)(length < 80 ? length : 80),
                 item, GY_LAUNCH_RANKS_MOST);
        return false;
    }
    return add(list, name, name_length, slots > 0 ? slots : 1, why, bytes);
}

bool gy_host_list_parse(struct gy_host_list *list, const char *text, char *why, size_t bytes)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        if (!parse_item(list, text, length, 0, why, bytes))
            return false;
        if (text[length] == '\0')
            return true;
        text += length + 1;
    }
}

/* "HOST[:SLOTS] [slots=SLOTS]" and a comment. */
static bool parse_line(struct gy_host_list *list, char *line, char *why, size_t bytes)
{
    static const char blanks[] = " \t\r\n", word[] = "slots=";
    char *rest;
    int slots = 0;
    line[strcspn(line, "#")] = '\0';
    char *host = strtok_r(line, blanks, &rest);
    for (char *more = host ? strtok_r(NULL, blanks, &rest) : NULL; more; more = strtok_r(NULL, blanks, &rest)) {
        const char *count = more + sizeof word - 1;
        if (slots > 0 || strncmp(more, word, sizeof word - 1) != 0 || !parse_slots(count, strlen(count), &slots)) {
            snprintf(why, bytes, "'%.80s' is no slots=N with N from 1 to %d", more, GY_LAUNCH_RANKS_MOST);
            return false;
        }
    }
    return !host || parse_item(list, host, strlen(host), slots, why, bytes);
}

bool gy_host_list_read(struct gy_host_list *list, const char *path, char *why, size_t bytes)
{
    char line[1024], reason[256];
    bool good = true;
    FILE *file = fopen(path, "re");
    if (!file) {
        snprintf(why, bytes, "%.200s: %s", path, strerror(errno));
        return false;
    }
    for (int number = 1; good && fgets(line, sizeof line, file); number++) {
        good = strlen(line) < sizeof line - 1;
        if (!good)
            snprintf(reason, sizeof reason, "the line is too long");
        good = good && parse_line(list, line, reason, sizeof reason);
        if (!good)
            snprintf(why, bytes, "%.200s, line %d: %s", path, number, reason);
    }
    if (good && (ferror(file) || list->count == 0)) {
        snprintf(why, bytes, "%.200s %s", path, ferror(file) ? "cannot be read" : "names no host");
        good = false;
    }
    fclose(file);
    return good;
}

int gy_host_list_place(struct gy_host_list *list, int ranks)
{
    int slots = 0, kept = 0, left;
    for (int i = 0; i < list->count; i++)
        slots += list->entries[i].slots;
    if (ranks > slots)
        return 0;
    left = ranks > 0 ? ranks : slots;
    for (int i = 0; i < list->count && left > 0; i++) {
        struct gy_host_entry *entry = &list->entries[i];
        entry->ranks = entry->slots < left ? entry->slots : left;
        left -= entry->ranks;
        kept++;
    }
    list->count = kept;
    return ranks > 0 ? ranks : slots;
}

void gy_host_list_free(struct gy_host_list *list)
{
    free(list->entries);
    *list = (struct gy_host_list){0};
}
