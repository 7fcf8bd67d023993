/* See secret_variable.h. A variable that has been taken is known by the place of its value. */
#include "secret_variable.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"
#include "secret_memory.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *kept;          /* secret memory; under the lock, as the next one */
static const char *emptied; /* the value that has been overwritten; `kept` has what it was */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, after_fork);
}

/* Through a pipe: a value that cannot be written, such as a literal that was given to putenv, is an error then, and not
 * the end of the process. */
static bool overwrite(char *value, size_t bytes)
{
    static const char zeros[GY_SECRET_TEXT];
    int ends[2];
    bool done;

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    done = write(ends[1], zeros, bytes) == (ssize_t)bytes && read(ends[0], value, bytes) == (ssize_t)bytes;
    close(ends[0]);
    close(ends[1]);
    return done;
}

static void take(char *value, size_t bytes)
{
    if (!kept)
        kept = gy_secret_alloc(GY_SECRET_TEXT, GY_SECRET_COPIED);
    if (kept) {
        memcpy(kept, value, bytes + 1);
        emptied = value;
    }
    if (!kept || !overwrite(value, bytes))
        gy_log(GY_LOG_WARN, GY_SECRET_VARIABLE " could not be taken out of the environment");
}

bool gy_secret_variable_is_set(void)
{
    const char *value = getenv(GY_SECRET_VARIABLE);
    bool set;

    pthread_mutex_lock(&lock);
    set = value && (*value || value == emptied);
    pthread_mutex_unlock(&lock);
    return set;
}

size_t gy_secret_variable_take(char text_p[GY_SECRET_TEXT])
{
    char *value;
    size_t bytes = 0;

    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&lock);
    value = getenv(GY_SECRET_VARIABLE);
    if (value && *value) {
        bytes = strnlen(value, GY_SECRET_TEXT - 1);
        memcpy(text_p, value, bytes);
        if (value[bytes] == '\0')
            take(value, bytes);
    } else if (value && value == emptied) {
        bytes = strlen(kept);
        memcpy(text_p, kept, bytes);
    }
    text_p[bytes] = '\0';
    pthread_mutex_unlock(&lock);
    return bytes;
}
