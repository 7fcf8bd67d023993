/* ssh runs a command by the login shell of the user, which may be any shell: the command is one call of /bin/sh with a
 * text in single quotes. It executes gyre-run by the path that it has on this host, if it is there, else by PATH.
 *
 * The processes share the terminal's process group, so that ssh can ask for a password, and ignore Ctrl-C: gyre-run
 * ends the job in order. They die with gyre-run. */
#include "run/remote_shell.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define WORDS_MOST 64
#define SELF "/proc/self/exe"

bool gy_remote_shell_is_local(const char *host)
{
    char own[GY_REMOTE_OWN_NAME_BYTES] = "";
    if (strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 || strcmp(host, "::1") == 0)
        return true;
    if (gethostname(own, sizeof own - 1) || !*own)
        return false;
    size_t first = strcspn(own, ".");
    return strcmp(host, own) == 0 || (strlen(host) == first && memcmp(host, own, first) == 0);
}

/* Writes the command for the host's shell. A path with characters that mean something inside double quotes is not
 * used. */
static void write_command(char *text, size_t bytes)
{
    char path[PATH_MAX] = "";
    ssize_t length = readlink(SELF, path, sizeof path - 1);
    if (length <= 0 || strpbrk(path, "'\"\\$`!\n"))
        snprintf(text, bytes, "exec gyre-run --agent");
    else
        snprintf(text, bytes, "exec /bin/sh -c 'p=\"%s\"; test -x \"$p\" || p=gyre-run; exec \"$p\" --agent'", path);
}

/* Splits the user's command and appends gyre-run's own options behind it: ssh takes the first value of an option. */
static bool make_words(char *command, const char *host, const char *remote, const char **words)
{
    static const char *const options[] = {
        "-T", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5"};
    size_t count = 0;
    char *rest;
    for (char *word = strtok_r(command, " ", &rest); word && count < WORDS_MOST; word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    if (count == 0 || count == WORDS_MOST)
        return false;
    const char *slash = strrchr(words[0], '/');
    bool ssh = strcmp(slash ? slash + 1 : words[0], "ssh") == 0;
    for (size_t i = 0; ssh && i < sizeof options / sizeof *options; i++)
        words[count++] = options[i];
    words[count++] = host;
    words[count++] = remote;
    words[count] = NULL;
    return true;
}

static void exec_ssh(const struct gy_remote_shell *shell, const char *host)
{
    char remote[PATH_MAX + 128];
    const char *words[WORDS_MOST + 16];
    char *command = strdup(shell->command);
    write_command(remote, sizeof remote);
    errno = EINVAL;
    if (!command || !make_words(command, host, remote, words))
        return;
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    execvp(words[0], (char *const *)words);
}

/* Runs in the child up to exec. */
static _Noreturn void become(const struct gy_remote_shell *shell, const char *host, const int pipes[4][2], pid_t parent)
{
    static char name[] = "gyre-run", option[] = "--agent";
    char *const agent[] = {name, option, NULL};
    int problem = 0;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
        _exit(1);
    sigprocmask(SIG_SETMASK, &shell->mask, NULL);
    signal(SIGPIPE, SIG_DFL);
    unsetenv("SSH_CONNECTION"); /* of the user's own login here */
    unsetenv("GYRE_SECRET");    /* which goes over the pipe */
    unsetenv("GYRE_SECRET_FILE");
    if (dup2(pipes[0][0], 0) >= 0 && dup2(pipes[1][1], 1) >= 0 && dup2(pipes[2][1], 2) >= 0) {
        if (gy_remote_shell_is_local(host)) {
            setpgid(0, 0);
            execv(SELF, agent);
        } else {
            exec_ssh(shell, host);
        }
    }
    problem = errno;
    if (write(pipes[3][1], &problem, sizeof problem) < 0)
        _exit(126);
    _exit(127);
}

static int open_pipes(int pipes[4][2])
{
    for (int i = 0; i < 4; i++)
        pipes[i][0] = pipes[i][1] = -1;
    for (int i = 0; i < 4; i++)
        if (pipe2(pipes[i], O_CLOEXEC))
            return errno;
    return 0;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

int gy_remote_shell_start(const struct gy_remote_shell *shell, const char *host, struct gy_remote_process *process_p)
{
    int pipes[4][2], problem = open_pipes(pipes);
    pid_t parent = getpid(), child = problem ? -1 : fork();
    if (child == 0)
        become(shell, host, pipes, parent);
    if (child < 0 && !problem)
        problem = errno;
    close_one(&pipes[0][0]);
    for (int i = 1; i < 4; i++)
        close_one(&pipes[i][1]);
    if (!problem && read(pipes[3][0], &problem, sizeof problem) != (ssize_t)sizeof problem)
        problem = 0; /* end of file: exec closed it */
    close_one(&pipes[3][0]);
    *process_p = (struct gy_remote_process){child, pipes[0][1], pipes[1][0], pipes[2][0]};
    if (child < 0) {
        close_one(&process_p->in);
        close_one(&process_p->out);
        close_one(&process_p->err);
        return problem;
    }
    fcntl(process_p->in, F_SETFL, O_NONBLOCK);
    fcntl(process_p->out, F_SETFL, O_NONBLOCK);
    fcntl(process_p->err, F_SETFL, O_NONBLOCK);
    return problem;
}
