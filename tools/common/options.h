/* What all of gyre's programs share on the command line: a wrong argument is one line on stderr and exit status 2;
 * --help and --version come from argp; the GYRE_* environment is checked strictly before anything starts. */
#ifndef GYRE_TOOLS_OPTIONS_H
#define GYRE_TOOLS_OPTIONS_H

#include <argp.h>
#include <stddef.h>

#define GY_EXIT_USAGE 2

/* Parses with argp, quietly: the only line about an error is the one that names it. `name` is the program's, a
 * literal. */
void gy_options_parse(const char *name, const struct argp *argp, unsigned flags, int argc, char **argv, void *input);
/* Called by the parser at ARGP_KEY_INIT. */
void gy_options_init(struct argp_state *state);
/* Prints one line "NAME: sentence (try NAME --help)", and exits with status 2. */
_Noreturn void gy_options_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Return a number within bounds, or exit with a message that names the option. */
long gy_options_integer(const char *option, const char *text, long least, long most);
size_t gy_options_bytes(const char *option, const char *text, size_t most); /* "4096", "64k", "1M", "2G" */

/* Returns the index of `text` in `names`, which ends with NULL, or exits with a message that lists them. */
int gy_options_choice(const char *option, const char *text, const char *const *names);

/* Exits with a message at an unknown GYRE_* name or a bad value in the environment. */
void gy_options_check_environment(void);

#endif
