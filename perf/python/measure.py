"""One rank of one launch: times of short calls by gyre or by mpi4py, to standard output of rank 0 as JSON.

Every figure is the median over batches of the time of a call in a batch of calls without a pause, after a barrier. The
launcher (run) has pinned this process; it says which library by the first argument."""
import json
import os
import statistics
import sys
import time

import numpy

BATCHES = 101
BATCH_S = 0.002  # about so long a batch takes; every rank has the same number of calls, from rank 0's clock
SIZES = (4, 1024, 65536, 1 << 20)


class Gyre:
    def __init__(self):
        import gyre

        self.comm = gyre.create()
        self.rank = self.comm.rank
        self.version = f"gyre {gyre.library_version()}"

    def barrier(self):
        self.comm.barrier()

    def same(self, number):
        told = numpy.array([number], "int64")
        self.comm.broadcast(told)
        return int(told[0])

    def calls(self, x, y):
        comm = self.comm
        return {
            "all_reduce": lambda: comm.all_reduce(x, y),
            "all_reduce in place": lambda: comm.all_reduce(y, op="max"),
            "request": lambda: comm.all_reduce_start(x, y).wait(),
        }

    def close(self):
        self.comm.close()


class Mpi4py:
    def __init__(self):
        import mpi4py
        from mpi4py import MPI

        self.mpi = MPI
        self.comm = MPI.COMM_WORLD
        self.rank = self.comm.rank
        self.version = f"mpi4py {mpi4py.__version__}, {MPI.Get_library_version().split(',')[0]}"

    def barrier(self):
        self.comm.Barrier()

    def same(self, number):
        return self.comm.bcast(number)

    def calls(self, x, y):
        mpi, comm = self.mpi, self.comm
        return {
            "all_reduce": lambda: comm.Allreduce(x, y),
            "all_reduce in place": lambda: comm.Allreduce(mpi.IN_PLACE, y, op=mpi.MAX),
            "request": lambda: comm.Iallreduce(x, y).Wait(),
        }

    def close(self):
        pass


def time_of(library, call, number):
    """Microseconds of a call in a batch of so many."""
    library.barrier()
    began = time.perf_counter_ns()
    for _ in range(number):
        call()
    return (time.perf_counter_ns() - began) / number / 1000


def measure(library, call):
    first = min(time_of(library, call, 20) for _ in range(5))
    number = library.same(max(int(BATCH_S * 1e6 / first), 3))
    return statistics.median(time_of(library, call, number) for _ in range(BATCHES))


def main():
    library = Gyre() if sys.argv[1] == "gyre" else Mpi4py()
    figures = {}
    for size in SIZES:
        x, y = numpy.ones(size // 4, "float32"), numpy.zeros(size // 4, "float32")
        for name, call in library.calls(x, y).items():
            figures[f"{name} {size}"] = measure(library, call)
        library.calls(x, y)["all_reduce"]()
        if not (y == library.comm.size).all():
            raise SystemExit(f"{library.version}: a wrong sum")
    if library.rank == 0:
        print(json.dumps({"version": library.version, "cores": sorted(os.sched_getaffinity(0)), "figures": figures}))
    library.close()


if __name__ == "__main__":
    main()
