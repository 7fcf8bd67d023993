/* Two shares: of the communication, and of the part of it that could be hidden. If noise takes them out of their
 * range, or their quartiles too far apart, the reason is printed instead of a number. */
#include "train/overlap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Quartiles further apart than this have no meaning. */
#define WIDEST 0.5
/* Times of consecutive steps differ by this much. */
#define ENOUGH 1.05

double overlap_of_possible(const struct gyre_nn_overlap *overlap)
{
    return (overlap->serial - overlap->overlapped) /
           fmin(overlap->communication, overlap->serial - overlap->communication);
}

const char *overlap_doubt(const struct gyre_nn_overlap *overlap)
{
    double possible = overlap_of_possible(overlap);
    if (!isfinite(possible) || possible > ENOUGH)
        return "more was saved than there is to hide: the machine's speed changed between the steps that are compared; "
               "measure again with nothing else running";
    if (overlap->hidden < 0 || possible < 0)
        return "steps that overlap took longer than steps that wait, by noise or because moving the bytes takes the "
               "cores "
               "that compute";
    if (overlap->hidden_high - overlap->hidden_low > WIDEST)
        return "the quartiles are far apart: the machine was too busy to tell; measure again with nothing else running";
    return NULL;
}

void overlap_print(const struct gyre_nn_overlap *overlap)
{
    const char *doubt = overlap_doubt(overlap), *local = getenv("LOCAL_WORLD_SIZE");
    if (doubt)
        printf("overlap: no share of hidden communication can be given: %s\n", doubt);
    else
        printf(
            "overlap: %.0f %% of the communication is hidden (quartiles %.0f to %.0f %%), %.0f %% of what could be\n",
            100 * overlap->hidden, 100 * overlap->hidden_low, 100 * overlap->hidden_high,
            100 * overlap_of_possible(overlap));
    printf("overlap: ms per step: compute %.3f, of it backward %.3f; communication %.3f; serial %.3f, overlapped %.3f; "
           "%zu rounds, %zu buckets\n",
           1e3 * overlap->compute, 1e3 * overlap->backward, 1e3 * overlap->communication, 1e3 * overlap->serial,
           1e3 * overlap->overlapped, overlap->rounds, overlap->buckets);
    if (local && strtol(local, NULL, 10) >= sysconf(_SC_NPROCESSORS_ONLN))
        printf("overlap: the ranks of this host leave no core free; communication through shared memory is then work "
               "for the same cores and cannot be hidden\n");
}
