/* What the kernel is told about a connection. */
#include <criterion/criterion.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/config.h"
#include "net/socket.h"

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t bytes = sizeof(value);

    cr_assert_eq(getsockopt(fd, level, name, &value, &bytes), 0);
    return value;
}

/* Every GYRE_PEER_TIMEOUT that may be set; what the kernel cannot count is as long as it can. */
Test(socket, the_peers_time_is_never_cut)
{
    static const struct {
        int64_t timeout;
        int silence, idle; /* milliseconds, seconds */
    } cases[] = {{GY_MILLISECOND, 1, 1},
                 {10 * GY_SECOND, 10000, 2},
                 {INT64_C(131072) * GY_SECOND, 131072000, 32767},
                 {INT64_C(2147484) * GY_SECOND, INT_MAX, 32767},
                 {(INT64_C(1) << 32) * GY_MILLISECOND + 4 * GY_MILLISECOND, INT_MAX, 32767}, /* 4 ms in 32 bits */
                 {GY_TIMEOUT_MOST, INT_MAX, 32767}};

    for (size_t i = 0; i < GY_ARRAY_LENGTH(cases); i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        gy_socket_tune(fd, cases[i].timeout);
        cr_assert_eq(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), cases[i].silence, "case %zu", i);
        cr_assert_eq(option(fd, IPPROTO_TCP, TCP_KEEPIDLE), cases[i].idle, "case %zu", i);
        cr_assert_eq(option(fd, IPPROTO_TCP, TCP_KEEPINTVL), cases[i].idle, "case %zu", i);
        cr_assert_eq(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
        close(fd);
    }
}
