#include "run/byte_queue.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No realloc: it would leave a copy of a secret in freed memory. */
static bool grow(struct gy_byte_queue *queue, size_t count)
{
    size_t room = 2 * (queue->held + count);
    unsigned char *bytes = malloc(room);
    if (!bytes)
        return false;
    if (queue->held > 0)
        memcpy(bytes, queue->bytes, queue->held);
    size_t held = queue->held;
    gy_byte_queue_free(queue);
    *queue = (struct gy_byte_queue){bytes, held, room};
    return true;
}

bool gy_byte_queue_put(struct gy_byte_queue *queue, const void *bytes, size_t count)
{
    if (count == 0)
        return true;
    if (count > queue->room - queue->held && !grow(queue, count))
        return false;
    memcpy(queue->bytes + queue->held, bytes, count);
    queue->held += count;
    return true;
}

bool gy_byte_queue_write(struct gy_byte_queue *queue, int fd)
{
    ssize_t done = write(fd, queue->bytes, queue->held < PIPE_BUF ? queue->held : PIPE_BUF);
    if (done < 0 && (errno == EINTR || errno == EAGAIN))
        return true;
    if (done <= 0) {
        queue->held = 0;
        return false;
    }
    queue->held -= (size_t)done;
    memmove(queue->bytes, queue->bytes + done, queue->held);
    return true;
}

void gy_byte_queue_free(struct gy_byte_queue *queue)
{
    if (queue->bytes)
        explicit_bzero(queue->bytes, queue->room);
    free(queue->bytes);
    *queue = (struct gy_byte_queue){0};
}
