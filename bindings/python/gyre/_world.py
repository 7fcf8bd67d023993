"""What all communicators of one world share on this side: its open communicators, its memory, its own operations.

Operations of one's own are Python callables that libgyre calls while it holds its lock and this thread the
interpreter's. They must not call gyre; `calling` is true meanwhile, and every call of this package looks at it. One
that raises cannot give a result: it aborts the world, and the caller's call raises with the exception as its cause.
"""
import ctypes
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Callable, Deque, Dict, List, Optional

from ._compiled import native
from ._library import REDUCE, lib
from ._types import FORMATS, DType

if TYPE_CHECKING:
    from ._communicator import Communicator

ReduceFunction = Callable[[Any, Any, Any], Any]


class _Local:
    """Of this thread."""

    @property
    def calling(self) -> bool:
        return native.calling()

    @calling.setter
    def calling(self, value: bool) -> None:
        native.set_calling(value)


local = _Local()


class World:
    """One per world communicator."""

    def __init__(self) -> None:
        self.communicators: "weakref.WeakSet[Communicator]" = weakref.WeakSet()
        self.blocks: Dict[int, "weakref.ref[Any]"] = {}  # memory of gyre_mem_alloc by its address
        self.unused: Deque[int] = deque()  # addresses whose last view has gone; freed by the next call
        self.failure: Optional[BaseException] = None  # what an operation of one's own raised
        self.kept: List[Any] = []  # callbacks that libgyre may call as long as the world lives

    def free_unused(self, handle: Any) -> None:
        """The caller is inside a call."""
        while self.unused:
            address = self.unused.popleft()
            lib.gyre_mem_free(handle, address)


class UserOp:
    """An operation of one's own, to be given where a call takes one. Lives as long as its world."""

    def __init__(self, world: World, number: int, name: str) -> None:
        self.world = world
        self.number = number
        self.name = name

    def __repr__(self) -> str:
        return f"<gyre operation {self.number}: {self.name}>"


def _views(address: int, count: int, dtype: DType, writable: bool, numpy: Any) -> Any:
    """A view of gyre's memory, valid during the call."""
    raw = (ctypes.c_char * (count * dtype.size)).from_address(address)
    letter = FORMATS[dtype]
    if numpy is not None:
        view = numpy.frombuffer(raw, dtype=letter)
        view.flags.writeable = writable
        return view
    # memoryview can neither index nor convert halves before Python 3.12: they are seen as their bits.
    flat: Any = memoryview(raw).cast("B")
    plain = flat.cast("H" if letter == "e" else letter)
    return plain if writable else plain.toreadonly()


def reduce_callback(world: World, comm: "weakref.ref[Communicator]", func: ReduceFunction, numpy: Any) -> Any:
    """What libgyre calls for `func`."""

    def call(_: Any, left: int, right: int, result: int, count: int, dtype: int) -> None:
        before, local.calling = local.calling, True
        try:
            kind = DType(dtype)
            func(
                _views(left, count, kind, False, numpy),
                _views(right, count, kind, False, numpy),
                _views(result, count, kind, True, numpy),
            )
        except BaseException as reason:  # also KeyboardInterrupt: nothing may pass through libgyre
            if world.failure is None:
                world.failure = reason
                native.note_failure()
            owner = comm()
            if owner is not None:
                owner.abort()
        finally:
            local.calling = before

    return REDUCE(call)


def numpy_or_none() -> Any:
    try:
        import numpy
    except ImportError:
        return None
    return numpy
