/* gyre-run on one host of a larger job, as gyre-run starts it there over ssh. */
#ifndef GYRE_TOOLS_AGENT_H
#define GYRE_TOOLS_AGENT_H

/* First line of an agent's standard output, after whatever the shell of the host has written. */
#define GY_AGENT_LINE "gyre-run agent 1"
#define GY_AGENT_LINE_ANY "gyre-run agent "

/* Reads this host's part of the job from the standard input, starts the ranks and reports on the standard output.
 * Returns the exit status. Ends, and kills the ranks, at the end of the standard input. */
int gy_agent_run(void);

#endif
