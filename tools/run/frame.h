/* Frames between gyre-run and its agents on other hosts: one byte of kind, four bytes of length (little-endian), and
 * the payload. Every length is checked against the limit of its kind before a byte of the payload is read. */
#ifndef GYRE_TOOLS_FRAME_H
#define GYRE_TOOLS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define GY_FRAME_HEAD 5u
#define GY_FRAME_PAYLOAD_MOST 4352u   /* of all kinds but GY_FRAME_JOB */
#define GY_FRAME_JOB_MOST (1u << 20u) /* payload of GY_FRAME_JOB */
#define GY_FRAME_MOST (GY_FRAME_HEAD + GY_FRAME_PAYLOAD_MOST)

enum gy_frame_kind {
    /* From gyre-run to the agent. */
    GY_FRAME_JOB = 'J',     /* host_part.h; the first frame */
    GY_FRAME_MEET = 'M',    /* address and port of rank 0, each with a final 0: the ranks start */
    GY_FRAME_FAILURE = 'F', /* empty: a rank of another host failed */
    GY_FRAME_SIGNAL = 'S',  /* one byte, the number: signal and end all ranks */
    /* From the agent to gyre-run. */
    GY_FRAME_READY = 'H',   /* address at which the host was reached, port reserved for rank 0, each with a final 0 */
    GY_FRAME_OUTPUT = 'O',  /* bytes for the standard output */
    GY_FRAME_ERROR = 'E',   /* bytes for the standard error */
    GY_FRAME_END = 'D',     /* the end of a rank, agent_report.h */
    GY_FRAME_PROBLEM = 'P', /* exit status, text: the agent cannot start its ranks */
};

struct gy_frame {
    enum gy_frame_kind kind;
    size_t length;
    unsigned char *payload;
};

/* Writes the head of a frame: GY_FRAME_HEAD bytes. */
void gy_frame_head(unsigned char *head, enum gy_frame_kind kind, size_t length);
/* Parses the first frame of `held` bytes. Returns its number of bytes; 0: more bytes are needed; −1: the bytes are no
 * frame. The payload lies inside `bytes`. */
ssize_t gy_frame_parse(unsigned char *bytes, size_t held, struct gy_frame *frame_p);
/* Writes a frame and waits as long as the descriptor does. False: errno. */
bool gy_frame_write(int fd, enum gy_frame_kind kind, const void *payload, size_t length);
/* Reads one frame of kind `kind` and waits for it. Returns its payload, for free(), or NULL: end of file, an error, or
 * another kind. */
unsigned char *gy_frame_read(int fd, enum gy_frame_kind kind, size_t *length_p);
/* Splits a payload of `count` texts, each with a final 0. False: it has another form. */
bool gy_frame_texts(const struct gy_frame *frame, const char **texts, size_t count);

#endif
