/* The error message of a status. An error is decided in one place, which writes the message and logs it; afterwards it
 * is passed on without logging. The first error wins: later ones are consequences. */
#ifndef GY_CORE_ERROR_H
#define GY_CORE_ERROR_H

#include "base.h"

#define GY_ERROR_TEXT 1024

struct gy_error {
    gyre_status status; /* GYRE_SUCCESS: none */
    int rank;           /* the rank that is to blame, −1: none */
    bool quiet;         /* for probes: the message is kept, not logged */
    char text[GY_ERROR_TEXT];
};

/* True if this process or host lacks a resource. Then no peer and no address is the cause. */
bool gy_error_is_shortage(int errnum);
/* For a number that came from outside: is it a status, and a failure? */
bool gy_status_is_failure(uint32_t status);
void gy_error_clear(struct gy_error *error);
/* Writes the message unless there is one already, logs it at ERROR level; returns `status`. */
gyre_status gy_error_set(struct gy_error *error, gyre_status status, int rank, const char *format, ...) GY_PRINTF(4, 5);
/* The same for a failed system call: appends ": strerror(errnum)", and the limit to raise if descriptors are exhausted.
 * Maps EMFILE and ENFILE to NO_DESCRIPTORS. Maps ENOMEM, and ENFILE on a host with free files, to NO_MEMORY. Otherwise
 * GYRE_SYSTEM. */
gyre_status gy_error_system(struct gy_error *error, int errnum, const char *format, ...) GY_PRINTF(3, 4);
/* True if the host has about as many files open as it may, by the text of /proc/sys/fs/file-nr. True also if the text
 * is not understood. */
bool gy_error_files_are_out(const char *file_nr);

#endif
