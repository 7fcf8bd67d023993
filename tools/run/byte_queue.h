/* Bytes that wait for a descriptor to take them, so that no slow reader blocks the loop that writes to it. */
#ifndef GYRE_TOOLS_BYTE_QUEUE_H
#define GYRE_TOOLS_BYTE_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

struct gy_byte_queue {
    unsigned char *bytes; /* malloc */
    size_t held, room;
};

/* Appends bytes. False: there is no memory. */
bool gy_byte_queue_put(struct gy_byte_queue *queue, const void *bytes, size_t count);
/* Writes once to a descriptor that poll() reports as writable, at most 4096 bytes: a pipe that is writable takes them
 * without blocking. False: the descriptor takes no more, errno; the bytes are dropped then. */
bool gy_byte_queue_write(struct gy_byte_queue *queue, int fd);
void gy_byte_queue_free(struct gy_byte_queue *queue); /* overwrites what it held */

#endif
