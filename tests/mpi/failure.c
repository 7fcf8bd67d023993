/* A rank is killed; the others are inside MPI_Allreduce. Every other rank gets an error that names it, within a second.
 *
 *   failure return     MPI_ERRORS_RETURN: the code and its text are looked at
 *   failure fatal      the default handler ends the program */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { VICTIM = 1 };

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* One line of each rank that has got the error. */
static void report(int rank, int code, double seconds)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int class = MPI_SUCCESS, length = 0;
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
#ifdef MPIX_ERR_PROC_FAILED
    const char *kind = class == MPIX_ERR_PROC_FAILED ? "right" : "wrong";
#else
    const char *kind = class == MPI_ERR_OTHER && strstr(text, "rank 1") ? "right" : "wrong";
#endif
    printf("survivor %d: %s class %s: %s\n", rank, kind, seconds < 1 ? "in time" : "late", text);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int rank, sum = 0;
    alarm(20); /* a rank that hangs is not left over */
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (argc == 2 && strcmp(argv[1], "return") == 0)
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int i = 0; i < 100; i++)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    const double began = now();
    if (rank == VICTIM)
        raise(SIGKILL);
    int code = MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (code == MPI_SUCCESS)
        return 3;
    report(rank, code, now() - began);
    _exit(0); /* MPI_Finalize would wait for the dead rank */
}
