/* Bytes gather in `line` up to a newline and leave in one write. Without a label they leave at once. */
#include "run/line_prefix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "run/frame.h"

void gy_label_open(struct gy_label *label, int rank, int in, int out)
{
    *label = (struct gy_label){.rank = rank, .in = in, .out = out};
    fcntl(in, F_SETFL, O_NONBLOCK);
}

static void put(const struct gy_label *label, const char *bytes, size_t count)
{
    if (label->frame) {
        (void)gy_frame_write(label->out, (enum gy_frame_kind)label->frame, bytes, count);
        return;
    }
    while (count > 0) {
        ssize_t done = write(label->out, bytes, count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return; /* the reader of our output has closed it */
        bytes += done;
        count -= (size_t)done;
    }
}

static void put_line(const struct gy_label *label, const char *text, size_t length)
{
    char whole[sizeof label->line + 32];
    int head = snprintf(whole, 32, "[%d] ", label->rank);
    memcpy(whole + head, text, length);
    size_t end = (size_t)head + length;
    if (length == 0 || text[length - 1] != '\n')
        whole[end++] = '\n';
    put(label, whole, end);
}

static void put_lines(struct gy_label *label)
{
    size_t start = 0;
    if (label->plain) {
        put(label, label->line, label->held);
        label->held = 0;
        return;
    }
    for (;;) {
        const char *end = memchr(label->line + start, '\n', label->held - start);
        if (!end)
            break;
        size_t next = (size_t)(end - label->line) + 1;
        put_line(label, label->line + start, next - start);
        start = next;
    }
    label->held -= start;
    memmove(label->line, label->line + start, label->held);
    if (label->held == sizeof label->line) {
        put_line(label, label->line, label->held);
        label->held = 0;
    }
}

static bool pass_once(struct gy_label *label)
{
    ssize_t got = read(label->in, label->line + label->held, sizeof label->line - label->held);
    if (got < 0)
        return false;
    if (got == 0) {
        if (label->held)
            put_line(label, label->line, label->held);
        label->held = 0;
        close(label->in);
        label->in = -1;
        return false;
    }
    label->held += (size_t)got;
    put_lines(label);
    return true;
}

void gy_label_pass(struct gy_label *label)
{
    if (label->in >= 0)
        pass_once(label);
}

void gy_label_close(struct gy_label *label)
{
    while (label->in >= 0 && pass_once(label))
        ;
    if (label->in < 0)
        return;
    if (label->held)
        put_line(label, label->line, label->held);
    close(label->in);
    label->in = -1;
}
