/* The fraction itself is never changed: noise, and communication that hides behind forward too, may lead it out of 0 to 1,
 * and then it stands there with the reason. */
#include "overlap.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Quartiles that are further apart than this say nothing. */
#define WIDEST 0.5
/* Times of steps that follow one another differ by so much. */
#define ENOUGH 1.05

const char *overlap_doubt(const struct gyre_nn_overlap *overlap)
{
    /* A step can save no more than its communication, nor more than the computation behind which that hides: backward,
     * the update and the next forward. */
    double saved = overlap->hidden * fmin(overlap->backward, overlap->communication);
    double most = fmin(overlap->communication, overlap->serial - overlap->communication);
    if (saved > most * ENOUGH)
        return "is more than there is to hide: the machine's speed changed between the steps that are compared, it "
               "was too busy to tell; measure again with nothing else running";
    if (overlap->hidden < 0)
        return "is below 0: steps that overlap took longer than steps that wait, by noise or because moving the bytes "
               "takes the cores that compute";
    if (overlap->hidden_high - overlap->hidden_low > WIDEST)
        return "has quartiles that are far apart: the machine was too busy to tell; measure again with nothing else "
               "running";
    if (overlap->hidden > 1)
        return "is above 1: communication takes longer than backward, and hides behind the next forward too";
    return NULL;
}

void overlap_print(const struct gyre_nn_overlap *overlap)
{
    const char *doubt = overlap_doubt(overlap), *local = getenv("LOCAL_WORLD_SIZE");
    printf("overlap: hidden fraction %.2f (quartiles %.2f to %.2f, %zu rounds, %zu buckets); ms per step: compute "
           "%.3f, of it backward %.3f; communication %.3f; serial %.3f, overlapped %.3f\n",
           overlap->hidden, overlap->hidden_low, overlap->hidden_high, overlap->rounds, overlap->buckets,
           1e3 * overlap->compute, 1e3 * overlap->backward, 1e3 * overlap->communication, 1e3 * overlap->serial,
           1e3 * overlap->overlapped);
    if (doubt)
        printf("overlap: this hidden fraction %s\n", doubt);
    if (local && strtol(local, NULL, 10) >= sysconf(_SC_NPROCESSORS_ONLN))
        printf("overlap: the ranks of this host leave no core free; communication through shared memory is then work "
               "for the same cores and cannot be hidden\n");
}
