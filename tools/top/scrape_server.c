/* A request is read up to its empty line or the limits, and answered by its first line. The connection is closed after
 * the answer, so there is nothing to keep between requests. */
#include "top/scrape_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MOST 4096
#define CLIENT_MS 1000

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

int top_scrape_listen(int port)
{
    const int on = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 8) == 0)
        return fd;
    int errnum = errno;
    if (fd >= 0)
        close(fd);
    errno = errnum;
    return -1;
}

static bool wait_for(int fd, short events, int64_t deadline_ms)
{
    struct pollfd entry = {.fd = fd, .events = events};
    int64_t left = deadline_ms - now_ms();
    return left > 0 && poll(&entry, 1, (int)left) == 1;
}

/* Reads a request up to its empty line. False: it is too long or too slow. */
static bool read_request(int fd, char *text, int64_t deadline_ms)
{
    size_t held = 0;
    while (held < REQUEST_MOST && wait_for(fd, POLLIN, deadline_ms)) {
        ssize_t got = recv(fd, text + held, REQUEST_MOST - held, 0);
        if (got <= 0)
            return false;
        held += (size_t)got;
        text[held] = '\0';
        if (strstr(text, "\r\n\r\n") || strstr(text, "\n\n"))
            return true;
    }
    return false;
}

static void send_all(int fd, const char *bytes, size_t count, int64_t deadline_ms)
{
    while (count > 0 && wait_for(fd, POLLOUT, deadline_ms)) {
        ssize_t done = send(fd, bytes, count, MSG_NOSIGNAL);
        if (done <= 0)
            return;
        bytes += done;
        count -= (size_t)done;
    }
}

static bool asks_for_metrics(const char *request)
{
    static const char *const lines[] = {"GET /metrics ", "GET /metrics?", "GET / "};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strncmp(request, lines[i], strlen(lines[i])) == 0)
            return true;
    return false;
}

static void answer(int fd, const char *text, size_t length)
{
    char request[REQUEST_MOST + 1], head[256];
    int64_t deadline_ms = now_ms() + CLIENT_MS;
    const char *status = "400 Bad Request";
    if (read_request(fd, request, deadline_ms)) {
        bool metrics = asks_for_metrics(request);
        status = !metrics ? "404 Not Found" : text ? "200 OK" : "503 Service Unavailable";
        length = metrics && text ? length : 0;
    } else {
        length = 0;
    }
    int bytes = snprintf(head, sizeof head,
                         "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
                         "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                         status, length);
    send_all(fd, head, (size_t)bytes, deadline_ms);
    send_all(fd, text, length, deadline_ms);
    shutdown(fd, SHUT_WR);
}

void top_scrape_serve(int listener, const char *text, size_t length, long milliseconds)
{
    int64_t deadline_ms = now_ms() + milliseconds;
    while (wait_for(listener, POLLIN, deadline_ms)) {
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0)
            continue;
        answer(fd, text, length);
        close(fd);
    }
}
