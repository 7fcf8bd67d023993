/* Numbers in files and settings have points, whatever locale the program has chosen for itself. */
#ifndef GY_NN_PLAIN_H
#define GY_NN_PLAIN_H

#include <locale.h>
#include <stdlib.h>

/* The C locale is libc's own: nothing is allocated, and nothing has to be freed. */
static inline locale_t gy_plain_locale(void)
{
    return newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

/* strtod of the C locale. */
static inline double gy_plain_number(const char *text, char **end_p)
{
    return strtod_l(text, end_p, gy_plain_locale());
}

/* Between the two calls this thread prints in the C locale. */
static inline locale_t gy_plain_begin(void)
{
    return uselocale(gy_plain_locale());
}

static inline void gy_plain_end(locale_t before)
{
    uselocale(before);
}

#endif
