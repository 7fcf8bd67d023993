/* Copies one output stream of one rank. With a label each line begins with the rank, and lines stay whole: lines of two
 * ranks never mix. */
#ifndef GYRE_TOOLS_LABEL_H
#define GYRE_TOOLS_LABEL_H

#include <stdbool.h>
#include <stddef.h>

struct gy_label {
    int rank;        /* in the world */
    bool plain;      /* no label: bytes are passed as they come */
    char frame;      /* kind of the frames (frame.h) that `out` gets, 0: bytes */
    int in, out;     /* in: the pipe, −1: closed; out: our stdout or stderr */
    size_t held;     /* bytes of an unfinished line */
    char line[4096]; /* a longer line goes out in pieces */
};

void gy_label_open(struct gy_label *label, int rank, int in, int out);
void gy_label_pass(struct gy_label *label);  /* what is there now; the pipe is readable or at its end */
void gy_label_close(struct gy_label *label); /* what is left, without waiting */

#endif
