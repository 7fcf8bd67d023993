/* What the ranks of other hosts get from the environment of gyre-run: variables, and the secret. */
#ifndef GYRE_TOOLS_JOB_ENVIRONMENT_H
#define GYRE_TOOLS_JOB_ENVIRONMENT_H

#include <stddef.h>

#define GY_JOB_SECRET_BYTES 4096

/* Returns the variables to pass on, NAME=VALUE, then NULL: all GYRE_* but those of one host and the secret's, and those
 * in `names`. For free(); the texts are the environment's. */
const char **gy_job_environment(char *const *names, size_t count);
/* Writes the secret: of GYRE_SECRET, of the file GYRE_SECRET_FILE, or a new one. Returns 0, or −1 and writes `why`. */
int gy_job_secret(char *secret, size_t secret_bytes, char *why, size_t bytes);

#endif
