/* The status page of a rank: the state that other processes may read while the rank runs. gyre-top reads it; other
 * programs may read it too.
 *
 * Every world of a process keeps one page, a memfd called GYRE_PAGE_NAME. It shows as a link "/memfd:gyre-page
 * (deleted)" in /proc/PID/fd and ends with its process. Every process that may open that link (same user, or root) can
 * read the page with pread; a hole reads as zeros. The rank does not answer a request, so the page of a rank that is
 * stopped or computes can be read like any other.
 *
 * The rank is the only writer and never waits for a reader. So the values read may be slightly old, or half from one
 * update and half from the next. Check a value before using it as an index. A wait entry holds only while its record
 * is running. Times are CLOCK_MONOTONIC in nanoseconds. `version` changes when the layout does; read no version that
 * the reader does not know. */
#ifndef GYRE_PAGE_H
#define GYRE_PAGE_H

#include <stdint.h>

#define GYRE_PAGE_NAME "gyre-page"
#define GYRE_PAGE_MAGIC UINT64_C(0x6567617065727967) /* "gyrepage" */
#define GYRE_PAGE_VERSION 2
#define GYRE_PAGE_COMMS 16 /* communicators that are shown; further ones are not */
#define GYRE_PAGE_RECORDS 256
#define GYRE_PAGE_WAITS 16
#define GYRE_PAGE_NAMES 32

#define GYRE_PAGE_VARYING 0x80u               /* in `collective`: counts differ from rank to rank, `count` is a hash */
#define GYRE_PAGE_MESSAGE (UINT64_C(1) << 63) /* in `sequence`: it counts messages from one rank to another */

enum gyre_page_state { GYRE_PAGE_RUNNING, GYRE_PAGE_DONE, GYRE_PAGE_FAILED };

/* One of the last operations of a communicator: its flight recorder. */
struct gyre_page_record {
    uint64_t serial;      /* from 1; 0: unused. Record s is at s % GYRE_PAGE_RECORDS */
    uint64_t sequence;    /* of the collective, or of the message */
    uint64_t count;       /* elements */
    int64_t began, ended; /* 0: not known, the shortest way reads no clock; ended 0 also while it runs */
    int32_t root;         /* of a message: the rank that sends it */
    int32_t waited_for;   /* where it failed: rank of the communicator's world; −1 none */
    uint8_t collective;   /* index of page.collective */
    uint8_t dtype, op;    /* gyre_dtype, gyre_op, or a number of the user's own operation */
    uint8_t algorithm;    /* index of page.algorithm */
    uint8_t state;
    uint8_t unused[3];
};

struct gyre_page_comm {
    uint32_t number;    /* the communicator's, the same on all of its ranks */
    int32_t rank, size; /* in it */
    uint32_t unused;
    char name[64]; /* as gyre_comm_set gave it */
    uint64_t started, done, failed, bytes;
    uint64_t window_bytes; /* part of bytes: through shared windows */
    struct gyre_page_record record[GYRE_PAGE_RECORDS];
};

/* A rank that an operation under way misses, or a one-sided call, which has no record. */
struct gyre_page_wait {
    uint64_t serial; /* of its record; 0: a one-sided call */
    int64_t since;   /* nothing of the operation has moved here since then; 0: only just */
    uint32_t comm;   /* index of page.comm */
    int32_t rank;    /* in the world; of a one-sided call −1: any */
    uint32_t window; /* of a one-sided call: the number of its window, from 1; else 0 */
    uint32_t unused;
};

struct gyre_page_member {
    int32_t host, process; /* number of its host, from 0; its process there */
};

struct gyre_page {
    uint64_t magic;
    uint32_t version, bytes; /* bytes of this struct; members follow */
    uint64_t job;
    int32_t rank, size, host, process;
    int64_t made;
    int32_t status, culprit; /* gyre_status that ended the world, 0: none; the rank to blame or −1 */
    char collective[GYRE_PAGE_NAMES][24], algorithm[GYRE_PAGE_NAMES][24];
    uint32_t comms; /* bit i: comm[i] is in use */
    uint32_t waits; /* of wait[] */
    uint64_t beat;  /* grows while the rank waits inside gyre, many times a second */
    int64_t turned; /* when it did */
    struct gyre_page_wait wait[GYRE_PAGE_WAITS];
    struct gyre_page_comm comm[GYRE_PAGE_COMMS];
};
/* Behind it: struct gyre_page_member [size] */

#endif
