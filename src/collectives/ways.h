/* Two questions whose answer is the machine's affair, and how the clock answers them.
 *
 *   question                                             first way                    second way
 *   how operands go to other ranks of the host           once, by the kernel, or      through slots, copied twice by the
 *                                                        mapped (mapped.h)            processors; of an all_reduce, where the
 *                                                                                     first way reads all of them twice, these
 *                                                                                     two the other way round
 *   how a long result of a reduction is written          past the caches              into them
 *
 * Entering the kernel and finding pages takes three times as long on one machine as on another, and lines that another core has
 * just written come from a cache that both share, or from afar, as the hypervisor has placed the two. Whether a cache keeps the
 * output of one call until the next, so that nothing is read in order to be overwritten, hangs on how much of it is this program's.
 * So both ways are tried on the program's own calls, and again from time to time.
 *
 *   judge     a rank that takes: the root it goes to, the rank after the root it comes from, rank 0 where everyone takes
 *   a trial   some blocking calls of one size by the way in use, then some by the other; each way counts by its quickest. Of
 *             long calls a program makes few, each of which is worth more: fewer make a trial, and fewer lie between two
 *   verdict   a bit of the judge's window, for a collective and an octave of sizes, which everyone looks at
 *
 * The verdict is a hint: every rank decides alone how it gives and how it writes, and no bit of a result depends on it. Where
 * ranks share cores the kernel's way is not open (mapped.h). */
#ifndef GY_COLLECTIVES_WAYS_H
#define GY_COLLECTIVES_WAYS_H

#include "collectives/plan.h"
#include "transport/segment.h"

struct gyre_comm;
struct gyre_request;

/* What a judge knows of a collective and an octave of sizes. */
struct gy_way {
    uint32_t calls;            /* since the last trial; at first none has been */
    uint32_t pause;            /* calls from that to the next */
    uint32_t least[2];         /* nanoseconds, by the first way and by the second */
    size_t bytes;              /* of the calls that the trial compares */
    uint32_t others;           /* of other sizes or by the other way, since it began */
    uint8_t seen[2];           /* calls of the trial that went so */
    bool second, tried, trial; /* the way in use; which the trial is at; is there one? */
};

enum gy_question { GY_HOW_GIVEN, GY_HOW_WRITTEN, GY_QUESTIONS };

struct gy_ways {
    struct gy_way way[GY_QUESTIONS][GY_COLLECTIVES][GY_WAY_OCTAVES];
    bool asks;               /* a blocking call is under way that had the context to itself; no other is counted */
    struct gy_way *measured; /* the one that the call under way is a part of a trial of; NULL: of none */
    int64_t began;
    size_t bytes;
    enum gy_question question;
    int giver, collective, octave;
    bool written; /* by the second way, if that is the question */
    bool mapped;  /* the call may go through slots although what is given lies in memory of gyre */
};

/* At the launch of an operation for which both ways are open: may this rank's input be read where it lies? That is a question
 * of private memory, and of memory of gyre if `mapped`. */
bool gy_ways_reads(struct gyre_request *request, bool mapped);
/* When an operation begins whose output, so many bytes on this rank, had better be written past the caches if they do not keep it:
 * had it? */
bool gy_ways_streams(struct gyre_request *request, size_t bytes);
/* Around a blocking call, which counts if it has the context to itself when it begins. */
void gy_ways_begin(struct gyre_comm *comm);
void gy_ways_end(struct gyre_comm *comm, bool succeeded);

/* The rest is for the test. */

/* Counts a call of so many bytes; true: a trial is under way and wants to know how long it takes. */
bool gy_way_asks(struct gy_way *way, size_t bytes);
/* It has gone by no way of which the trial is, as the other rank cannot go that way or has reasons not to. By the second from now on? */
bool gy_way_untold(struct gy_way *way);
/* It has taken so long, by the second way or the first. By the second from now on? */
bool gy_way_told(struct gy_way *way, size_t bytes, bool second, int64_t ns);

#endif
