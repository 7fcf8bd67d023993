/* Files: /dev/shm, /tmp, the meeting's folder. Sockets: every Unix socket, and TCP sockets that listen or are
 * connected, from /proc/net of a network of our own. The kernel takes a moment to end the sockets of a killed process:
 * looked at again until there are none: for 30 s. */
#include "fault_traces.h"

#include <dirent.h>
#include <errno.h>
#include <sys/mount.h>

#include "support/own_network.h"
#include "support/rank.h"

static char folder[64];
static bool isolated, own_tmp;
static int shm_before, tmp_before;

/* Entries whose name contains `part`. */
static int count_files(const char *path, const char *part)
{
    int count = 0;
    DIR *opened = opendir(path);
    if (!opened)
        return 0;
    for (struct dirent *entry; (entry = readdir(opened));)
        count += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..") && strstr(entry->d_name, part);
    closedir(opened);
    return count;
}

/* A build under /tmp keeps its /tmp: sanitizers write their reports there. */
static bool tmp_is_needed(void)
{
    char path[4096] = "";
    return readlink("/proc/self/exe", path, sizeof path - 1) < 0 || strncmp(path, "/tmp/", 5) == 0;
}

void fault_traces_begin(void)
{
    bool alone = own_network_enter(CLONE_NEWNS);
    isolated = alone && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
               mount("none", "/dev/shm", "tmpfs", 0, "mode=1777") == 0;
    own_tmp = isolated && !tmp_is_needed() && mount("none", "/tmp", "tmpfs", 0, "mode=1777") == 0;
    const char *strict = getenv("GYRE_TEST_STRICT");
    CHECK(isolated || !strict || strcmp(strict, "1"));
    snprintf(folder, sizeof folder, "/tmp/fault-XXXXXX");
    CHECK(mkdtemp(folder));
    shm_before = isolated ? 0 : count_files("/dev/shm", "gyre");
    tmp_before = own_tmp ? 1 : 0; /* our folder */
}

const char *fault_traces_folder(void)
{
    return folder;
}

void fault_traces_sweep(void)
{
    char path[512];
    DIR *opened = opendir(folder);
    CHECK(opened);
    for (struct dirent *entry; (entry = readdir(opened));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    closedir(opened);
}

/* Lines of a table of sockets after its first; `states`: hexadecimal, the fourth column of the tcp tables. */
static int count_sockets(const char *path, const char *states)
{
    char line[512], state[8];
    int count = -1;
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    while (fgets(line, sizeof line, file)) {
        bool title = count < 0;
        count += title || !states || (sscanf(line, "%*s %*s %*s %7s", state) == 1 && strstr(states, state));
    }
    fclose(file);
    return count;
}

static bool none_now(char *what, size_t bytes)
{
    int shm = count_files("/dev/shm", isolated ? "" : "gyre"), own = count_files(folder, "");
    int tmp = own_tmp ? count_files("/tmp", "") : 0;
    int local = isolated ? count_sockets("/proc/self/net/unix", NULL) : 0;
    int tcp = isolated ? count_sockets("/proc/self/net/tcp", "01 0A") + count_sockets("/proc/self/net/tcp6", "01 0A")
                       : 0;
    snprintf(what, bytes, "%d files in /dev/shm, %d in /tmp, %d in the meeting's folder, %d Unix and %d TCP sockets",
             shm - shm_before, tmp - tmp_before, own, local, tcp);
    return shm <= shm_before && tmp <= tmp_before && own == 0 && local == 0 && tcp == 0;
}

bool fault_traces_none(char *what, size_t bytes)
{
    int64_t limit = rank_now_ns() + 30000000000;
    while (!none_now(what, bytes)) {
        if (rank_now_ns() > limit)
            return false;
        usleep(5000);
    }
    return true;
}

void fault_traces_end(void)
{
    CHECK(rmdir(folder) == 0);
    printf("nothing is left behind: looked at %s\n", own_tmp ? "/dev/shm, /tmp and every socket"
                                                     : isolated
                                                         ? "/dev/shm, the meeting's folder and every socket"
                                                         : "/dev/shm, for names with gyre, and the meeting's folder");
}
