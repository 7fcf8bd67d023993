"""The compiled module: the calls of this package that are to be quick (bindings/python/native).

Only what is common is done here: buffers by the buffer protocol or DLPack whose elements are of gyre's types, counts that fit,
gyre's own operations. Everything else, and every mistake, goes to the method of the same name of the package's classes, so
that both ways accept the same calls. Every call releases the interpreter's lock while it is inside libgyre. Where the module
is not there, `_plain` is in its place.
"""
from typing import Any, Deque, Dict, List, Optional, Set, Tuple

from ._calls import AnyOp
from ._types import AnyDType

__version__: str

class Core:
    """What a communicator is made of: its handle, the mark of the thread inside, and the calls that are common.

    A call is common while no thread is inside, nothing forgotten is to be collected, and, if it blocks, no group is open."""

    _handle: Optional[int]
    """libgyre's handle; None: closed."""

    def _open(
        self, handle: int, rank: int, size: int, flights: Set[Any], orphans: Deque[Any], unused: Deque[int]
    ) -> None:
        """Takes the handle, rank, size, and the containers that are looked at: the requests that libgyre knows, those of
        them that nobody holds any more, and memory that is to be freed."""

    def _acquire(self) -> bool:
        """Marks that a thread is inside; False if one is already."""

    def _release(self) -> None:
        """No thread is inside any more."""

class Flight:
    """What libgyre holds of a request: its handle and its buffers, which stay exported until it is complete."""

    comm: Any
    """The communicator."""
    buffers: Any
    """A tuple of the package's buffers; None: the module holds them."""
    error: Any
    """The error it ended with, or None."""
    busy: bool
    """Is it under way?"""
    persistent: bool
    """Can it be started again?"""

    @property
    def address(self) -> int:
        """Where libgyre keeps its handle."""

    def _release(self) -> None:
        """Gives back what the module holds; the communicator forgets it."""

    def _wait(self) -> int:
        """Waits, and gives the status. The caller is inside a call. Ctrl-C aborts the world, ends the flight, and is raised."""

class Request:
    """A call under way: test() and wait() of one that the module has begun. One that is dropped goes on."""

    _flight: Any

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Blocks until it is complete. With a timeout in seconds, False if it is not complete by then."""

    def test(self) -> bool:
        """Moves all requests of the world a little, without blocking; True once this one is complete."""

def bind(addresses: Dict[str, int], objects: Dict[str, Any]) -> None:
    """Once, at import: the addresses of libgyre's functions, and the package's objects that the module uses."""

def calling() -> bool:
    """Is an operation of the program's own, or another callback, running in this thread?"""

def set_calling(value: bool) -> None:
    """Says so."""

def grouped() -> int:
    """The groups that are open in this thread."""

def set_grouped(depth: int) -> None:
    """Says so."""

def note_failure() -> None:
    """An operation of the program's own has raised: from now on every call looks at its world's failure."""

def tensor(source: Any, stream: Optional[int] = None) -> Tuple[Any, int, int, int, int, int, int, int, int, int, int]:
    """What `source` exports by __dlpack__: a capsule that holds it, address, elements, number of the element type or -1, parts
    of an element (2: complex), bits, DLPack's code; 1 if it is read-only, 1 if it is in C order without gaps; kind and
    number of its device. `stream`: of CUDA, behind which the exporter puts its own work."""

def guard_enter(comms: List[Any]) -> bool:
    """A wait on these communicators begins, which Ctrl-C shall end by aborting their worlds. False where it is not guarded:
    in another thread than the main one, and where the program has its own handler of SIGINT."""

def guard_leave() -> None:
    """It is over; raises KeyboardInterrupt if that has come."""

def wait_any(flights: List[Any]) -> Tuple[int, int]:
    """Waits for one of these flights, which are under way: its index and its status."""
