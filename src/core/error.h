/* The sentence that goes with a status. An error is decided in one place, which writes the sentence and logs it, and
 * then travels silently. The first error wins: later ones are consequences. */
#ifndef GY_CORE_ERROR_H
#define GY_CORE_ERROR_H

#include "base.h"

#define GY_ERROR_TEXT 1024

struct gy_error {
    gyre_status status; /* GYRE_SUCCESS: none */
    int rank;           /* the rank that is to blame, −1: none */
    bool quiet;         /* for who only asks: the sentence is kept, not logged */
    char text[GY_ERROR_TEXT];
};

/* Is it this process or host that is short of something? Then no peer and no address is to blame. */
bool gy_error_is_shortage(int errnum);
/* For a number that came from outside: is it a status, and a failure? */
bool gy_status_is_failure(uint32_t status);
void gy_error_clear(struct gy_error *error);
/* Writes the sentence unless there is one already, logs it at ERROR level; returns `status`. */
gyre_status gy_error_set(struct gy_error *error, gyre_status status, int rank, const char *format, ...) GY_PRINTF(4, 5);
/* The same, for a failed system call: appends ": strerror(errnum)", and what to raise when descriptors are out; maps EMFILE and ENFILE to NO_DESCRIPTORS, ENOMEM
 * and an ENFILE of a host that has files left to NO_MEMORY, else GYRE_SYSTEM. */
gyre_status gy_error_system(struct gy_error *error, int errnum, const char *format, ...) GY_PRINTF(3, 4);
/* By the text of /proc/sys/fs/file-nr: has the host about as many files open as it may? Also where the text says nothing. */
bool gy_error_files_are_out(const char *file_nr);

#endif
