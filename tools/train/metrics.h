/* The metrics of a run: one JSON object per line. With NULL as metrics the functions do nothing. */
#ifndef GYRE_TRAIN_METRICS_H
#define GYRE_TRAIN_METRICS_H

#include <gyre/nn.h>

struct metrics;
struct metrics *metrics_open(const char *path, bool more); /* more: behind what is there. NULL: errno says why */
void metrics_epoch(struct metrics *metrics, const struct gyre_nn_report *report);
void metrics_membership(struct metrics *metrics, const struct gyre_nn_membership *now);
void metrics_overlap(struct metrics *metrics, const struct gyre_nn_overlap *overlap);
void metrics_verify(struct metrics *metrics, double difference, double loss, double single_loss);
/* hidden: NaN is written as null. */
void metrics_final(struct metrics *metrics, const struct gyre_nn_train_result *result, double hidden,
                   const double *staleness);
bool metrics_close(struct metrics *metrics); /* false: errno says why a line is missing */

#endif
