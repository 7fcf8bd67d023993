/* The status pages of running ranks (gyre/page.h), found and copied. In a copy every value that is used as an index
 * has been checked, and every text is terminated. */
#ifndef GYRE_TOOLS_TOP_PAGES_H
#define GYRE_TOOLS_TOP_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <gyre/gyre.h>
#include <gyre/page.h>

/* One rank at one moment. */
struct top_rank {
    int64_t when; /* of the copy, CLOCK_MONOTONIC, ns */
    char process; /* state of the process in /proc/PID/stat: R, S, D, T, Z, ..., or 0: it is gone */
    struct gyre_page page;
    struct gyre_page_member *members; /* [page.size] */
};

/* One snapshot of all ranks of this host that may be read, ordered by job and rank. */
struct top_look {
    struct top_rank **ranks;
    size_t count;
    size_t strange; /* pages of another version */
};

/* False: out of memory. */
bool top_look(struct top_look *look_p);
void top_look_free(struct top_look *look);
/* Returns the same rank in another snapshot; NULL: not there. */
const struct top_rank *top_look_find(const struct top_look *look, uint64_t job, int rank);

/* Returns the record of a communicator; NULL: overwritten. */
const struct gyre_page_record *top_record(const struct gyre_page_comm *comm, uint64_t serial);
/* Returns the oldest operation under way, and its communicator in *comm_p; NULL: none. */
const struct gyre_page_record *top_running(const struct gyre_page *page, uint32_t *comm_p);
/* "all_reduce #17 (float32 x 1000, sum, ring)" */
void top_describe(const struct gyre_page *page, const struct gyre_page_record *record, char *text_p, size_t bytes);

#endif
