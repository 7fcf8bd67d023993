/* Every contribution is a hash of (salt, rank, element), cut so that results are exact in any order of ranks that the
 * operation allows:
 *
 *   int64, premul    any bits, scalars of either sign: it wraps
 *   float32, premul  whole numbers from −8 to 7, scalars from 1 to 9: sums below 2^24
 *   uint32, own      not (a xor b): commutes
 *   uint64, own      products of 2 × 2 matrices modulo 2^16: associative, in the order of ranks only */
#include "programs_operations.h"

#include <string.h>

#include "algebra.h"

static uint64_t draw(const struct trial *it, int rank, size_t i)
{
    uint64_t state = it->salt * 1000003 + (uint64_t)rank * 7919 + i * 104729;
    return trial_random(&state);
}

static int64_t scalar_of(int world_rank)
{
    return world_rank % 2 ? -3 - world_rank : 5 + world_rank;
}

static uint64_t give_bits(const struct trial *it, int rank, size_t i)
{
    return draw(it, rank, i);
}

static uint64_t sum_of_bits(const struct trial *it, size_t i)
{
    uint64_t sum = 0;
    for (int r = 0; r < it->size; r++)
        sum += (uint64_t)scalar_of(it->members[r]) * draw(it, r, i);
    return sum;
}

static float whole(const struct trial *it, int rank, size_t i)
{
    return (float)(int)(draw(it, rank, i) % 16) - 8;
}

static uint64_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t give_whole(const struct trial *it, int rank, size_t i)
{
    return bits_of(whole(it, rank, i));
}

static uint64_t sum_of_wholes(const struct trial *it, size_t i)
{
    float sum = 0;
    for (int r = 0; r < it->size; r++)
        sum += (float)(it->members[r] + 1) * whole(it, r, i);
    return bits_of(sum);
}

static uint64_t give_word(const struct trial *it, int rank, size_t i)
{
    return (uint32_t)draw(it, rank, i);
}

static uint64_t word_of_all(const struct trial *it, size_t i)
{
    uint32_t x = (uint32_t)draw(it, 0, i);
    for (int r = 1; r < it->size; r++)
        x = algebra_equivalence(x, (uint32_t)draw(it, r, i));
    return x;
}

static uint64_t product_of_all(const struct trial *it, size_t i)
{
    uint64_t product = draw(it, 0, i);
    for (int r = 1; r < it->size; r++)
        product = algebra_product(product, draw(it, r, i));
    return product;
}

/* ---- what gyre calls ---- */

static void words(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    (void)user, (void)dtype;
    algebra_equivalences(left, right, result, count);
}

static void matrices(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    (void)user, (void)dtype;
    algebra_products(left, right, result, count);
}

static struct programs_operation operations[PROGRAMS_OPERATIONS] = {
    {.dtype = GYRE_INT64, .data = {give_bits, sum_of_bits}},
    {.dtype = GYRE_FLOAT32, .data = {give_whole, sum_of_wholes}},
    {.dtype = GYRE_UINT32, .data = {give_word, word_of_all}},
    {.dtype = GYRE_UINT64, .ordered = true, .data = {give_bits, product_of_all}},
};

gyre_status programs_operations_make(gyre_comm *world)
{
    int64_t whole_scalar = scalar_of(gyre_comm_rank(world));
    float scalar = (float)(gyre_comm_rank(world) + 1);
    gyre_status status = gyre_op_create_premul_sum(world, &whole_scalar, GYRE_INT64, &operations[0].op);
    status = status ? status : gyre_op_create_premul_sum(world, &scalar, GYRE_FLOAT32, &operations[1].op);
    status = status ? status : gyre_op_create(world, words, NULL, 1, &operations[2].op);
    return status ? status : gyre_op_create(world, matrices, NULL, 0, &operations[3].op);
}

const struct programs_operation *programs_operation(uint64_t number)
{
    return &operations[number % PROGRAMS_OPERATIONS];
}
