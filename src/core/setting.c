/* The kinds of setting: words, numbers, texts and lists of names. All functions are pure, except that a tuning file is
 * read. */
#include "setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "clock.h"
#include "config.h"
#include "log.h"

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Index of `text` among the kind's words; -1: it is none of them. */
static int word_index(const struct gy_setting *setting, const char *text)
{
    for (int i = 0; setting->kind->words[i]; i++) {
        if (strcmp(text, setting->kind->words[i]) == 0)
            return i;
    }
    return -1;
}

static bool parse_word(const struct gy_setting *setting, const char *text, void *field)
{
    int index = word_index(setting, text);

    if (index < 0)
        return false;
    if (setting->size == sizeof(bool))
        *(bool *)field = index;
    else
        *(int *)field = index;
    return true;
}

static void print_word(const struct gy_setting *setting, const void *field, char *text_p, size_t bytes)
{
    int index = setting->size == sizeof(bool) ? *(const bool *)field : *(const int *)field;

    snprintf(text_p, bytes, "%s", setting->kind->words[index]);
}

const struct gy_setting_kind gy_setting_switch = {parse_word, print_word, WORDS("0", "1")};
const struct gy_setting_kind gy_setting_order = {parse_word, print_word, WORDS("shape", "canonical")};
const struct gy_setting_kind gy_setting_ends = {parse_word, print_word, WORDS("local", "uniform")};
const struct gy_setting_kind gy_setting_integrity = {parse_word, print_word, WORDS("off", "crc", "mac", "encrypt")};

static bool parse_level(const struct gy_setting *setting, const char *text, void *field)
{
    enum gy_log_level level;

    (void)setting;
    if (!gy_log_level_parse(text, &level))
        return false;
    *(int *)field = (int)level;
    return true;
}

/* A whole number, perhaps negative. */
static bool parse_int(const struct gy_setting *setting, const char *text, void *field)
{
    size_t digits = strspn(text + (*text == '-'), "0123456789");
    long value = strtol(text, NULL, 10);

    if (digits == 0 || digits > 9 || text[(*text == '-') + digits] || value < setting->least || value > setting->most)
        return false;
    *(int *)field = (int)value;
    return true;
}

static void print_int(const struct gy_setting *setting, const void *field, char *text_p, size_t bytes)
{
    (void)setting;
    snprintf(text_p, bytes, "%d", *(const int *)field);
}

const struct gy_setting_kind gy_setting_level = {parse_level, print_int, NULL};
const struct gy_setting_kind gy_setting_int = {parse_int, print_int, NULL};

static bool parse_time(const struct gy_setting *setting, const char *text, void *field)
{
    int64_t nanoseconds;

    if (!gy_parse_seconds(text, &nanoseconds) || nanoseconds < setting->least || nanoseconds > setting->most)
        return false;
    *(int64_t *)field = nanoseconds;
    return true;
}

/* Whole microseconds; -1 leaves the choice to gyre. */
static bool parse_spin(const struct gy_setting *setting, const char *text, void *field)
{
    size_t microseconds;

    if (strcmp(text, "-1") == 0) {
        *(int64_t *)field = -1;
        return true;
    }
    if (!gy_parse_bytes(text, &microseconds) || strspn(text, "0123456789") != strlen(text) ||
        microseconds > (size_t)setting->most)
        return false;
    *(int64_t *)field = (int64_t)microseconds * 1000;
    return true;
}

static void print_nanoseconds(const struct gy_setting *setting, const void *field, char *text_p, size_t bytes)
{
    (void)setting;
    snprintf(text_p, bytes, "%" PRId64, *(const int64_t *)field);
}

const struct gy_setting_kind gy_setting_time = {parse_time, print_nanoseconds, NULL};
const struct gy_setting_kind gy_setting_spin = {parse_spin, print_nanoseconds, NULL};

static bool parse_size(const struct gy_setting *setting, const char *text, void *field)
{
    size_t bytes;

    if (!gy_parse_bytes(text, &bytes) || bytes < (size_t)setting->least || bytes > (size_t)setting->most)
        return false;
    *(size_t *)field = bytes;
    return true;
}

static bool parse_power(const struct gy_setting *setting, const char *text, void *field)
{
    size_t bytes;

    return gy_parse_bytes(text, &bytes) && (bytes & (bytes - 1)) == 0 && parse_size(setting, text, field);
}

static void print_size(const struct gy_setting *setting, const void *field, char *text_p, size_t bytes)
{
    (void)setting;
    snprintf(text_p, bytes, "%zu", *(const size_t *)field);
}

const struct gy_setting_kind gy_setting_size = {parse_size, print_size, NULL};
const struct gy_setting_kind gy_setting_power = {parse_power, print_size, NULL};

static bool has_length(const struct gy_setting *setting, const char *text)
{
    size_t length = strlen(text);

    return length < setting->size && (length == 0 || length >= (size_t)setting->least);
}

static bool parse_text(const struct gy_setting *setting, const char *text, void *field)
{
    if (!has_length(setting, text))
        return false;
    memcpy(field, text, strlen(text) + 1);
    return true;
}

