/* The MPI functions with counts of type MPI_Count, if the MPI library has them (MPI 4). */
#include "report.h"
#include "take.h"

#if MPI_VERSION >= 4

#define FUNCTION(name, upper, parameters, take, arguments)               \
    __attribute__((visibility("default"))) int MPI_##name##_c parameters \
    {                                                                    \
        int code = take;                                                 \
        if (code != GM_PASS)                                             \
            return code;                                                 \
        gm_report_passed(GM_##upper);                                    \
        return PMPI_##name##_c arguments;                                \
    }

#define COUNT MPI_Count
#define DISPL MPI_Aint
#define COUNTS(list) ((struct gm_counts){NULL, list})
#define BLOCKS(memory, counts, offsets, mpi_type) \
    ((struct gm_blocks){gm_data(memory, 0, mpi_type).buffer, COUNTS(counts), {NULL, offsets}, mpi_type})

#include "functions.inc"

#endif
