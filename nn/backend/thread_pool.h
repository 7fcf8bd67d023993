/* Threads of this process that compute the pieces of one job together. */
#ifndef GY_NN_TEAM_H
#define GY_NN_TEAM_H

#include <stdbool.h>
#include <stddef.h>

/* The division of a matrix product: its rows (samples) into so many pieces, its columns (neurons) into so many. 1 ×
 * 1: no division. */
struct gy_nn_grid {
    size_t rows, cols;
};
struct gy_nn_grid gy_nn_team_grid(void);

/* Calls piece(user, i) for each i below the grid's number of pieces, in any order and at once, and returns when all are
 * done. Jobs of several callers take turns. */
void gy_nn_team_run(void (*piece)(const void *user, size_t index), const void *user);

#endif
