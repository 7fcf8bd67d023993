/* The report of GYREMPI_REPORT: the numbers of calls that gyre has taken over, and of those left to the MPI library. */
#ifndef GYRE_MPI_REPORT_H
#define GYRE_MPI_REPORT_H

#include "call.h"

/* Adds the counts of a shadow that has ended. */
void gm_report_add(const unsigned long taken[GM_CALLS]);
/* Counts a call that was left to the MPI library. */
void gm_report_passed(enum gm_call call);
/* Writes one line to standard error, in MPI_Finalize. GYREMPI_REPORT=1: on rank 0; GYREMPI_REPORT=all: on every
 * rank. */
void gm_report_print(void);

#endif
