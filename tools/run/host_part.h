/* The part of a job that one host runs, as gyre-run describes it to the host's agent: payload of GY_FRAME_JOB. */
#ifndef GYRE_TOOLS_HOST_PART_H
#define GYRE_TOOLS_HOST_PART_H

#include <stdbool.h>
#include <stddef.h>

struct gy_host_part {
    const char *folder; /* working directory of the ranks */
    const char *secret; /* of the job */
    int first, ranks;   /* the host's ranks are first to first + ranks − 1 */
    int world;          /* ranks of the job */
    int grace_ms;       /* how long the ranks have to end after a failure, and again after SIGTERM */
    bool label, bind;
    const char *gpus;         /* NULL: not set; else as in struct gy_launch */
    const char **argv;        /* the program and its arguments, then NULL */
    const char **environment; /* NAME=VALUE, then NULL */
};

/* Returns the payload, for free(), or NULL: errno, EMSGSIZE where it is longer than a frame may be. */
unsigned char *gy_host_part_encode(const struct gy_host_part *part, size_t *length_p);
/* Decodes a payload; the texts of *part_p lie inside it. Returns NULL, or what is wrong with it. */
const char *gy_host_part_decode(char *payload, size_t length, struct gy_host_part *part_p);
void gy_host_part_free(struct gy_host_part *part);

#endif
