/* One host of a job, as gyre-run sees it: the process that connects to its agent, and what has arrived from there. */
#ifndef GYRE_TOOLS_REMOTE_HOST_H
#define GYRE_TOOLS_REMOTE_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "run/agent_report.h"
#include "run/byte_queue.h"
#include "run/frame.h"
#include "run/remote_shell.h"

struct gy_remote_host {
    const char *name;
    int first, ranks; /* first to first + ranks − 1 */
    struct gy_remote_process process;
    bool answered; /* its agent has written its first line */
    bool ready;    /* its agent waits for the address of rank 0 */
    bool reaped;
    int ended;  /* ranks of it whose end has been reported */
    int status; /* of the process, as waitpid() reports it, once it is reaped */
    struct gy_byte_queue orders;
    char address[GY_HOST_ADDRESS_BYTES]; /* at which ssh reached it, "": not known */
    char port[8];                        /* reserved for rank 0, "": none */
    char said[512];                      /* last line on its standard error, not printed yet */
    size_t said_length;
    bool said_whole; /* `said` is a whole line */
    unsigned char bytes[GY_FRAME_MOST];
    size_t held;
};

/* What to do with a frame. False: the frame is not allowed, and the host is taken for lost. */
typedef bool gy_remote_host_handler(void *user, struct gy_remote_host *host, const struct gy_frame *frame);

/* Appends a frame to the host's orders. False: there is no memory. */
bool gy_remote_host_order(struct gy_remote_host *host, enum gy_frame_kind kind, const void *payload, size_t length);
/* Writes orders to a host that poll() reports as writable. */
void gy_remote_host_write(struct gy_remote_host *host);
/* Reads what has arrived and calls `handler` for each frame. Closes the descriptor at the end of file, or when the
 * bytes are no frames. Returns NULL, or what is wrong with the bytes. */
const char *gy_remote_host_read(struct gy_remote_host *host, gy_remote_host_handler *handler, void *user);
/* Reads the standard error of ssh and prints its lines with the host's name. The last one is held back until its agent
 * has answered: it may be the reason why the host cannot be reached. */
void gy_remote_host_listen(struct gy_remote_host *host);
/* Closes the pipe of orders: an agent ends its ranks then. */
void gy_remote_host_release(struct gy_remote_host *host);
void gy_remote_host_close(struct gy_remote_host *host);

#endif
