/* The examples of the manual pages of gyre.h. Each function here is one example; docs/man/pages.py puts it on the page of
 * every public function that it calls, where there are several the shortest one. The test manual.examples compiles this
 * file with warnings as errors and runs it: gyre-run -n 2 ./manual_gyre. A comment that begins with names of functions and
 * a colon says that this is the example of theirs, however long. */
#include <gyre/gyre.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- examples ---- */

static int meet(gyre_comm **comm_p)
{
    gyre_config config = {.size = sizeof(config)}; /* NULL in its place: the same, everything from the environment */
    if (gyre_comm_create(&config, comm_p) == GYRE_SUCCESS)
        return 0;
    fprintf(stderr, "the ranks did not meet: %s\n", gyre_last_error(NULL));
    return 1;
}

/* gyre_comm_destroy, gyre_mem_free, gyre_window_destroy: The order of destruction. */
static gyre_status leave(gyre_comm *comm, gyre_window *window, void *memory)
{
    gyre_window_destroy(window);    /* before its memory and its communicator */
    gyre_mem_free(comm, memory);    /* before the world's last communicator */
    return gyre_comm_destroy(comm); /* NULL is allowed in all three */
}

/* gyre_last_error: */
static int show(gyre_comm *comm, gyre_status status)
{
    if (status == GYRE_SUCCESS)
        return 0;
    fprintf(stderr, "rank %d: %s (%s): %s\n", gyre_comm_rank(comm), gyre_status_name(status), gyre_status_text(status),
            gyre_last_error(comm));
    return 1;
}

/* gyre_comm_rank, gyre_comm_size: */
static void print_place(gyre_comm *comm)
{
    printf("rank %d of %d, gyre %s\n", gyre_comm_rank(comm), gyre_comm_size(comm), gyre_version());
}

static gyre_status print_type(const char *type, const char *operation)
{
    gyre_dtype dtype;
    gyre_op op;
    gyre_status status = gyre_dtype_from_name(type, &dtype); /* "half", "float32", ... */
    if (status == GYRE_SUCCESS)
        status = gyre_op_from_name(operation, &op); /* "sum", "avg", ... */
    if (status == GYRE_SUCCESS)
        printf("%s of %s, %zu bytes an element\n", gyre_op_name(op), gyre_dtype_name(dtype), gyre_dtype_size(dtype));
    return status;
}

/* gyre_all_reduce, gyre_all_reduce_start, gyre_all_reduce_init: The three forms of a collective: blocking, as a request, as a persistent request. */
static gyre_status all_reduce_example(gyre_comm *comm, float *gradient, size_t count)
{
    gyre_request *request = NULL;
    gyre_status status = gyre_all_reduce(comm, gradient, gradient, count, GYRE_FLOAT32, GYRE_SUM); /* in place */
    if (status == GYRE_SUCCESS)
        status = gyre_all_reduce_start(comm, gradient, gradient, count, GYRE_FLOAT32, GYRE_AVERAGE, &request);
    if (status == GYRE_SUCCESS)
        status = gyre_wait(&request);
    if (status == GYRE_SUCCESS)
        status = gyre_all_reduce_init(comm, gradient, gradient, count, GYRE_FLOAT32, GYRE_MAX, &request);
    for (int step = 0; step < 3 && status == GYRE_SUCCESS; step++) {
        status = gyre_start(request);
        if (status == GYRE_SUCCESS)
            status = gyre_wait(&request);
    }
    gyre_request_free(&request);
    return status;
}

/* gyre_start, gyre_request_free, gyre_wait: */
static gyre_status run_persistent(gyre_request **request, int times)
{
    gyre_status status = GYRE_SUCCESS;
    for (int i = 0; i < times && status == GYRE_SUCCESS; i++) {
        status = gyre_start(*request); /* made by an _init form */
        if (status == GYRE_SUCCESS)
            status = gyre_wait(request);
    }
    gyre_request_free(request); /* *request is NULL now */
    return status;
}

