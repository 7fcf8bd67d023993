/* A shell of the host may write lines of its own before the agent does. They are printed with the host's name. */
#include "run/remote_host.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/agent.h"

bool gy_remote_host_order(struct gy_remote_host *host, enum gy_frame_kind kind, const void *payload, size_t length)
{
    unsigned char head[GY_FRAME_HEAD];
    gy_frame_head(head, kind, length);
    return host->process.in < 0 ||
           (gy_byte_queue_put(&host->orders, head, sizeof head) && gy_byte_queue_put(&host->orders, payload, length));
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

void gy_remote_host_release(struct gy_remote_host *host)
{
    close_one(&host->process.in);
    gy_byte_queue_free(&host->orders);
}

void gy_remote_host_write(struct gy_remote_host *host)
{
    if (!gy_byte_queue_write(&host->orders, host->process.in))
        gy_remote_host_release(host);
}

static void drop(struct gy_remote_host *host, size_t count)
{
    host->held -= count;
    memmove(host->bytes, host->bytes + count, host->held);
}

/* Writes one line, without what a terminal would take for a command. */
static void print_line(const struct gy_remote_host *host, const char *line, size_t length)
{
    char text[600];
    size_t used = length < sizeof text ? length : sizeof text - 1;
    for (size_t i = 0; i < used; i++)
        text[i] = (char)((unsigned char)line[i] < ' ' && line[i] != '\t' ? ' ' : line[i]);
    text[used] = '\0';
    while (used > 0 && text[used - 1] == ' ')
        text[--used] = '\0';
    if (used > 0)
        fprintf(stderr, "gyre-run: %s: %s\n", host->name, text);
}

/* Takes the lines before the frames. Returns NULL, or what is wrong. */
static const char *take_lines(struct gy_remote_host *host)
{
    while (!host->answered) {
        const unsigned char *end = memchr(host->bytes, '\n', host->held);
        size_t length = end ? (size_t)(end - host->bytes) : host->held;
        if (!end && host->held < sizeof host->bytes)
            return NULL;
        if (length == sizeof GY_AGENT_LINE - 1 && memcmp(host->bytes, GY_AGENT_LINE, length) == 0)
            host->answered = true;
        else if (length >= sizeof GY_AGENT_LINE_ANY - 1 &&
                 memcmp(host->bytes, GY_AGENT_LINE_ANY, sizeof GY_AGENT_LINE_ANY - 1) == 0)
            return "has another version of gyre-run";
        else
            print_line(host, (const char *)host->bytes, length);
        drop(host, end ? length + 1 : length);
    }
    return NULL;
}

static const char *take_frames(struct gy_remote_host *host, gy_remote_host_handler *handler, void *user)
{
    struct gy_frame frame;
    ssize_t used;
    const char *wrong = take_lines(host);
    if (wrong || !host->answered)
        return wrong;
    while ((used = gy_frame_parse(host->bytes, host->held, &frame)) > 0) {
        if (!handler(user, host, &frame))
            return "sent a message that gyre-run does not know";
        drop(host, (size_t)used);
    }
    return used < 0 ? "sent bytes that are no message of gyre-run" : NULL;
}

const char *gy_remote_host_read(struct gy_remote_host *host, gy_remote_host_handler *handler, void *user)
{
    const char *wrong = NULL;
    ssize_t got = read(host->process.out, host->bytes + host->held, sizeof host->bytes - host->held);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return NULL;
    if (got > 0) {
        host->held += (size_t)got;
        wrong = take_frames(host, handler, user);
    }
    if (got <= 0 || wrong)
        close_one(&host->process.out);
    return wrong;
}

/* Takes one byte of the standard error. */
static void hear(struct gy_remote_host *host, char byte)
{
    if (host->said_whole && byte != '\n' && byte != '\r') {
        print_line(host, host->said, host->said_length);
        host->said_length = 0;
        host->said_whole = false;
    }
    if (byte == '\n')
        host->said_whole = host->said_length > 0;
    else if (byte != '\r' && host->said_length < sizeof host->said - 1)
        host->said[host->said_length++] = (char)((unsigned char)byte < ' ' ? ' ' : byte);
    host->said[host->said_length] = '\0';
}

void gy_remote_host_listen(struct gy_remote_host *host)
{
    char bytes[1024];
    ssize_t got = read(host->process.err, bytes, sizeof bytes);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    for (ssize_t i = 0; i < got; i++)
        hear(host, bytes[i]);
    if (host->answered && host->said_whole) {
        print_line(host, host->said, host->said_length);
        host->said_length = 0;
        host->said_whole = false;
    }
    if (got <= 0)
        close_one(&host->process.err);
}

void gy_remote_host_close(struct gy_remote_host *host)
{
    gy_remote_host_release(host);
    close_one(&host->process.out);
    close_one(&host->process.err);
}
