#include "run/rendezvous_env.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_PORT 10000u /* below are services */
#define PORT_TRIES 100
#define JOINER_WAITS "30" /* seconds */

/* The kernel's ephemeral ports begin here. None of them is used: a program that makes several worlds could otherwise
 * find its own rank, or another process, at the port of rank 0. */
static unsigned first_given_port(void)
{
    unsigned first = 32768;
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    if (file) {
        if (fscanf(file, "%u", &first) != 1 || first < 2 * FIRST_PORT)
            first = 32768;
        fclose(file);
    }
    return first;
}

/* Finds a free port and keeps a socket bound to it, so that no other job takes the port before rank 0 binds it, or
 * between two worlds of this job. The bind fails where any socket has the port. SO_REUSEADDR is set afterwards, and
 * rank 0 sets it too. So rank 0 can bind and listen beside this socket, which does not listen. */
int gy_rendezvous_reserve(struct gy_rendezvous *rendezvous, bool loopback)
{
    const int on = 1;
    unsigned end = first_given_port();
    for (int tries = 0; tries < PORT_TRIES; tries++) {
        unsigned dice;
        if (getrandom(&dice, sizeof dice, 0) != (ssize_t)sizeof dice)
            return -1;
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_port = htons((uint16_t)(FIRST_PORT + dice % (end - FIRST_PORT))),
                                      .sin_addr = {htonl(loopback ? INADDR_LOOPBACK : INADDR_ANY)}};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
            return -1;
        if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
            setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0) {
            snprintf(rendezvous->port, sizeof rendezvous->port, "%u", (unsigned)ntohs(address.sin_port));
            rendezvous->reserved = fd;
            return 0;
        }
        close(fd);
    }
    return -1;
}

int gy_rendezvous_draw_secret(char text[GY_RENDEZVOUS_SECRET_BYTES])
{
    unsigned char bytes[(GY_RENDEZVOUS_SECRET_BYTES - 1) / 2];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return -1;
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

/* An environment variable with the secret would be inherited by every program that a rank starts, and would land in
 * the logs of programs that print their environment. */
int gy_rendezvous_hold_secret(struct gy_rendezvous *rendezvous, const char *text)
{
    size_t length = strlen(text);
    int fd = memfd_create("gyre secret", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && fchmod(fd, S_IRUSR) == 0 && write(fd, text, length) == (ssize_t)length &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) == 0) {
        rendezvous->secret = fd;
        return 0;
    }
    if (fd >= 0)
        close(fd);
    return -1;
}

static int make_secret(struct gy_rendezvous *rendezvous)
{
    char text[GY_RENDEZVOUS_SECRET_BYTES];
    int result = gy_rendezvous_draw_secret(text) ? -1 : gy_rendezvous_hold_secret(rendezvous, text);
    explicit_bzero(text, sizeof text);
    return result;
}

/* Called in the process that becomes a rank. */
static void hand_on_secret(int fd)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    fcntl(fd, F_SETFD, 0);
    setenv("GYRE_SECRET_FILE", path, 1);
}

/* As for gyre: an empty variable is one that is not set. A process that has made a world has an empty GYRE_SECRET. */
static bool is_set(const char *name)
{
    const char *text = getenv(name);
    return text && *text;
}

static void set_number(const char *name, int value)
{
    char text[16];
    snprintf(text, sizeof text, "%d", value);
    setenv(name, text, 1);
}

void gy_rendezvous_tell(const struct gy_rendezvous *rendezvous, int local, int locals, bool joiner)
{
    if (joiner) {
        setenv("GYRE_JOIN", "1", 1);
        /* the ranks that are left may all be joiners, and wait for each other */
        setenv("GYRE_MEET_TIMEOUT", JOINER_WAITS, 0);
    }
    set_number("RANK", rendezvous->first + local);
    set_number("WORLD_SIZE", rendezvous->world);
    set_number("LOCAL_RANK", local);
    set_number("LOCAL_WORLD_SIZE", locals);
    setenv("MASTER_ADDR", rendezvous->address, 1);
    setenv("MASTER_PORT", rendezvous->port, 1);
    setenv("GYRE_LAUNCHER", "torchrun", 1);   /* these variables take precedence over those of Slurm or mpirun */
    unsetenv("TORCHELASTIC_USE_AGENT_STORE"); /* only rank 0 binds our MASTER_PORT */
    if (!is_set("GYRE_SECRET") && !is_set("GYRE_SECRET_FILE"))
        hand_on_secret(rendezvous->secret);
}

void gy_rendezvous_end(struct gy_rendezvous *rendezvous)
{
    if (rendezvous->reserved >= 0)
        close(rendezvous->reserved);
    if (rendezvous->secret >= 0)
        close(rendezvous->secret);
    rendezvous->reserved = rendezvous->secret = -1;
}

int gy_rendezvous_choose(struct gy_rendezvous *rendezvous, int ranks)
{
    *rendezvous = (struct gy_rendezvous){.address = "127.0.0.1", .world = ranks, .reserved = -1, .secret = -1};
    if (gy_rendezvous_reserve(rendezvous, true) == 0 && make_secret(rendezvous) == 0)
        return 0;
    int errnum = errno;
    gy_rendezvous_end(rendezvous);
    errno = errnum;
    return -1;
}

static bool other_found(void)
{
    return is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK") || is_set("PMI_SIZE") ||
           is_set("SLURM_STEP_NUM_TASKS");
}

bool gy_launch_found(void)
{
    return is_set("WORLD_SIZE") || other_found();
}

bool gy_launch_alone(void)
{
    const char *size = getenv("WORLD_SIZE");
    return !other_found() && (!size || !*size || strcmp(size, "1") == 0);
}
