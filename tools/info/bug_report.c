/* Variables are printed by an exact list of names and by the prefix GYRE; of a variable that is, or may be, a secret
 * only its length. Host and user names are not printed. */
#include "info/bug_report.h"

#include <gnu/libc-version.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <gyre/gyre.h>

static void print_line(void *user, const char *line)
{
    fprintf(user, "%s\n", line);
}

/* Prints the first line of a file that begins with `key`, or the first at all. */
static void print_file(FILE *stream, const char *name, const char *path, const char *key)
{
    char line[256];
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        if (strncmp(line, key, strlen(key)) != 0)
            continue;
        const char *value = line + strlen(key) + strspn(line + strlen(key), " \t:=\"");
        fprintf(stream, "%s: %.*s\n", name, (int)strcspn(value, "\""), value);
        break;
    }
    if (file)
        fclose(file);
}

static void print_limit(FILE *stream, const char *name, __rlimit_resource_t resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit))
        return;
    if (limit.rlim_cur == RLIM_INFINITY)
        fprintf(stream, "limit of %s: none\n", name);
    else
        fprintf(stream, "limit of %s: %llu\n", name, (unsigned long long)limit.rlim_cur);
}

static void print_system(FILE *stream)
{
    struct utsname kernel;
    print_file(stream, "system", "/etc/os-release", "PRETTY_NAME");
    if (uname(&kernel) == 0)
        fprintf(stream, "kernel: %s %s %s\n", kernel.sysname, kernel.release, kernel.machine);
    fprintf(stream, "glibc: %s\n", gnu_get_libc_version());
    print_file(stream, "processor", "/proc/cpuinfo", "model name");
    fprintf(stream, "processors: %ld online\n", sysconf(_SC_NPROCESSORS_ONLN));
    print_file(stream, "memory", "/proc/meminfo", "MemTotal");
    print_file(stream, "memory available", "/proc/meminfo", "MemAvailable");
    print_file(stream, "load", "/proc/loadavg", "");
    print_file(stream, "cgroup's memory", "/sys/fs/cgroup/memory.max", "");
    print_file(stream, "cgroup's processors", "/sys/fs/cgroup/cpu.max", "");
    print_file(stream, "TCP ports", "/proc/sys/net/ipv4/ip_local_port_range", "");
    print_file(stream, "TCP congestion control", "/proc/sys/net/ipv4/tcp_congestion_control", "");
    print_file(stream, "ptrace scope", "/proc/sys/kernel/yama/ptrace_scope", "");
    print_limit(stream, "locked memory", RLIMIT_MEMLOCK);
    print_limit(stream, "open files", RLIMIT_NOFILE);
    print_limit(stream, "processes", RLIMIT_NPROC);
    print_limit(stream, "address space", RLIMIT_AS);
}

/* True for the variables of gyre, of the launchers, and of threads. */
static bool is_of_interest(const char *variable, size_t length)
{
    static const char *const names[] = {"RANK",
                                        "WORLD_SIZE",
                                        "LOCAL_RANK",
                                        "LOCAL_WORLD_SIZE",
                                        "MASTER_ADDR",
                                        "MASTER_PORT",
                                        "TORCHELASTIC_USE_AGENT_STORE",
                                        "OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMIX_RANK",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_STEP_NUM_NODES",
                                        "OMP_NUM_THREADS",
                                        "OPENBLAS_NUM_THREADS",
                                        "LD_PRELOAD",
                                        "LD_LIBRARY_PATH"};
    if (length >= 4 && memcmp(variable, "GYRE", 4) == 0)
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == length && memcmp(names[i], variable, length) == 0)
            return true;
    return false;
}

/* A misspelt name may hold the secret, too: every name that speaks of one is taken for it. */
static bool is_secret(const char *variable, size_t length)
{
    static const char *const words[] = {"SECRET", "SECR", "KEY", "TOKEN", "PASS"};
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)length, variable);
    if (strcmp(name, "GYRE_SECRET_FILE") == 0)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(name, words[i]))
            return true;
    return false;
}

static void print_environment(FILE *stream)
{
    for (char **at = environ; *at; at++) {
        const char *equals = strchr(*at, '=');
        size_t length = equals ? (size_t)(equals - *at) : 0;
        if (!equals || !is_of_interest(*at, length))
            continue;
        if (is_secret(*at, length))
            fprintf(stream, "%.*s: %zu characters, not shown\n", (int)length, *at, strlen(equals + 1));
        else
            fprintf(stream, "%.*s=%s\n", (int)length, *at, equals + 1);
    }
}

void gy_bug_report(FILE *stream)
{
    char wrong[1024] = "";
    fprintf(stream, "== gyre\n");
    gyre_info(print_line, stream);
    fprintf(stream, "== system\n");
    print_system(stream);
    fprintf(stream, "== environment\n");
    print_environment(stream);
    if (gyre_config_check(wrong, sizeof wrong) != GYRE_SUCCESS)
        fprintf(stream, "== wrong in it\n%s\n", wrong);
    fprintf(stream, "== please add\nthe command, what it printed with GYRE_LOG=info, and gyre-top --once on each host "
                    "while the job hangs\n");
}
