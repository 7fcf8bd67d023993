/* The MPI calls that the interposer takes over. */
#ifndef GYRE_MPI_CALL_H
#define GYRE_MPI_CALL_H

/* Name in MPI, name of the enumerator. The number of a call is its bit in the mask that ranks agree on: shadow.h. */
#define GM_CALL_MAP(X)                            \
    X(Barrier, BARRIER)                           \
    X(Bcast, BCAST)                               \
    X(Reduce, REDUCE)                             \
    X(Allreduce, ALLREDUCE)                       \
    X(Allgather, ALLGATHER)                       \
    X(Allgatherv, ALLGATHERV)                     \
    X(Reduce_scatter, REDUCE_SCATTER)             \
    X(Reduce_scatter_block, REDUCE_SCATTER_BLOCK) \
    X(Alltoall, ALLTOALL)                         \
    X(Alltoallv, ALLTOALLV)                       \
    X(Gather, GATHER)                             \
    X(Gatherv, GATHERV)                           \
    X(Scatter, SCATTER)                           \
    X(Scatterv, SCATTERV)

enum gm_call {
#define GM_CALL_ENUM(name, upper) GM_##upper,
    GM_CALL_MAP(GM_CALL_ENUM)
#undef GM_CALL_ENUM
        GM_CALLS
};

/* Returns the name without "MPI_"; static. */
const char *gm_call_name(enum gm_call call);

/* Returns the mask of all calls but those in the text, which are names in any case, separated by commas. An unknown
 * name is reported on standard error and ignored. NULL is the empty text. */
unsigned gm_call_mask(const char *passed);

#endif
