/* The report of GYREMPI_REPORT: how many calls gyre has taken, and how many were left to the MPI library. */
#ifndef GYRE_MPI_REPORT_H
#define GYRE_MPI_REPORT_H

#include "call.h"

/* Adds the calls that an ended twin has taken. */
void gm_report_add(const unsigned long taken[GM_CALLS]);
/* Notes one call that was left to the MPI library. */
void gm_report_passed(enum gm_call call);
/* One line on standard error, from MPI_Finalize: GYREMPI_REPORT=1 of rank 0, GYREMPI_REPORT=all of every rank. */
void gm_report_print(void);

#endif
