/* In which order each algorithm reduces: the expression of every element, from the textbook and from no schedule. The
 * checker demands it of the schedules; the system tests demand its value of the library. */
#ifndef GY_TESTS_COLLECTIVES_TREE_H
#define GY_TESTS_COLLECTIVES_TREE_H

#include "collectives/schedule/schedule.h"
#include "expression.h"

/* All elements of a block have the same tree; the number of blocks, and the block of element `element` < `total`. */
int gy_tree_blocks(const struct gy_schedule_shape *shape);
int gy_tree_block(const struct gy_schedule_shape *shape, size_t total, size_t element);

/* Adds the tree of `block`, whose leaves are element `element` of the ranks' inputs. Not for barriers, which have no
 * elements, nor for all_to_all, where they change their places. */
int32_t gy_tree_build(const struct gy_schedule_shape *shape, int block, size_t element,
                      struct gy_expression *expression);

#endif
