"""Windows: memory of this rank that the others of a communicator reach without its calling anything for it."""
import ctypes
from typing import TYPE_CHECKING, Any, Optional

from ._buffer import AnyBuffer, Buffer
from ._calls import AnyOp, op_of
from ._compiled import native
from ._errors import InvalidArgument
from ._library import lib
from ._types import AnyDType, Op, Status

if TYPE_CHECKING:
    from ._communicator import Communicator


class Window:
    """As Communicator.window_create gives it. A context manager: leaving it closes, which is collective.

    Offsets are in bytes from the beginning of the target's memory. Memory of mem_alloc is reached directly by other
    processes of the same host; anything else while its owner is inside gyre, or at any time with
    GYRE_PROGRESS_THREAD=1."""

    SIGNALS = 32

    def __init__(self, comm: "Communicator", memory: Optional[AnyBuffer]) -> None:
        """Not to be called: see Communicator.window_create."""
        self._comm = comm
        self._buffer: Optional[Buffer] = None
        if memory is not None:
            self._buffer = Buffer("window_create: memory", memory, writable=True, raw=True)
        address, nbytes = (self._buffer.address, self._buffer.nbytes) if self._buffer else (None, 0)
        self._handle = ctypes.c_void_p()
        try:
            comm._enter()
            try:
                code = comm._guarded(lib.gyre_window_create, comm._handle, address, nbytes, self._handle)
                if not self.closed:
                    comm._windows.add(self)  # whatever is raised below: others may reach the memory from now on
                comm._check(code)
            finally:
                comm._leave()
        except BaseException:
            if self.closed:
                self._let_go()
            raise

    def _let_go(self) -> None:
        """libgyre does not know it any more."""
        self._handle = ctypes.c_void_p()
        self._comm._windows.discard(self)
        if self._buffer is not None:
            self._buffer.release()

    @property
    def closed(self) -> bool:
        return self._handle.value is None

    def _call(self, function: Any, *arguments: Any) -> None:
        self._comm._enter()
        try:
            if self.closed:
                raise InvalidArgument("the window is closed")
            self._comm._check(self._comm._guarded(function, self._handle, *arguments))
        finally:
            self._comm._leave()

    def _access(self, function: Any, buffer: Buffer, *arguments: Any) -> None:
        try:
            self._call(function, buffer.address, buffer.count, buffer.dtype, *arguments)
        finally:
            buffer.release()

    def put(self, source: AnyBuffer, target: int, offset: int = 0) -> None:
        """Copies `source` into the memory of rank `target`. Returns when `source` may be changed; see flush."""
        buffer = Buffer("put: source", source, writable=False, raw=True)
        self._access(lib.gyre_window_put, buffer, _rank(target), _offset(offset))

    def get(self, destination: AnyBuffer, target: int, offset: int = 0) -> None:
        """Fills `destination` from the memory of rank `target`."""
        buffer = Buffer("get: destination", destination, writable=True, raw=True)
        self._access(lib.gyre_window_get, buffer, _rank(target), _offset(offset))

    def accumulate(
        self, source: AnyBuffer, target: int, op: AnyOp = Op.SUM, offset: int = 0, *, dtype: Optional[AnyDType] = None
    ) -> None:
        """memory = memory op source, element by element, in the memory of rank `target`, where accumulations of one
        window exclude one another. No average, no pre-multiplied sum."""
        buffer = Buffer("accumulate: source", source, writable=False, dtype=dtype)
        number = op_of(self._comm, op, buffer)
        self._access(lib.gyre_window_accumulate, buffer, number, _rank(target), _offset(offset))

    def flush(self, target: int = -1) -> None:
        """Waits until all that this rank has asked of `target` has happened there; −1: of every rank."""
        self._call(lib.gyre_window_flush, target)

    def signal(self, target: int, index: int = 0) -> None:
        """Adds one to a counter of `target`, after all that this rank has asked of it before."""
        self._call(lib.gyre_window_signal, _rank(target), _index(index))

    def wait(self, value: int, index: int = 0) -> None:
        """Waits until this rank's own counter has come to at least `value`."""
        if not 0 <= value < 1 << 64:
            raise InvalidArgument(f"wait: {value} is no value of a counter")
        self._call(lib.gyre_window_wait, _index(index), value)

    def close(self) -> None:
        """Collective, blocking. Not needed after the communicator's close(). May be called again. After an error
        `closed` tells whether the window is gone: it is there as before, and its memory held, where the call was
        refused at once, as inside a group."""
        if self.closed:
            return
        self._comm._enter()
        try:
            code = self._comm._guarded(lib.gyre_window_destroy, self._handle)
            if not self._refused(code):
                self._let_go()
            self._comm._check(code)
        finally:
            self._comm._leave()

    def _refused(self, code: int) -> bool:
        """True if gyre_window_destroy has left the window as it was; gyre.h says when."""
        if code == Status.UNSUPPORTED:
            return not self._comm._has_failed()
        return code == Status.FORKED or (code != Status.SUCCESS and native.grouped() > 0)

    def __enter__(self) -> "Window":
        return self

    def __exit__(self, kind: object, reason: object, trace: object) -> None:
        if kind is None:  # the others may never come to a collective call after what left the block
            self.close()

    def __repr__(self) -> str:
        nbytes = self._buffer.nbytes if self._buffer is not None else 0
        return f"<{'closed ' if self.closed else ''}gyre window of {nbytes} bytes>"


def _rank(target: int) -> int:
    if not 0 <= target < 1 << 31:
        raise InvalidArgument(f"target {target} is not a rank")
    return target


def _offset(offset: int) -> int:
    if not 0 <= offset < 1 << 62:
        raise InvalidArgument(f"offset {offset} lies outside the memory")
    return offset


def _index(index: int) -> int:
    if not 0 <= index < Window.SIGNALS:
        raise InvalidArgument(f"{index} is not the index of a counter: there are {Window.SIGNALS}")
    return index

