/* The line of a file:// meeting: written, read, replaced, removed; and a file system that says no. */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bootstrap/messages.h"

static char folder[] = "/tmp/gyre-rendezvous-XXXXXX", path[64];
static int close_errnum; /* what the next close says, as one over a network does that had no room */
static bool interrupted; /* the next write is, before it has begun */

int __real_close(int fd);
int __wrap_close(int fd);
ssize_t __real_write(int fd, const void *bytes, size_t count);
ssize_t __wrap_write(int fd, const void *bytes, size_t count);

int __wrap_close(int fd)
{
    int result = __real_close(fd);

    if (close_errnum == 0)
        return result;
    errno = close_errnum;
    close_errnum = 0;
    return -1;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t count)
{
    if (!interrupted)
        return __real_write(fd, bytes, count);
    interrupted = false;
    errno = EINTR;
    return -1;
}

static void begin(void)
{
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/meet", folder);
}

static void end(void)
{
    unlink(path);
    cr_assert_eq(rmdir(folder), 0, "something is left beside the file");
}

TestSuite(rendezvous, .init = begin, .fini = end);

static struct gy_endpoint endpoint_of(uint16_t port)
{
    struct gy_endpoint endpoint = {.address.ss_family = AF_INET};

    ((struct sockaddr_in *)&endpoint.address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    gy_address_set_port(&endpoint.address, port);
    return endpoint;
}

static uint16_t port_there(uint64_t *nonce)
{
    struct gy_endpoint found;
    char why[320] = "";

    return gy_rendezvous_read(path, false, &found, nonce, why, sizeof(why)) ? gy_address_port(&found.address) : 0;
}

Test(rendezvous, the_last_one_counts_and_only_its_owner_removes_it)
{
    struct gy_error error = {.rank = -1};
    struct gy_endpoint first = endpoint_of(1001), second = endpoint_of(1002);
    uint64_t nonce;

    cr_assert_eq(gy_rendezvous_write(path, &first, 0xabc, &error), GYRE_SUCCESS);
    cr_assert_eq(gy_rendezvous_write(path, &second, 0xdef, &error), GYRE_SUCCESS);
    cr_assert_eq(port_there(&nonce), 1002);
    cr_assert_eq(nonce, 0xdef);
    gy_rendezvous_remove(path, 0xabc);
    cr_assert_eq(port_there(&nonce), 1002);
    gy_rendezvous_remove(path, 0xdef);
    cr_assert_eq(port_there(&nonce), 0);
}

Test(rendezvous, a_signal_is_no_failure)
{
    struct gy_error error = {.rank = -1};
    struct gy_endpoint endpoint = endpoint_of(1003);
    uint64_t nonce;

    interrupted = true;
    cr_assert_eq(gy_rendezvous_write(path, &endpoint, 1, &error), GYRE_SUCCESS, "%s", error.text);
    cr_assert_eq(port_there(&nonce), 1003);
}

/* A rank that finds an empty file would read it until the bootstrap is over. */
Test(rendezvous, a_line_that_is_not_kept_takes_no_place)
{
    struct gy_error error = {.rank = -1, .quiet = true};
    struct gy_endpoint good = endpoint_of(1004), lost = endpoint_of(1005);
    uint64_t nonce;

    cr_assert_eq(gy_rendezvous_write(path, &good, 1, &error), GYRE_SUCCESS);
    close_errnum = EDQUOT;
    cr_assert_neq(gy_rendezvous_write(path, &lost, 2, &error), GYRE_SUCCESS);
    cr_assert(strstr(error.text, strerror(EDQUOT)), "%s", error.text);
    cr_assert_eq(port_there(&nonce), 1004);
}
