/* A freed communicator frees its shadow: descriptors and mappings do not grow. One that is never freed ends with
 * MPI_Finalize. */
#include <dirent.h>
#include <mpi.h>
#include <stdio.h>

#include "check.h"

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder && readdir(folder))
        count++;
    if (folder)
        closedir(folder);
    return count;
}

static int mappings(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    int count = 0, byte;
    while (file && (byte = getc(file)) != EOF)
        count += byte == '\n';
    if (file)
        fclose(file);
    return count;
}

static void use(MPI_Comm comm)
{
    int one = 1, sum = 0, size;
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    if (sum != size)
        check_fail("MPI_Allreduce on a duplicate is wrong");
}

static void use_and_free(int times)
{
    MPI_Comm copy;
    for (int i = 0; i < times; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &copy);
        use(copy);
        MPI_Comm_free(&copy);
    }
}

int main(int argc, char **argv)
{
    MPI_Comm kept;
    MPI_Init(&argc, &argv);
    use_and_free(5);
    const int descriptors_before = descriptors(), mappings_before = mappings();
    use_and_free(20);
    if (descriptors() > descriptors_before + 2)
        check_fail("freed communicators leave descriptors");
    if (mappings() > mappings_before + 10)
        check_fail("freed communicators leave mappings");
    MPI_Comm_dup(MPI_COMM_WORLD, &kept);
    use(kept);
    MPI_Finalize();
    return check_failures() > 0;
}
