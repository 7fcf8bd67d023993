/* argp reports an error in two lines (getopt's, then "Try --help"); here it is one: getopt writes its own line to
 * stderr and argp's stream for errors leads nowhere. */
#include "common/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <gyre/gyre.h>

static const char *program = "gyre";

static void print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    fprintf(stream, "%s %s\n", program, gyre_version());
}

void gy_options_init(struct argp_state *state)
{
    FILE *nowhere = fopen("/dev/null", "we");
    if (nowhere)
        state->err_stream = nowhere;
}

void gy_options_parse(const char *name, const struct argp *argp, unsigned flags, int argc, char **argv, void *input)
{
    static char own_name[64];
    program = name;
    argp_err_exit_status = GY_EXIT_USAGE;
    argp_program_version_hook = print_version;
    snprintf(own_name, sizeof own_name, "%s", name);
    if (argc > 0)
        argv[0] = own_name; /* messages name the program, not the path by which it was called */
    error_t error = argp_parse(argp, argc, argv, flags, NULL, input);
    if (error)
        gy_options_refuse("the arguments cannot be read: %s", strerror(error));
}

void gy_options_refuse(const char *format, ...)
{
    char text[2048]; /* in one piece: ranks that are refused alike must not write into each other's lines */
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "%s: %s (try %s --help)\n", program, text, program);
    exit(GY_EXIT_USAGE);
}

long gy_options_integer(const char *option, const char *text, long least, long most)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (errno || end == text || *end || value < least || value > most)
        gy_options_refuse("%s wants a whole number from %ld to %ld, not '%s'", option, least, most, text);
    return value;
}

int gy_options_choice(const char *option, const char *text, const char *const *names)
{
    char list[256] = "";
    size_t used = 0;
    for (int i = 0; names[i]; i++) {
        if (strcmp(names[i], text) == 0)
            return i;
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
        if (used >= sizeof list)
            used = sizeof list - 1;
    }
    gy_options_refuse("%s '%s' is none of %s", option, text, list);
}

static int unit_shift(const char *unit)
{
    static const char units[] = "kmg";
    if (!*unit)
        return 0;
    const char *found = strchr(units, tolower((unsigned char)*unit));
    return found && !unit[1] ? 10 * (int)(found - units + 1) : -1;
}

size_t gy_options_bytes(const char *option, const char *text, size_t most)
{
    char *end = NULL;
    errno = 0;
    unsigned long long value = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    int shift = end ? unit_shift(end) : -1;
    if (errno || shift < 0 || value > (most >> shift))
        gy_options_refuse("%s wants a number of bytes up to %zu, as 4096, 64k, 1M or 2G, not '%s'", option, most, text);
    return (size_t)value << shift;
}

void gy_options_check_environment(void)
{
    char text[1024] = "";
    if (gyre_config_check(text, sizeof text) != GYRE_SUCCESS)
        gy_options_refuse("%s", text);
}
