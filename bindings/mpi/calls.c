/* The MPI functions that a program calls, with counts of type int. In Open MPI the Fortran bindings of all kinds
 * (mpif.h, mpi, mpi_f08) call the PMPI name, so the interposer defines that name, too. In MPICH they call the MPI
 * name. */
#include "library.h"
#include "report.h"
#include "take.h"

#define PUBLIC __attribute__((visibility("default")))

#ifdef OMPI_MAJOR_VERSION
#define ALSO_PMPI(name, parameters) PUBLIC int PMPI_##name parameters __attribute__((alias("MPI_" #name)));
#else
#define ALSO_PMPI(name, parameters)
#endif

#define FUNCTION(name, upper, parameters, take, arguments) \
    PUBLIC int MPI_##name parameters                       \
    {                                                      \
        int code = take;                                   \
        if (code != GM_PASS)                               \
            return code;                                   \
        gm_report_passed(GM_##upper);                      \
        return gm_library.name arguments;                  \
    }                                                      \
    ALSO_PMPI(name, parameters)

#define COUNT int
#define DISPL int
#define COUNTS(list) ((struct gm_counts){list, NULL})
#define BLOCKS(memory, counts, offsets, mpi_type) \
    ((struct gm_blocks){gm_data(memory, 0, mpi_type).buffer, COUNTS(counts), {offsets, NULL}, mpi_type})

FUNCTION(Barrier, BARRIER, (MPI_Comm comm), gm_barrier(comm), (comm))
#include "functions.inc"
