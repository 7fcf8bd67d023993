/* The command that starts an agent on a host: the user's ssh with its configuration, or gyre-run on this host. */
#ifndef GYRE_TOOLS_REMOTE_SHELL_H
#define GYRE_TOOLS_REMOTE_SHELL_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#define GY_REMOTE_OWN_NAME_BYTES 256

struct gy_remote_shell {
    const char *command; /* "ssh", or another program with arguments, split at blanks */
    sigset_t mask;       /* signal mask of the processes that it starts */
};

struct gy_remote_process {
    pid_t pid;
    int in, out, err; /* our ends of its pipes; non-blocking */
};

/* True if the name means this host, where no ssh is needed. */
bool gy_remote_shell_is_local(const char *host);
/* Starts an agent on a host. Returns 0, or the errno of the failure to start the local process. */
int gy_remote_shell_start(const struct gy_remote_shell *shell, const char *host, struct gy_remote_process *process_p);

#endif
