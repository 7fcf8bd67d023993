/* GYRE_SECRET, which is taken out of the environment when a world is made.
 *
 * The bytes of the value are overwritten where they are, with zeros: an empty variable is one that is not set. So
 * /proc/PID/environ, core dumps and programs that this process starts do not have it. The variable itself stays, since
 * unsetenv moves the other variables, under threads that read them. This process keeps the value in secret memory, for
 * further worlds; so do its forked children. */
#ifndef GY_CORE_SECRET_VARIABLE_H
#define GY_CORE_SECRET_VARIABLE_H

#include "base.h"

#define GY_SECRET_VARIABLE "GYRE_SECRET"
#define GY_SECRET_TEXT 256 /* with the end */

/* True if it is set, or has been taken by this process and not been set since. */
bool gy_secret_variable_is_set(void);
/* Copies it to `text_p`, which should be secret memory, and takes it out of the environment, as far as that can be
 * done (a value in memory that cannot be written stays). Returns its length; 0: not set. */
size_t gy_secret_variable_take(char text_p[GY_SECRET_TEXT]);

#endif