/* gyre_reduce, gyre_reduce_start, gyre_reduce_init: */
static gyre_status reduce_example(gyre_comm *comm, const float *loss, float *sum, gyre_request **requests)
{
    /* sum is written on rank 0, and may be NULL on the others */
    gyre_status status = gyre_reduce(comm, loss, sum, 1, GYRE_FLOAT32, GYRE_SUM, 0);
    if (status == GYRE_SUCCESS)
        status = gyre_reduce_start(comm, loss, sum, 1, GYRE_FLOAT32, GYRE_SUM, 0, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_reduce_init(comm, loss, sum, 1, GYRE_FLOAT32, GYRE_MIN, 0, &requests[1]); /* for gyre_start */
    return status;
}

/* gyre_reduce_scatter, gyre_reduce_scatter_start, gyre_reduce_scatter_init: */
static gyre_status reduce_scatter_example(gyre_comm *comm, const float *input, float *output, size_t count,
                                          gyre_request **requests)
{
    /* input has size * count elements, output count: the block of this rank */
    gyre_status status = gyre_reduce_scatter(comm, input, output, count, GYRE_FLOAT32, GYRE_SUM);
    if (status == GYRE_SUCCESS)
        status = gyre_reduce_scatter_start(comm, input, output, count, GYRE_FLOAT32, GYRE_SUM, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_reduce_scatter_init(comm, input, output, count, GYRE_FLOAT32, GYRE_SUM, &requests[1]);
    return status;
}

/* gyre_broadcast, gyre_broadcast_start, gyre_broadcast_init: */
static gyre_status broadcast_example(gyre_comm *comm, double *parameters, size_t count, gyre_request **requests)
{
    /* of rank 0 to all, in place: the input of the other ranks is ignored */
    gyre_status status = gyre_broadcast(comm, parameters, parameters, count, GYRE_FLOAT64, 0);
    if (status == GYRE_SUCCESS)
        status = gyre_broadcast_start(comm, parameters, parameters, count, GYRE_FLOAT64, 0, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_broadcast_init(comm, parameters, parameters, count, GYRE_FLOAT64, 0, &requests[1]);
    return status;
}

/* gyre_all_gather, gyre_all_gather_start, gyre_all_gather_init: */
static gyre_status all_gather_example(gyre_comm *comm, const int32_t *mine, int32_t *all, gyre_request **requests)
{
    /* all has an element of each rank, in rank order */
    gyre_status status = gyre_all_gather(comm, mine, all, 1, GYRE_INT32);
    if (status == GYRE_SUCCESS)
        status = gyre_all_gather_start(comm, mine, all, 1, GYRE_INT32, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_all_gather_init(comm, mine, all, 1, GYRE_INT32, &requests[1]);
    return status;
}

/* gyre_gather, gyre_gather_start, gyre_gather_init: */
static gyre_status gather_example(gyre_comm *comm, const int32_t *mine, int32_t *all, gyre_request **requests)
{
    /* all has an element of each rank on rank 0, and may be NULL on the others */
    gyre_status status = gyre_gather(comm, mine, all, 1, GYRE_INT32, 0);
    if (status == GYRE_SUCCESS)
        status = gyre_gather_start(comm, mine, all, 1, GYRE_INT32, 0, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_gather_init(comm, mine, all, 1, GYRE_INT32, 0, &requests[1]);
    return status;
}

/* gyre_scatter, gyre_scatter_start, gyre_scatter_init: */
static gyre_status scatter_example(gyre_comm *comm, const int32_t *all, int32_t *mine, gyre_request **requests)
{
    /* all has an element for each rank on rank 0, and may be NULL on the others */
    gyre_status status = gyre_scatter(comm, all, mine, 1, GYRE_INT32, 0);
    if (status == GYRE_SUCCESS)
        status = gyre_scatter_start(comm, all, mine, 1, GYRE_INT32, 0, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_scatter_init(comm, all, mine, 1, GYRE_INT32, 0, &requests[1]);
    return status;
}

/* gyre_all_to_all, gyre_all_to_all_start, gyre_all_to_all_init: */
static gyre_status all_to_all_example(gyre_comm *comm, const int32_t *out, int32_t *in, gyre_request **requests)
{
    /* out[r] goes to rank r, in[r] comes from rank r */
    gyre_status status = gyre_all_to_all(comm, out, in, 1, GYRE_INT32);
    if (status == GYRE_SUCCESS)
        status = gyre_all_to_all_start(comm, out, in, 1, GYRE_INT32, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_all_to_all_init(comm, out, in, 1, GYRE_INT32, &requests[1]);
    return status;
}

/* gyre_barrier, gyre_barrier_start, gyre_barrier_init: */
static gyre_status barrier_example(gyre_comm *comm, gyre_request **requests)
{
    gyre_status status = gyre_barrier(comm);
    if (status == GYRE_SUCCESS)
        status = gyre_barrier_start(comm, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_barrier_init(comm, &requests[1]);
    return status;
}

/* gyre_all_gatherv, gyre_all_gatherv_start, gyre_all_gatherv_init: */
static gyre_status all_gatherv_example(gyre_comm *comm, const int32_t *mine, int32_t *all, const size_t *counts,
                                       gyre_request **requests)
{
    /* mine has counts[rank] elements; counts is the same on every rank; no displacements: one block after the other */
    gyre_status status = gyre_all_gatherv(comm, mine, all, counts, NULL, GYRE_INT32);
    if (status == GYRE_SUCCESS)
        status = gyre_all_gatherv_start(comm, mine, all, counts, NULL, GYRE_INT32, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_all_gatherv_init(comm, mine, all, counts, NULL, GYRE_INT32, &requests[1]);
    return status;
}

/* gyre_gatherv, gyre_gatherv_start, gyre_gatherv_init: */
static gyre_status gatherv_example(gyre_comm *comm, const int32_t *mine, int32_t *all, const size_t *counts,
                                   const size_t *displacements, gyre_request **requests)
{
    /* on rank 0 block r of counts[r] elements begins at all + displacements[r] */
    gyre_status status = gyre_gatherv(comm, mine, all, counts, displacements, GYRE_INT32, 0);
    if (status == GYRE_SUCCESS)
        status = gyre_gatherv_start(comm, mine, all, counts, displacements, GYRE_INT32, 0, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_gatherv_init(comm, mine, all, counts, displacements, GYRE_INT32, 0, &requests[1]);
    return status;
}

/* gyre_scatterv, gyre_scatterv_start, gyre_scatterv_init: */
static gyre_status scatterv_example(gyre_comm *comm, const int32_t *all, const size_t *counts,
                                    const size_t *displacements, int32_t *mine, gyre_request **requests)
{
    /* of rank 0: block r of counts[r] elements at all + displacements[r] goes to rank r */
    gyre_status status = gyre_scatterv(comm, all, counts, displacements, mine, GYRE_INT32, 0);
    if (status == GYRE_SUCCESS)
        status = gyre_scatterv_start(comm, all, counts, displacements, mine, GYRE_INT32, 0, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_scatterv_init(comm, all, counts, displacements, mine, GYRE_INT32, 0, &requests[1]);
    return status;
}

/* gyre_reduce_scatterv, gyre_reduce_scatterv_start, gyre_reduce_scatterv_init: */
static gyre_status reduce_scatterv_example(gyre_comm *comm, const float *input, float *output, const size_t *counts,
                                           gyre_request **requests)
{
    /* input has the sum of counts, output counts[rank] elements */
    gyre_status status = gyre_reduce_scatterv(comm, input, output, counts, GYRE_FLOAT32, GYRE_SUM);
    if (status == GYRE_SUCCESS)
        status = gyre_reduce_scatterv_start(comm, input, output, counts, GYRE_FLOAT32, GYRE_SUM, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_reduce_scatterv_init(comm, input, output, counts, GYRE_FLOAT32, GYRE_SUM, &requests[1]);
    return status;
}

/* gyre_all_to_allv, gyre_all_to_allv_start, gyre_all_to_allv_init: */
static gyre_status all_to_allv_example(gyre_comm *comm, const int32_t *out, const size_t *out_counts, int32_t *in,
                                       const size_t *in_counts, gyre_request **requests)
{
    /* out_counts[r] elements go to rank r, whose in_counts[this rank] is the same number */
    gyre_status status = gyre_all_to_allv(comm, out, out_counts, NULL, in, in_counts, NULL, GYRE_INT32);
    if (status == GYRE_SUCCESS)
        status = gyre_all_to_allv_start(comm, out, out_counts, NULL, in, in_counts, NULL, GYRE_INT32, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_all_to_allv_init(comm, out, out_counts, NULL, in, in_counts, NULL, GYRE_INT32, &requests[1]);
    return status;
}

/* gyre_send, gyre_recv: Along a chain of ranks; the last one has no receiver, and leaves the call out. */
static gyre_status pass_on(gyre_comm *comm, int32_t *value)
{
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    gyre_status status = rank > 0 ? gyre_recv(comm, value, 1, GYRE_INT32, rank - 1) : GYRE_SUCCESS;
    if (status == GYRE_SUCCESS && rank + 1 < size)
        status = gyre_send(comm, value, 1, GYRE_INT32, rank + 1);
    return status;
}

static gyre_status rotate(gyre_comm *comm, const float *out, float *in, size_t count)
{
    int rank = gyre_comm_rank(comm), size = gyre_comm_size(comm);
    return gyre_sendrecv(comm, out, count, (rank + 1) % size, in, count, (rank + size - 1) % size, GYRE_FLOAT32);
}

/* gyre_wait_all: */
static gyre_status exchange_started(gyre_comm *comm, int peer, const float *out, float *in, size_t count)
{
    gyre_request *requests[2] = {NULL, NULL};
    gyre_status status = gyre_recv_start(comm, in, count, GYRE_FLOAT32, peer, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_send_start(comm, out, count, GYRE_FLOAT32, peer, &requests[1]);
    gyre_status ended = gyre_wait_all(requests, 2); /* NULL ones are complete */
    return status == GYRE_SUCCESS ? ended : status;
}

static gyre_status exchange_prepared(gyre_comm *comm, int peer, const float *out, float *in, size_t count)
{
    gyre_request *requests[2] = {NULL, NULL};
    gyre_status status = gyre_recv_init(comm, in, count, GYRE_FLOAT32, peer, &requests[0]);
    if (status == GYRE_SUCCESS)
        status = gyre_send_init(comm, out, count, GYRE_FLOAT32, peer, &requests[1]);
    for (int step = 0; step < 10 && status == GYRE_SUCCESS; step++) {
        gyre_start(requests[0]);
        gyre_start(requests[1]);
        status = gyre_wait_all(requests, 2);
    }
    gyre_request_free(&requests[0]);
    gyre_request_free(&requests[1]);
    return status;
}

static gyre_status compute_meanwhile(gyre_request **request, void (*compute)(void))
{
    gyre_status status;
    while ((status = gyre_test(request)) == GYRE_IN_PROGRESS)
        compute();
    return status;
}

static gyre_status compute_pieces(gyre_comm *comm, int pieces, void (*compute)(void))
{
    for (int piece = 0; piece < pieces; piece++) {
        compute();
        gyre_status status = gyre_progress(comm); /* moves the requests that are under way */
        if (status != GYRE_SUCCESS)
            return status;
    }
    return GYRE_SUCCESS;
}

static gyre_status use_each(gyre_request **requests, size_t count, void (*use)(size_t))
{
    for (;;) {
        ptrdiff_t index;
        gyre_status status = gyre_wait_any(requests, count, &index);
        if (status != GYRE_SUCCESS || index < 0) /* −1: none is under way any more */
            return status;
        use((size_t)index);
    }
}

static gyre_status use_some(gyre_request **requests, size_t count, size_t *indices, void (*use)(size_t))
{
    size_t completed;
    do {
        gyre_status status = gyre_wait_some(requests, count, indices, &completed);
        if (status != GYRE_SUCCESS)
            return status;
        for (size_t i = 0; i < completed; i++)
            use(indices[i]);
    } while (completed > 0);
    return GYRE_SUCCESS;
}

static gyre_status swap_in_group(gyre_comm *comm, int peer, const float *out, float *in, size_t count)
{
    gyre_group_begin();
    gyre_status status = gyre_send(comm, out, count, GYRE_FLOAT32, peer); /* started, not waited for */
    if (status == GYRE_SUCCESS)
        status = gyre_recv(comm, in, count, GYRE_FLOAT32, peer);
    gyre_status ended = gyre_group_end(); /* waits for both */
    return status == GYRE_SUCCESS ? ended : status;
}

static void larger(void *user, const void *left, const void *right, void *result, size_t count, gyre_dtype dtype)
{
    const int32_t *a = (const int32_t *)left, *b = (const int32_t *)right;
    (void)user;
    (void)dtype; /* used with int32 only */
    for (size_t i = 0; i < count; i++)
        ((int32_t *)result)[i] = a[i] > b[i] ? a[i] : b[i];
}

static gyre_status reduce_by_own(gyre_comm *comm, int32_t *values, size_t count)
{
    gyre_op op; /* lives as long as the world; every rank makes it */
    gyre_status status = gyre_op_create(comm, larger, NULL, /*commutative*/ 1, &op);
    return status == GYRE_SUCCESS ? gyre_all_reduce(comm, values, values, count, GYRE_INT32, op) : status;
}

static gyre_status weighted_sum(gyre_comm *comm, float *values, size_t count, float weight)
{
    gyre_op op; /* of this type alone; each rank has its own weight */
    gyre_status status = gyre_op_create_premul_sum(comm, &weight, GYRE_FLOAT32, &op);
    return status == GYRE_SUCCESS ? gyre_all_reduce(comm, values, values, count, GYRE_FLOAT32, op) : status;
}

static gyre_status sum_in_shared_memory(gyre_comm *comm, size_t count)
{
    void *memory;
    gyre_status status = gyre_mem_alloc(comm, count * sizeof(float), &memory); /* bytes; zeroed */
    if (status != GYRE_SUCCESS)
        return status;
    status = gyre_all_reduce(comm, memory, memory, count, GYRE_FLOAT32, GYRE_SUM);
    gyre_mem_free(comm, memory); /* before the world ends */
    return status;
}

static gyre_status sum_registered(gyre_comm *comm, float *values, size_t count)
{
    gyre_status status = gyre_mem_register(comm, values, count * sizeof(float)); /* bytes */
    if (status != GYRE_SUCCESS)
        return status;
    for (int step = 0; step < 10 && status == GYRE_SUCCESS; step++)
        status = gyre_all_reduce(comm, values, values, count, GYRE_FLOAT32, GYRE_SUM);
    gyre_mem_deregister(comm, values); /* before the memory is freed */
    return status;
}

static gyre_status write_to_next(gyre_comm *comm, int32_t *memory, size_t count, const int32_t *source)
{
    int next = (gyre_comm_rank(comm) + 1) % gyre_comm_size(comm);
    gyre_window *window;
    gyre_status status = gyre_window_create(comm, memory, count * sizeof(int32_t), &window); /* collective */
    if (status != GYRE_SUCCESS)
        return status;
    status = gyre_window_put(window, source, count, GYRE_INT32, next, /*offset in bytes*/ 0);
    if (status == GYRE_SUCCESS)
        status = gyre_window_signal(window, next, /*index*/ 0); /* after the put */
    if (status == GYRE_SUCCESS)
        status = gyre_window_wait(window, 0, 1);     /* this rank's own counter: memory is written */
    gyre_status ended = gyre_window_destroy(window); /* collective, before the communicator and the memory */
    return status == GYRE_SUCCESS ? ended : status;
}

static gyre_status next_ticket(gyre_window *window, int32_t *seen)
{
    int32_t one = 1;
    gyre_status status = gyre_window_accumulate(window, &one, 1, GYRE_INT32, GYRE_SUM, /*target*/ 0, /*offset*/ 0);
    if (status == GYRE_SUCCESS)
        status = gyre_window_flush(window, 0); /* it has happened there; −1: on every target */
    if (status == GYRE_SUCCESS)
        status = gyre_window_get(window, seen, 1, GYRE_INT32, 0, 0);
    return status;
}

/* gyre_comm_duplicate: */
static gyre_status second_order(gyre_comm *comm)
{
    gyre_comm *own; /* the same ranks, for a thread or a library of its own */
    gyre_status status = gyre_comm_duplicate(comm, &own);
    if (status != GYRE_SUCCESS)
        return status;
    status = gyre_barrier(own);
    gyre_comm_destroy(own); /* the world goes on */
    return status;
}

static gyre_status sum_of_row(gyre_comm *comm, int columns, float *value)
{
    gyre_comm *row; /* the ranks of a grid's row; a negative color: none, and row is NULL */
    int rank = gyre_comm_rank(comm);
    gyre_status status = gyre_comm_split(comm, rank / columns, rank % columns, &row);
    if (status != GYRE_SUCCESS)
        return status;
    status = gyre_all_reduce(row, value, value, 1, GYRE_FLOAT32, GYRE_SUM);
    gyre_comm_destroy(row);
    return status;
}

static gyre_status sum_of_leaders(gyre_comm *comm, const int *leaders, int count, float *value)
{
    gyre_comm *sub; /* every rank of comm makes the call, with the same list */
    gyre_status status = gyre_comm_sub(comm, leaders, count, &sub);
    if (status == GYRE_SUCCESS && sub) /* NULL: this rank is not in the list */
        status = gyre_all_reduce(sub, value, value, 1, GYRE_FLOAT32, GYRE_SUM);
    gyre_comm_destroy(sub);
    return status;
}

static gyre_status name_and_order(gyre_comm *comm)
{
    char order[32];
    gyre_status status = gyre_comm_set(comm, "name", "gradients"); /* local */
    if (status == GYRE_SUCCESS)
        status = gyre_comm_set(comm, "order", "canonical"); /* collective */
    if (status == GYRE_SUCCESS)
        status = gyre_comm_get(comm, "order", order, sizeof(order));
    return status;
}

static gyre_status print_neighbour(gyre_comm *comm, int rank)
{
    gyre_rank_place place = {.size = sizeof(place)};
    gyre_status status = gyre_comm_topology(comm, rank, &place);
    if (status == GYRE_SUCCESS)
        printf("rank %d: host %d of %d, by %s\n", rank, place.host, place.hosts, place.transport);
    return status;
}

static void print_algorithm(const gyre_comm *comm, size_t count)
{
    const char *name = gyre_comm_algorithm(comm, "all_reduce", count, GYRE_FLOAT32);
    printf("all_reduce of %zu elements: %s\n", count, name ? name : "none can do it");
}

static gyre_status give_up(gyre_comm *comm)
{
    gyre_comm_abort(comm); /* every rank's requests end with GYRE_ABORTED */
    return gyre_comm_destroy(comm);
}

/* gyre_comm_revoke, gyre_comm_shrink: Repeats a call on the ranks that are left, after one has failed. */
static gyre_status sum_of_survivors(gyre_comm **comm, const float *input, float *output, size_t count)
{
    gyre_status status;
    while ((status = gyre_all_reduce(*comm, input, output, count, GYRE_FLOAT32, GYRE_SUM)) != GYRE_SUCCESS) {
        gyre_comm *next;
        gyre_comm_revoke(*comm); /* ranks that have not noticed come here, too */
        gyre_status left = gyre_comm_shrink(*comm, &next);
        if (left != GYRE_SUCCESS)
            return left;
        gyre_comm_destroy(*comm);
        *comm = next;
    }
    return status;
}

static void print_failed(gyre_comm *comm)
{
    for (int rank = 0; rank < gyre_comm_size(comm); rank++) {
        gyre_failure failure = {.size = sizeof(failure)};
        if (gyre_comm_failed(comm, rank, &failure) == GYRE_SUCCESS && failure.status != GYRE_SUCCESS)
            fprintf(stderr, "rank %d: %s\n", rank, failure.why);
    }
}

static gyre_status all_are_ready(gyre_comm *comm, int ready, int *all)
{
    uint64_t bits = 0;
    gyre_status status = gyre_comm_agree(comm, ready ? 1 : 0, &bits); /* the AND of all that take part */
    *all = status == GYRE_SUCCESS && bits == 1;
    return status;
}

static gyre_status let_in(gyre_comm **comm)
{
    gyre_comm *next;
    gyre_status status = gyre_comm_grow(*comm, /*newcomers*/ 1, /*seconds*/ 0.01, &next);
    if (status == GYRE_SUCCESS && next) { /* NULL: no process has come */
        gyre_comm_destroy(*comm);
        *comm = next;
    }
    return status;
}

static gyre_status print_counters(gyre_comm *comm)
{
    gyre_counters counters = {.size = sizeof(counters)};
    gyre_status status = gyre_comm_counters(comm, &counters);
    if (status == GYRE_SUCCESS)
        printf("%llu operations, %llu bytes\n", (unsigned long long)counters.done, (unsigned long long)counters.bytes);
    return status;
}

static gyre_status dump_to(gyre_comm *comm, FILE *file)
{
    fflush(file);
    return gyre_comm_dump(comm, fileno(file));
}

static void print_event(void *user, const gyre_trace_event *event)
{
    if (event->ended)
        fprintf((FILE *)user, "%s took %lld ns\n", event->collective, (long long)(event->time - event->began));
}

static gyre_status trace_to(gyre_comm *comm, FILE *file)
{
    return gyre_comm_trace(comm, print_event, file); /* NULL in place of the function: no more */
}

static void keep_line(void *user, gyre_log_level level, const char *line)
{
    if (level <= GYRE_LOG_WARN)
        fprintf((FILE *)user, "%s\n", line);
}

static void log_to(FILE *file)
{
    gyre_log_set(keep_line, file); /* NULL in place of the function: standard error again */
}

static void *allocate(void *user, size_t bytes, size_t align)
{
    void *memory;
    (void)user;
    return posix_memalign(&memory, align < sizeof(void *) ? sizeof(void *) : align, bytes) == 0 ? memory : NULL;
}

static void *resize(void *user, void *memory, size_t bytes)
{
    (void)user;
    return realloc(memory, bytes);
}

static void release(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static gyre_status use_own_allocator(void)
{
    gyre_allocator own = {sizeof(own), allocate, resize, release, NULL};
    return gyre_allocator_set(&own); /* before the first communicator is made */
}

static void print_line(void *user, const char *line)
{
    fprintf((FILE *)user, "%s\n", line);
}

static int describe(FILE *file)
{
    char why[256];
    gyre_info(print_line, file);
    gyre_config_describe(print_line, file);
    if (gyre_config_check(why, sizeof(why)) == GYRE_SUCCESS)
        return 0;
    fprintf(stderr, "%s\n", why);
    return 1;
}

/* ---- the test ---- */

static int failures;
static size_t used;

#define RUN(call)                                                      \
    do {                                                               \
        if ((call) != GYRE_SUCCESS) {                                  \
            failures++;                                                \
            fprintf(stderr, "%s: %s\n", #call, gyre_last_error(comm)); \
        }                                                              \
    } while (0)
#define EXPECT(condition)                                \
    do {                                                 \
        if (!(condition)) {                              \
            failures++;                                  \
            fprintf(stderr, "not so: %s\n", #condition); \
        }                                                \
    } while (0)

static void work(void)
{
    used++;
}

static void use(size_t index)
{
    used += index + 1;
}

/* Completes what an example has left: a request that is under way, and a persistent one that never ran. */
static gyre_status both(gyre_status status, gyre_request **requests)
{
    if (status == GYRE_SUCCESS)
        status = compute_meanwhile(&requests[0], work);
    if (status == GYRE_SUCCESS)
        status = run_persistent(&requests[1], 2);
    return status;
}

static void run_collectives(gyre_comm *comm, int rank)
{
    gyre_request *r[2] = {NULL, NULL};
    float x[2] = {1, 2}, y[2] = {0, 0};
    double p[1] = {rank == 0 ? 7.0 : 0.0};
    int32_t mine[2] = {rank, rank}, all[4] = {0, 0, 0, 0};
    const size_t counts[2] = {1, 2}, places[2] = {0, 1}, own[2] = {counts[rank], counts[rank]};
    RUN(all_reduce_example(comm, x, 2));
    EXPECT(x[0] == 2 && x[1] == 4);
    RUN(both(reduce_example(comm, x, rank == 0 ? y : NULL, r), r));
    EXPECT(rank != 0 || y[0] == 2);
    RUN(both(reduce_scatter_example(comm, x, y, 1, r), r));
    EXPECT(y[0] == (rank == 0 ? 4 : 8));
    RUN(both(broadcast_example(comm, p, 1, r), r));
    EXPECT(p[0] == 7);
    RUN(both(all_gather_example(comm, mine, all, r), r));
    EXPECT(all[0] == 0 && all[1] == 1);
    RUN(both(gather_example(comm, mine, rank == 0 ? all : NULL, r), r));
    RUN(both(scatter_example(comm, all, mine, r), r));
    EXPECT(mine[0] == rank);
    RUN(both(all_to_all_example(comm, mine, all, r), r));
    EXPECT(all[0] == 0 && all[1] == 1);
    RUN(both(barrier_example(comm, r), r));
    RUN(both(all_gatherv_example(comm, mine, all, counts, r), r));
    EXPECT(all[0] == 0 && all[1] == 1 && all[2] == 1);
    RUN(both(gatherv_example(comm, mine, rank == 0 ? all : NULL, counts, places, r), r));
    RUN(both(scatterv_example(comm, all, counts, places, mine, r), r));
    EXPECT(mine[0] == rank);
    float three[3] = {1, 2, 3};
    RUN(both(reduce_scatterv_example(comm, three, y, counts, r), r));
    EXPECT(y[0] == (rank == 0 ? 2 : 4));
    int32_t out[4] = {1, 1, 1, 1}, in[4] = {0, 0, 0, 0};
    RUN(both(all_to_allv_example(comm, out, own, in, counts, r), r));
    EXPECT(in[2] == 1 && in[3] == 0);
}

static void run_messages(gyre_comm *comm, int rank)
{
    float out[2] = {(float)rank, 1}, in[2] = {-1, -1};
    int32_t value = rank == 0 ? 5 : 0;
    RUN(pass_on(comm, &value));
    EXPECT(value == 5);
    RUN(rotate(comm, out, in, 2));
    RUN(exchange_started(comm, 1 - rank, out, in, 2));
    RUN(exchange_prepared(comm, 1 - rank, out, in, 2));
    RUN(swap_in_group(comm, 1 - rank, out, in, 2));
    EXPECT(in[0] == (float)(1 - rank));
    gyre_request *requests[2];
    size_t indices[2];
    RUN(gyre_barrier_start(comm, &requests[0]));
    RUN(gyre_barrier_start(comm, &requests[1]));
    RUN(compute_pieces(comm, 3, work));
    used = 0;
    RUN(use_each(requests, 2, use));
    EXPECT(used == 3);
    RUN(gyre_barrier_start(comm, &requests[0]));
    RUN(gyre_barrier_start(comm, &requests[1]));
    RUN(use_some(requests, 2, indices, use));
    EXPECT(used == 6);
}

static void run_memory(gyre_comm *comm, int rank)
{
    int32_t values[2] = {rank, 1 - rank}, seen = 0, ticket = 0;
    float x[2] = {1, 1};
    gyre_window *window = NULL;
    RUN(reduce_by_own(comm, values, 2));
    EXPECT(values[0] == 1 && values[1] == 1);
    RUN(weighted_sum(comm, x, 2, (float)(rank + 1)));
    EXPECT(x[0] == 3);
    RUN(sum_in_shared_memory(comm, 1000));
    RUN(sum_registered(comm, x, 2));
    int32_t memory[2] = {0, 0}, source[2] = {rank + 1, rank + 1};
    RUN(write_to_next(comm, memory, 2, source));
    EXPECT(memory[0] == 2 - rank);
    RUN(gyre_window_create(comm, &ticket, sizeof(ticket), &window));
    RUN(next_ticket(window, &seen));
    EXPECT(seen == 1 || seen == 2);
    RUN(gyre_window_destroy(window));
    EXPECT(ticket == (rank == 0 ? 2 : 0));
}

static void run_communicators(gyre_comm *comm, FILE *file)
{
    const int leaders[1] = {0};
    float value = 1;
    RUN(second_order(comm));
    RUN(sum_of_row(comm, 2, &value));
    EXPECT(value == 2);
    RUN(sum_of_leaders(comm, leaders, 1, &value));
    RUN(name_and_order(comm));
    RUN(print_neighbour(comm, 0));
    print_algorithm(comm, 1000);
    RUN(print_counters(comm));
    RUN(trace_to(comm, file));
    RUN(dump_to(comm, file));
    log_to(file);
}

static void run_recovery(gyre_comm **comm_p)
{
    gyre_comm *comm = *comm_p;
    float x[1] = {1}, y[1] = {0};
    int all = 0;
    print_failed(comm);
    RUN(all_are_ready(comm, 1, &all));
    EXPECT(all);
    RUN(let_in(comm_p));
    comm = *comm_p;
    gyre_comm_revoke(comm); /* the world fails, and its ranks go on in another */
    RUN(sum_of_survivors(comm_p, x, y, 1));
    comm = *comm_p;
    EXPECT(y[0] == 2);
}

int main(void)
{
    gyre_comm *comm = NULL;
    gyre_window *window = NULL;
    void *memory = NULL;
    RUN(use_own_allocator());
    if (meet(&comm))
        return 1;
    int rank = gyre_comm_rank(comm);
    FILE *file = tmpfile();
    if (!file || gyre_comm_size(comm) != 2)
        return 1;
    print_place(comm);
    RUN(print_type("half", "avg"));
    EXPECT(describe(file) == 0);
    EXPECT(show(comm, gyre_barrier(comm)) == 0);
    run_collectives(comm, rank);
    run_messages(comm, rank);
    run_memory(comm, rank);
    run_communicators(comm, file);
    run_recovery(&comm);
    gyre_comm *other = NULL;
    RUN(gyre_comm_duplicate(comm, &other));
    RUN(gyre_mem_alloc(comm, sizeof(float), &memory));
    RUN(gyre_window_create(comm, memory, sizeof(float), &window));
    RUN(leave(comm, window, memory));
    comm = NULL;
    RUN(give_up(other));
    gyre_log_set(NULL, NULL);
    fclose(file);
    return failures > 0;
}
