/* A locale whose decimal point is a comma, as a program in German has it. A machine need not have one: it is written
 * here, in the format of glibc's LC_NUMERIC, which is that of the C locale with another first letter. */
#ifndef GYRE_TESTS_SUPPORT_COMMA_H
#define GYRE_TESTS_SUPPORT_COMMA_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* From now on the program's numbers have commas; false: it could not be done. Leaves nothing behind. */
static inline bool comma_begin(void)
{
    enum { STRINGS = 6, TEXTS = 8 + 4 * STRINGS };
    static const uint32_t head[2 + STRINGS] = {
        0x20031115 ^ LC_NUMERIC, STRINGS, TEXTS, TEXTS + 2, TEXTS + 3, TEXTS + 4, TEXTS + 8, TEXTS + 12};
    static const char texts[] =
        ",\0\0\0,\0\0\0\0\0\0\0UTF-8"; /* the point, no separator, no groups; the two again, wide */
    char folder[] = "/tmp/gyre-comma-XXXXXX", language[64], path[80];
    if (!mkdtemp(folder))
        return false;
    snprintf(language, sizeof(language), "%s/comma", folder);
    snprintf(path, sizeof(path), "%s/LC_NUMERIC", language);
    FILE *file = mkdir(language, 0700) == 0 ? fopen(path, "w") : NULL;
    bool done = file && fwrite(head, sizeof(head), 1, file) == 1 && fwrite(texts, sizeof(texts), 1, file) == 1;
    if (file)
        done &= fclose(file) == 0;
    done = done && setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_NUMERIC, "comma") &&
           strcmp(localeconv()->decimal_point, ",") == 0;
    unsetenv("LOCPATH");
    unlink(path);
    rmdir(language);
    rmdir(folder);
    return done;
}

#endif
