/* The state of each rank of a job, from two snapshots, and which rank delays which others. */
#ifndef GYRE_TOOLS_TOP_JUDGE_H
#define GYRE_TOOLS_TOP_JUDGE_H

#include "top/status_pages.h"

enum top_is {
    TOP_MOVING,    /* inside gyre and getting on, or busy with one call after the other */
    TOP_WAITING,   /* inside gyre, for ranks that an operation misses */
    TOP_OUTSIDE,   /* no operation under way: it computes, or does something else */
    TOP_AWAY,      /* an operation is under way, and its rank is not inside gyre */
    TOP_STOPPED,   /* by a signal or a debugger */
    TOP_FAILED,    /* its world has ended with an error */
    TOP_GONE,      /* its process has ended */
    TOP_UNSEEN,    /* on this host, and its page may not be looked at */
    TOP_ELSEWHERE, /* on another host */
};

struct top_state {
    enum top_is is;
    const struct top_rank *rank;            /* of the second look; NULL: no page */
    const struct gyre_page_record *running; /* the oldest operation under way, or NULL */
    uint32_t comm;                          /* where */
    const struct gyre_page_member *member;
    double seconds;           /* that it has waited or been away; negative: not known */
    double operations, bytes; /* a second */
    int holds_up;             /* ranks that wait for it, at first or second hand */
    double longest;           /* of their waits */
};

struct top_job {
    uint64_t id;
    int size, seen, host;
    struct top_state *states; /* [size] */
    bool circle;              /* ranks wait for one another, and no other rank is the cause */
};

/* A wait below this is normal. */
#define TOP_PATIENCE_S 1.0

/* Judges the job that begins at after->ranks[*at_p], and moves *at_p behind it. Returns false if out of memory. */
bool top_judge(const struct top_look *before, const struct top_look *after, size_t *at_p, struct top_job *job_p);
void top_job_free(struct top_job *job);
/* True if the second snapshot comes too early to tell whether some rank is inside gyre. */
bool top_undecided(const struct top_look *before, const struct top_look *after);

#endif
