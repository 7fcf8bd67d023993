/* One line per event to stderr: "gyre[rank 3] ERROR: message". Level by GYRE_LOG=error|warn|info|debug, default warn.
 * */
#ifndef GY_CORE_LOG_H
#define GY_CORE_LOG_H

#include "base.h"

enum gy_log_level {
    GY_LOG_ERROR = GYRE_LOG_ERROR,
    GY_LOG_WARN = GYRE_LOG_WARN,
    GY_LOG_INFO = GYRE_LOG_INFO,
    GY_LOG_DEBUG = GYRE_LOG_DEBUG
};

void gy_log(enum gy_log_level level, const char *format, ...) GY_PRINTF(2, 3); /* one write(2) per line, thread-safe */
/* A line that a setting requests: of level INFO, whatever GYRE_LOG is. */
void gy_log_asked(const char *format, ...) GY_PRINTF(1, 2);
void gy_log_set_rank(int rank); /* thread-local: ranks may be threads */
bool gy_log_enabled(enum gy_log_level level);
/* Lines go to `func` instead of stderr; NULL: back. Not while another thread logs: the two words are set one by one. */
void gy_log_set_sink(gyre_log_func func, void *user);
bool gy_log_level_parse(const char *text, enum gy_log_level *level_p); /* "error", "warn", "info", "debug" */

#endif
