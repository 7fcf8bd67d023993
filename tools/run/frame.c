#include "run/frame.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char kinds[] = {GY_FRAME_JOB,    GY_FRAME_MEET,  GY_FRAME_FAILURE, GY_FRAME_SIGNAL, GY_FRAME_READY,
                             GY_FRAME_OUTPUT, GY_FRAME_ERROR, GY_FRAME_END,     GY_FRAME_PROBLEM};

void gy_frame_head(unsigned char *head, enum gy_frame_kind kind, size_t length)
{
    head[0] = (unsigned char)kind;
    for (unsigned i = 0; i < 4; i++)
        head[1 + i] = (unsigned char)(length >> (8 * i));
}

/* Returns the length of the payload; −1: the kind is unknown or the length beyond its limit. */
static ssize_t parse_head(const unsigned char *head)
{
    uint32_t length = 0;
    for (unsigned i = 0; i < 4; i++)
        length |= (uint32_t)head[1 + i] << (8 * i);
    if (!memchr(kinds, head[0], sizeof kinds))
        return -1;
    return length <= (head[0] == GY_FRAME_JOB ? GY_FRAME_JOB_MOST : GY_FRAME_PAYLOAD_MOST) ? (ssize_t)length : -1;
}

ssize_t gy_frame_parse(unsigned char *bytes, size_t held, struct gy_frame *frame_p)
{
    if (held < GY_FRAME_HEAD)
        return 0;
    ssize_t length = parse_head(bytes);
    if (length < 0)
        return -1;
    if (held - GY_FRAME_HEAD < (size_t)length)
        return 0;
    *frame_p = (struct gy_frame){(enum gy_frame_kind)bytes[0], (size_t)length, bytes + GY_FRAME_HEAD};
    return (ssize_t)GY_FRAME_HEAD + length;
}

static bool write_all(int fd, const unsigned char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = write(fd, bytes, count);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        count -= (size_t)done;
    }
    return true;
}

bool gy_frame_write(int fd, enum gy_frame_kind kind, const void *payload, size_t length)
{
    unsigned char whole[GY_FRAME_MOST];
    if (length > GY_FRAME_PAYLOAD_MOST) {
        errno = EMSGSIZE;
        return false;
    }
    gy_frame_head(whole, kind, length);
    if (length > 0)
        memcpy(whole + GY_FRAME_HEAD, payload, length);
    return write_all(fd, whole, GY_FRAME_HEAD + length);
}

static bool read_all(int fd, unsigned char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t got = read(fd, bytes, count);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        bytes += got;
        count -= (size_t)got;
    }
    return true;
}

unsigned char *gy_frame_read(int fd, enum gy_frame_kind kind, size_t *length_p)
{
    unsigned char head[GY_FRAME_HEAD];
    if (!read_all(fd, head, sizeof head) || head[0] != (unsigned char)kind)
        return NULL;
    ssize_t length = parse_head(head);
    unsigned char *payload = length < 0 ? NULL : malloc((size_t)length + 1);
    if (payload && !read_all(fd, payload, (size_t)length)) {
        free(payload);
        return NULL;
    }
    *length_p = payload ? (size_t)length : 0;
    return payload;
}

bool gy_frame_texts(const struct gy_frame *frame, const char **texts, size_t count)
{
    const unsigned char *at = frame->payload;
    size_t left = frame->length;
    for (size_t i = 0; i < count; i++) {
        const unsigned char *end = left > 0 ? memchr(at, 0, left) : NULL;
        if (!end)
            return false;
        texts[i] = (const char *)at;
        left -= (size_t)(end - at) + 1;
        at = end + 1;
    }
    return left == 0;
}