static void print_text(const struct gy_setting *setting, const void *field, char *text_p, size_t bytes)
{
    (void)setting;
    snprintf(text_p, bytes, "%s", (const char *)field);
}

static bool parse_secret(const struct gy_setting *setting, const char *text, void *field)
{
    (void)field;
    return has_length(setting, text);
}

static void print_secret(const struct gy_setting *setting, const void *field, char *text_p, size_t bytes)
{
    (void)setting;
    (void)field;
    snprintf(text_p, bytes, "(not shown)");
}

static bool parse_launcher(const struct gy_setting *setting, const char *text, void *field)
{
    return word_index(setting, text) >= 0 && parse_text(setting, text, field);
}

const struct gy_setting_kind gy_setting_text = {parse_text, print_text, NULL};
const struct gy_setting_kind gy_setting_secret = {parse_secret, print_secret, NULL};
const struct gy_setting_kind gy_setting_launcher = {
    parse_launcher, print_text, WORDS("", "torchrun", "openmpi", "pmix", "pmi", "slurm")}; /* bootstrap/launcher.c */

#define NAME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789_"

/* Length of the item that a list continues with; 0: none. */
typedef size_t (*item_func)(const char *at);

static size_t name_item(const char *at)
{
    return strspn(at, NAME_LETTERS);
}

static bool is_collective(const char *name, size_t length)
{
    static const char *const names[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier",
                                        "reduce",     "gather",         "scatter",    "all_to_all"};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(names); i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return true;
    }
    return false;
}

static size_t choice_item(const char *at)
{
    size_t collective = name_item(at);

    if (!is_collective(at, collective) || at[collective] != ':')
        return 0;
    size_t algorithm = name_item(at + collective + 1);
    return algorithm ? collective + 1 + algorithm : 0;
}

/* At least one item, single commas between them. */
static bool parse_list(const struct gy_setting *setting, const char *text, void *field, item_func item)
{
    for (const char *at = text;; at++) {
        size_t length = item(at);

        if (length == 0)
            return false;
        at += length;
        if (!*at)
            return parse_text(setting, text, field);
        if (*at != ',')
            return false;
    }
}

/* "shm,tcp". The registry checks whether a transport of that name exists. */
static bool parse_names(const struct gy_setting *setting, const char *text, void *field)
{
    return parse_list(setting, text, field, name_item);
}

/* An interface, or an address. */
static size_t interface_item(const char *at)
{
    return strcspn(at, ", \t");
}

/* "eth0,eth1": as many as there can be rails. */
static bool parse_interfaces(const struct gy_setting *setting, const char *text, void *field)
{
    int names = 1;

    for (const char *at = text; (at = strchr(at, ',')); at++)
        names++;
    return names <= GY_RAILS_MOST &&
           (*text ? parse_list(setting, text, field, interface_item) : parse_text(setting, text, field));
}

/* A number from 1 to 9999. */
static size_t count_item(const char *at)
{
    size_t digits = strspn(at, "0123456789");

    return at[0] == '0' || digits > 4 ? 0 : digits;
}

/* "host", "numa", "cache", "off", or "2,2,3". */
static bool parse_hierarchy(const struct gy_setting *setting, const char *text, void *field)
{
    return word_index(setting, text) >= 0 ? parse_text(setting, text, field)
                                          : parse_list(setting, text, field, count_item);
}

/* "all_reduce:ring,broadcast:binary_tree". The selector checks whether the algorithm exists. */
static bool parse_choices(const struct gy_setting *setting, const char *text, void *field)
{
    return *text ? parse_list(setting, text, field, choice_item) : parse_text(setting, text, field);
}

const struct gy_setting_kind gy_setting_names = {parse_names, print_text, NULL};
const struct gy_setting_kind gy_setting_interfaces = {parse_interfaces, print_text, NULL};
const struct gy_setting_kind gy_setting_hierarchy = {parse_hierarchy, print_text,
                                                     WORDS("host", "numa", "cache", "off")};
const struct gy_setting_kind gy_setting_choices = {parse_choices, print_text, NULL};

static bool parse_tuning(const struct gy_setting *setting, const char *text, void *field)
{
    struct gy_tuning *tuning = field;
    const char *why;

    (void)setting;
    memset(tuning, 0, sizeof(*tuning));
    if (!*text)
        return true;
    if (strlen(text) >= sizeof(tuning->path))
        return false;
    tuning->cluster = gy_cluster_default();
    if (!gy_cluster_read(text, &tuning->cluster, &why)) {
        gy_log(GY_LOG_ERROR, "GYRE_TUNING: %s: %s", text, why);
        return false;
    }
    memcpy(tuning->path, text, strlen(text) + 1);
    tuning->digest = XXH3_64bits(&tuning->cluster, sizeof(tuning->cluster));
    return true;
}

static void print_tuning(const struct gy_setting *setting, const void *field, char *text_p, size_t bytes)
{
    (void)setting;
    snprintf(text_p, bytes, "%.0" PRIx64, ((const struct gy_tuning *)field)->digest);
}

const struct gy_setting_kind gy_setting_tuning = {parse_tuning, print_tuning, NULL};
