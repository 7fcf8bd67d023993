/* Which way private operands go to other ranks of the host: through slots, copied twice by the processors, or once by the kernel
 * (mapped.h). Which is quicker is the machine's affair: entering the kernel and finding pages takes three times as long on one
 * as on another, and lines that another core has just written come from a cache that both share, or from afar, as the hypervisor
 * has placed the two. So both are tried on the program's own calls, and again from time to time.
 *
 *   judge     a rank that takes: the root it goes to, the rank after the root it comes from, rank 0 where everyone takes
 *   a trial   some blocking calls of one size by the way in use, then some by the other; each way counts by its quickest
 *   verdict   a bit of the judge's window, for a collective and an octave of sizes, which those who give look at
 *
 * The verdict is a hint: who gives decides alone (mapped.h), and no bit of a result depends on it. Where ranks share cores the
 * clock says nothing, and the kernel's way is taken. */
#ifndef GY_COLLECTIVES_WAYS_H
#define GY_COLLECTIVES_WAYS_H

#include "collectives/plan.h"
#include "transport/segment.h"

struct gyre_comm;
struct gyre_request;

/* What a judge knows of a collective and an octave of sizes. */
struct gy_way {
    uint32_t calls;           /* since the last trial; at first none has been */
    uint32_t pause;           /* calls from that to the next */
    uint32_t least[2];        /* nanoseconds, through slots and through the kernel */
    size_t bytes;             /* of the calls that the trial compares */
    uint32_t others;          /* of other sizes, since it began */
    uint8_t seen[2];          /* calls of the trial that went so */
    bool slots, tried, trial; /* the way in use; which the trial is at; is there one? */
};

struct gy_ways {
    struct gy_way way[GY_COLLECTIVES][GY_WAY_OCTAVES];
    bool asks;               /* a blocking call is under way that had the context to itself; no other is counted */
    struct gy_way *measured; /* the one that the call under way is a part of a trial of; NULL: of none */
    int64_t began;
    size_t bytes;
    int giver, collective, octave;
};

/* At the launch of an operation for which both ways are open: may this rank's input be read through the kernel? */
bool gy_ways_reads(struct gyre_request *request);
/* Around a blocking call, which counts if it has the context to itself when it begins. */
void gy_ways_begin(struct gyre_comm *comm);
void gy_ways_end(struct gyre_comm *comm, bool succeeded);

/* The rest is for the test. */

/* Counts a call of so many bytes; true: a trial is under way and wants to know how long it takes. */
bool gy_way_asks(struct gy_way *way, size_t bytes);
/* It has taken so long, through slots or not. Through slots from now on? */
bool gy_way_told(struct gy_way *way, size_t bytes, bool slots, int64_t ns);

#endif
