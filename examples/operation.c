/* An operation of one's own: gyre-run -n 4 ./operation
 *
 * Gradients are scaled by their largest magnitude, so every rank needs, for each element, the value of largest
 * magnitude with its sign. That is no operation of gyre's; the function below makes it one. */
#include <gyre/gyre.h>
#include <math.h>
#include <stdio.h>

#define COUNT 4

/* result[i] = left[i] op right[i]. Called inside gyre's calls; `result` may be the memory of `left` or `right`. */
static void farthest(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    const float *a = (const float *)left, *b = (const float *)right;
    float *c = (float *)result;
    (void)user;
    (void)dtype; /* this operation is used with float32 only */
    for (size_t i = 0; i < count; i++) {
        /* Of +x and −x it takes +x, whichever is left: only so does it commute. */
        int take_left = fabsf(a[i]) > fabsf(b[i]) || (fabsf(a[i]) == fabsf(b[i]) && a[i] > b[i]);
        c[i] = take_left ? a[i] : b[i];
    }
}

int main(void)
{
    gyre_comm *comm = NULL;
    gyre_op op;
    gyre_status status = gyre_comm_create(NULL, &comm);
    if (status == GYRE_SUCCESS) /* every rank makes the same operations in the same order */
        status = gyre_op_create(comm, farthest, NULL, /*commutative*/ 1, &op);

    int rank = gyre_comm_rank(comm);
    float x[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)((rank + i) % 2 ? -(rank + i) : rank + i) / 2;
    if (status == GYRE_SUCCESS)
        status = gyre_all_reduce(comm, x, x, COUNT, GYRE_FLOAT32, op);
    if (status != GYRE_SUCCESS) {
        fprintf(stderr, "%s\n", gyre_last_error(comm));
        return 1;
    }
    printf("rank %d of %d: farthest from zero: %g %g %g %g\n", rank, gyre_comm_size(comm), x[0], x[1], x[2], x[3]);
    return gyre_comm_destroy(comm) != GYRE_SUCCESS;
}
