"""The program of a rank in check.sh: an all_reduce without NumPy. Rank 0 prints the version and the path of the
library."""
import array
import sys

import gyre
from gyre import _compiled

with gyre.create() as comm:
    x = array.array("f", [comm.rank, 1.0])
    comm.all_reduce(x)
    if list(x) != [sum(range(comm.size)), comm.size]:
        sys.exit(f"the sum is wrong: {x}")
    if not _compiled.compiled or not gyre.library_path().startswith(sys.prefix):
        sys.exit(f"the library or the module is not the wheel's: {gyre.library_path()}, {_compiled.native.__name__}")
    comm.barrier()
    if comm.rank == 0:
        print(f"{comm.size} ranks, gyre {gyre.library_version()} of {gyre.library_path()}")
