/* The pure parsers of settings: text in, number out, no state; and a duration as text again. The input is typed by
 * users, so every digit is checked for overflow before it is added. */
#include "config.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"

/* Reads digits from *text_p and moves it past them; false when there is none or the number is too large. */
static bool read_digits(const char **text_p, uint64_t *number_p)
{
    const char *text = *text_p;
    uint64_t number = 0;

    if (*text < '0' || *text > '9')
        return false;
    for (; *text >= '0' && *text <= '9'; text++) {
        if (__builtin_mul_overflow(number, 10u, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
            return false;
    }
    *text_p = text;
    *number_p = number;
    return true;
}

bool gy_parse_bytes(const char *text, size_t *bytes_p)
{
    static const char suffixes[] = "kmgt";
    uint64_t number;
    size_t bytes;
    unsigned shift = 0;

    if (!read_digits(&text, &number))
        return false;
    if (*text) {
        char letter[2] = {(char)(*text | 0x20), '\0'};
        size_t place = strcspn(suffixes, letter);

        if (!suffixes[place] || text[1])
            return false;
        shift = 10 * ((unsigned)place + 1);
    }
    if (__builtin_mul_overflow(number, UINT64_C(1) << shift, &number) || __builtin_add_overflow(number, 0u, &bytes))
        return false;
    *bytes_p = bytes;
    return true;
}

static bool unit_find(const char *text, int64_t *nanoseconds_p)
{
    static const struct {
        const char *name;
        int64_t nanoseconds;
    } units[] = {{"", GY_SECOND}, {"s", GY_SECOND},      {"ms", GY_MILLISECOND},
                 {"us", 1000},    {"m", 60 * GY_SECOND}, {"h", 3600 * GY_SECOND}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(units); i++) {
        if (strcmp(text, units[i].name) == 0) {
            *nanoseconds_p = units[i].nanoseconds;
            return true;
        }
    }
    return false;
}

bool gy_parse_seconds(const char *text, int64_t *nanoseconds_p)
{
    uint64_t whole, fraction = 0;
    int64_t unit, total, total_fraction, scale = 1;

    if (!read_digits(&text, &whole))
        return false;
    if (*text == '.') {
        const char *digits = ++text;

        if (!read_digits(&text, &fraction) || text - digits > 9)
            return false;
        for (; digits < text; digits++)
            scale *= 10;
    }
    if (!unit_find(text, &unit) || __builtin_mul_overflow(whole, unit, &total))
        return false;
    /* A fraction is below 1: at most an hour is added, and the product is at most 10^9 hours. */
    total_fraction = (int64_t)((unsigned __int128)fraction * (uint64_t)unit / (uint64_t)scale);
    if (__builtin_add_overflow(total, total_fraction, &total))
        return false;
    if (total > GY_TIMEOUT_MOST)
        return false;
    *nanoseconds_p = total;
    return true;
}

const char *gy_print_seconds(int64_t nanoseconds, char *text_p, size_t bytes)
{
    char fraction[12];
    size_t length;

    snprintf(fraction, sizeof(fraction), ".%09d", (int)(nanoseconds % GY_SECOND));
    length = strlen(fraction);
    while (fraction[length - 1] == '0')
        length--;
    snprintf(text_p, bytes, "%" PRId64 "%.*s", nanoseconds / GY_SECOND, length > 1 ? (int)length : 0, fraction);
    return text_p;
}

double gy_parse_double(const char *text, char **end_p)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* libc's own: nothing is allocated */
    double value = plain ? strtod_l(text, end_p, plain) : strtod(text, end_p);

    if (plain)
        freelocale(plain);
    return value;
}
