/* Runs a job on several hosts: connects to an agent on each, gives them the address of rank 0, passes their output on
 * and ends the job on all of them at the first failure. */
#ifndef GYRE_TOOLS_HOSTS_JOB_H
#define GYRE_TOOLS_HOSTS_JOB_H

#include "run/host_list.h"
#include "run/launch.h"

struct gy_hosts {
    struct gy_host_list list; /* placed */
    const char *ssh;          /* command, "ssh" if the user gives none */
    char **names;             /* variables that the ranks get beside GYRE_*, `name_count` of them */
    size_t name_count;
};

/* Returns the exit status for the tool, as gy_launch_run() does; 1 for a host that cannot be reached. The last line on
 * stderr names the failed rank with its host, or the host. */
int gy_hosts_run(const struct gy_launch *launch, const struct gy_hosts *hosts);

#endif
