"""The twin of the compiled module, for where that is not there: the same names, by ctypes. Calls take several times as
long, and Ctrl-C ends a wait when the wait is over."""
import ctypes
import threading
from typing import Any, Deque, Dict, List, NoReturn, Optional, Set, Tuple

from ._library import lib


class _Local(threading.local):
    calling = False
    grouped = 0


_local = _Local()


class Core:
    """A communicator's handle, and the mark of the thread inside."""

    _handle: Optional[int]

    def _open(
        self, handle: int, rank: int, size: int, flights: Set[Any], orphans: Deque[Any], unused: Deque[int]
    ) -> None:
        self._handle = handle
        self._lock = threading.Lock()

    def _acquire(self) -> bool:
        return self._lock.acquire(False)

    def _release(self) -> None:
        self._lock.release()


class Flight:
    """What libgyre holds of a request."""

    comm: Any
    buffers: Any
    error: Any
    busy: bool
    persistent: bool

    def __new__(cls, *arguments: Any) -> "Flight":
        flight = super().__new__(cls)
        flight._cell = ctypes.c_void_p()
        return flight

    _cell: ctypes.c_void_p

    @property
    def address(self) -> int:
        return ctypes.addressof(self._cell)

    def _release(self) -> None:
        self.busy = False
        self.comm._flights.discard(self)

    def _wait(self) -> int:
        return int(lib.gyre_wait(self._cell))


class Request:
    """A call under way. One that is dropped goes on, and is collected by a later call."""

    _flight: Any

    def __del__(self) -> None:
        flight = getattr(self, "_flight", None)
        if flight is not None and (flight.busy or flight.persistent):
            flight.comm._orphans.append(flight)


def bind(addresses: Dict[str, int], objects: Dict[str, Any]) -> None:
    """Nothing is to be known."""


def calling() -> bool:
    return _local.calling


def set_calling(value: bool) -> None:
    _local.calling = value


def grouped() -> int:
    return _local.grouped


def set_grouped(depth: int) -> None:
    _local.grouped = depth


def note_failure() -> None:
    """Every call looks at the world's failure."""


def tensor(source: Any, stream: Optional[int] = None) -> NoReturn:
    raise BufferError("DLPack needs the compiled module gyre._native, which is not there")


def guard_enter(comms: List[Any]) -> bool:
    return False


def guard_leave() -> None:
    """Nothing was guarded."""


def wait_any(flights: List[Any]) -> Tuple[int, int]:
    handles = (ctypes.c_void_p * len(flights))(*[flight.handle.value for flight in flights])
    index = ctypes.c_ssize_t()
    code = lib.gyre_wait_any(handles, len(flights), index)
    flights[index.value].handle.value = handles[index.value]
    return index.value, int(code)
