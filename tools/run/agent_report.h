/* What an agent reports to gyre-run: the ends of its ranks, and a problem that keeps them from starting. */
#ifndef GYRE_TOOLS_AGENT_REPORT_H
#define GYRE_TOOLS_AGENT_REPORT_H

#include "run/frame.h"
#include "run/rank_end.h"

#define GY_HOST_PROBLEM_BYTES 256
#define GY_HOST_ADDRESS_BYTES 64 /* of the address at which a host was reached */

/* Write a frame to `fd`. A failure to write is not reported: the end of the standard input follows. */
void gy_agent_report_end(int fd, const struct gy_rank_end *end);
void gy_agent_report_problem(int fd, int status, const char *text);

/* Decode a frame. False: it has another form. */
bool gy_agent_report_read_end(const struct gy_frame *frame, struct gy_rank_end *end_p);
bool gy_agent_report_read_problem(const struct gy_frame *frame, int *status_p, char *text, size_t bytes);

#endif
