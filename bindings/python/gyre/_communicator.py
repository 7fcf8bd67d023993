"""Communicators: an ordered set of ranks, and every call on it.

Of libgyre's functions each takes one thread at a time per communicator; a second thread gets an error here. Whatever
libgyre may still touch is held by this object: buffers of requests by their Flight, memory by its views.
"""
import atexit
import ctypes
import gc
import os
import signal
import tempfile
import threading
import warnings
import weakref
from collections import deque
from typing import Any, Deque, List, Optional, Sequence, Set, Union

from . import _calls as calls
from ._buffer import AnyBuffer, dtype_of
from ._calls import scalar_bytes
from ._compiled import native
from ._driver import collect
from ._errors import Aborted, Error, InvalidArgument, Unsupported, error_for, text_of
from ._forms import Forms
from ._gpu_array import CUDA_DEFAULT, NONE
from ._library import CALLS, lib
from ._memory import Memory, Registration
from ._observe import Counters, Failure, RankPlace, TraceFunction, counters_of, failures_of, place_of, trace_callback
from ._request import Completion, Flight, Request
from ._types import DTYPE_ALIASES, OP_ALIASES, AnyDType, DType, Op, Status
from ._window import Window
from ._world import ReduceFunction, UserOp, World, local, numpy_or_none, reduce_callback

_open: "weakref.WeakSet[Communicator]" = weakref.WeakSet()
# handles of communicators that could not be destroyed when they were dropped
_abandoned: List["tuple[Any, World]"] = []


class Communicator(native.Core, Forms):
    """An ordered set of ranks. gyre.create() makes the world's; split, sub and duplicate make others of it.

    A context manager: leaving it closes. Every collective call is made by all ranks, in the same order, with the same
    count, type, operation and root."""

    def __init__(self, handle: int, world: World) -> None:
        """Not to be called: see gyre.create."""
        self._world = world
        self._life = threading.Lock()  # between abort, from anywhere, and close
        self._flights: Set[Flight] = set()
        self._windows: Set[Window] = set()
        self._registered: Set[Registration] = set()
        self._orphans: Deque[Flight] = deque()  # requests that the program has dropped
        self._pid = os.getpid()
        self._device = None
        self.rank: int = lib.gyre_comm_rank(handle)
        self.size: int = lib.gyre_comm_size(handle)
        self._open(handle, self.rank, self.size, self._flights, self._orphans, world.unused)
        world.communicators.add(self)
        _open.add(self)

    # ---- entering, leaving, errors ----

    def _enter(self) -> None:
        if local.calling:
            raise InvalidArgument("an operation of one's own, or an exchange, must not call gyre")
        if not self._acquire():
            raise InvalidArgument(
                "another thread is inside a call on this communicator: one thread at a time; give each its duplicate()"
            )
        if self._handle is None:
            self._release()
            raise InvalidArgument("the communicator is closed")
        if self._orphans:
            self._collect()
        if self._world.unused:
            self._world.free_unused(self._handle)

    def _leave(self) -> None:
        self._release()

    def _guarded(self, function: Any, *arguments: Any) -> int:
        """A call that waits for others, and that Ctrl-C ends. The caller is inside it."""
        native.guard_enter([self])
        try:
            return int(function(*arguments))
        finally:
            native.guard_leave()

    def _collect(self) -> None:
        """Forgotten requests: once each, those still under way stay."""
        for _ in range(len(self._orphans)):
            flight = self._orphans.popleft()
            if not flight.free():
                self._orphans.append(flight)

    def _error_or_none(self, code: int) -> Optional[Error]:
        failure = self._world.failure
        if code == Status.SUCCESS and failure is None:
            return None
        if failure is not None:
            error: Error = Aborted(f"an operation of one's own raised {failure!r}; the world was aborted")
            error.__cause__ = failure
            return error
        sentence = text_of(lib.gyre_last_error(self._handle)) if self._handle is not None else ""
        return error_for(code, sentence or text_of(lib.gyre_status_text(code)))

    def _check(self, code: int) -> None:
        error = self._error_or_none(code)
        if error is not None:
            raise error

    def _fails_with(self, code: int) -> bool:
        """True if the world has failed with this status."""
        return int(lib.gyre_progress(self._handle)) == code

    def _has_failed(self) -> bool:
        return int(lib.gyre_progress(self._handle)) != Status.SUCCESS

    # ---- other communicators ----

    def duplicate(self) -> "Communicator":
        """A communicator of the same ranks with its own order of operations. Collective; opens no connection."""
        made = self._divide(lib.gyre_comm_duplicate)
        assert made is not None
        return made

    def split(self, color: int, key: int = 0) -> "Optional[Communicator]":
        """Ranks with equal `color` get a communicator of their own, ordered by `key`, then by rank; a negative color
        gives None. Collective."""
        return self._divide(lib.gyre_comm_split, color, key)

    def sub(self, ranks: Sequence[int]) -> "Optional[Communicator]":
        """A communicator of the listed ranks, in that order; None on the others. Collective: all give the same list."""
        listed = [int(rank) for rank in ranks]
        return self._divide(lib.gyre_comm_sub, (ctypes.c_int * len(listed))(*listed), len(listed))

    def _divide(self, function: Any, *arguments: Any) -> "Optional[Communicator]":
        made = ctypes.c_void_p()
        self._enter()
        try:
            self._check(self._guarded(function, self._handle, *arguments, made))
            return None if made.value is None else Communicator(made.value, self._world)
        finally:
            self._leave()

    # ---- operations, memory, progress, information ----

    def op_create(
        self, func: ReduceFunction, commutative: bool = True, *, numpy: Optional[bool] = None
    ) -> UserOp:
        """An operation of one's own: func(left, right, result) writes `left op right` to `result`, element by
        element, as NumPy's functions with two arguments do: op_create(numpy.hypot). It is to be associative up to
        rounding.

        The three are NumPy arrays, or memoryviews where there is no NumPy or `numpy` is False. They are valid
        during the call only; `result` may be the memory of `left` or `right`. bfloat16 and 8-bit floats are seen
        as unsigned integers (float16 too, as memoryview). `func` must not call gyre. If it raises, the world is
        aborted, and the call raises Aborted with that exception as its cause.

        Every rank makes the same operations in the same order, at most 128. They live as long as the world."""
        module = None if numpy is False else numpy_or_none()
        if numpy and module is None:
            raise InvalidArgument("op_create: numpy=True, but NumPy cannot be imported")
        callback = reduce_callback(self._world, weakref.ref(self), func, module)
        number = ctypes.c_int()
        self._enter()
        try:
            self._check(lib.gyre_op_create(self._handle, callback, None, int(commutative), number))
            self._world.kept.append(callback)
        finally:
            self._leave()
        return UserOp(self._world, number.value, getattr(func, "__name__", repr(func)))

    def op_create_premul_sum(self, scalar: Union[float, AnyBuffer], dtype: AnyDType) -> UserOp:
        """A sum of which this rank's contributions are first multiplied by `scalar`, which other ranks may have other
        values of. For calls of this element type only."""
        element = scalar_bytes(scalar, dtype)
        number = ctypes.c_int()
        self._enter()
        try:
            self._check(lib.gyre_op_create_premul_sum(self._handle, element, dtype_of(dtype), number))
        finally:
            self._leave()
        return UserOp(self._world, number.value, "premul_sum")

    def mem_alloc(self, nbytes: int) -> Memory:
        """Memory that every rank of this host has mapped; page-aligned, zeroed. Local, not collective. Freed when
        no view of it is left; the last communicator of a world cannot be closed before."""
        if nbytes < 0:
            raise InvalidArgument(f"mem_alloc: {nbytes} bytes")
        address = ctypes.c_void_p()
        self._enter()
        try:
            self._check(lib.gyre_mem_alloc(self._handle, nbytes, address))
            assert address.value is not None
            return Memory(self, address.value, nbytes)
        finally:
            self._leave()

    def window_create(self, memory: Optional[AnyBuffer]) -> Window:
        """Exposes `memory` to all ranks of the communicator; None: nothing, but this rank reaches the others'. Sizes
        may differ. Collective. See Window."""
        return Window(self, memory)

    def mem_register(self, memory: AnyBuffer) -> Registration:
        """Announces memory that will be used again and again, to be released by close() of what this gives."""
        return Registration(self, memory)

    def set(self, key: str, value: str) -> None:
        """Attributes: "name" (for dump()), "timeout" in seconds; "order", "ends", "algorithm", which are collective."""
        self._attribute(lib.gyre_comm_set, key, value.encode())

    def get(self, key: str) -> str:
        """An attribute, as set() takes it; and "meeting", "joined" and "device", which are to be read
        only."""
        text = ctypes.create_string_buffer(4096)
        self._attribute(lib.gyre_comm_get, key, text, len(text))
        return text_of(text.value)

    def _attribute(self, function: Any, key: str, *arguments: Any) -> None:
        self._enter()
        try:
            self._check(self._guarded(function, self._handle, key.encode(), *arguments))
        finally:
            self._leave()

    def topology(self, rank: Optional[int] = None) -> RankPlace:
        """Where a rank is; None: this one."""
        self._enter()
        try:
            return place_of(self._handle, self.rank if rank is None else rank, self._check)
        finally:
            self._leave()

    def counters(self) -> Counters:
        """What this communicator has done on this rank."""
        self._enter()
        try:
            return counters_of(self._handle, self._check)
        finally:
            self._leave()

    def trace(self, func: Optional[TraceFunction]) -> None:
        """Calls func(event) at the start and the end of every operation of this communicator on this rank; None: no
        more. It is called inside gyre's calls, in whichever thread drives, and must not call gyre."""
        callback = trace_callback(func)
        self._enter()
        try:
            self._check(lib.gyre_comm_trace(self._handle, callback, None))
            self._world.kept.append(callback)
        finally:
            self._leave()

    def progress(self) -> None:
        """Advances all requests of the world a little, without blocking; for use between pieces of computation."""
        self._enter()
        try:
            self._check(lib.gyre_progress(self._handle))
        finally:
            self._leave()

    def algorithm(self, collective: str, count: int, dtype: AnyDType) -> str:
        """The algorithm that would be chosen for this call: "ring", "direct_two_shot", ... Unsupported where one is
        forced that cannot do it, as the call itself."""
        self._enter()
        try:
            name = lib.gyre_comm_algorithm(self._handle, collective.encode(), count, dtype_of(dtype))
        finally:
            self._leave()
        if name is None and collective not in calls.COLLECTIVES:
            raise InvalidArgument(f"algorithm: {collective!r} is not a collective; there are {', '.join(calls.COLLECTIVES)}")
        if name is None:
            raise Unsupported(
                f"algorithm: the one that is forced, {self.get('algorithm')}, cannot do {collective} on {self.size} ranks "
                f"with order {self.get('order')}"
            )
        return text_of(name)

    def dump(self) -> str:
        """The last 256 operations, and the counters, as text."""
        with tempfile.TemporaryFile() as file:
            self._enter()
            try:
                self._check(lib.gyre_comm_dump(self._handle, file.fileno()))
            finally:
                self._leave()
            file.seek(0)
            return file.read().decode("utf-8", "replace")

    @property
    def last_error(self) -> str:
        """The error message of the last error on this communicator; once the world has failed, that of this failure,
        which stays. Empty when there was none."""
        self._enter()
        try:
            return text_of(lib.gyre_last_error(self._handle))
        finally:
            self._leave()

    # ---- GPUs ----

    def cuda_attach(self, device: Optional[int] = None) -> None:
        """Attaches the communicator to a GPU on each rank: its calls then take memory of GPUs, and a `stream`.
        Collective, once for each communicator; those that are made of it are not attached. `device`: a number;
        gyre.CUDA_NONE: this rank takes part with host memory; None: the device of the calling thread's current context,
        or, without one, the rank's number on its host modulo the number of devices."""
        number = CUDA_DEFAULT if device is None else int(device)
        text = ctypes.create_string_buffer(32)
        self._enter()
        try:
            self._check(self._guarded(lib.gyre_cuda_attach, self._handle, number))
            self._check(lib.gyre_comm_get(self._handle, b"device", text, len(text)))
            self._device = int(text.value) if text.value.isdigit() else NONE
        finally:
            self._leave()

    @property
    def cuda_device(self) -> Optional[int]:
        """The number of the GPU that this rank is attached to; None: there is none."""
        return self._device if self._device != NONE else None

    def cuda_status(self) -> None:
        """Raises the first failure of a call on a stream, or of the world. Does not block. Gives back what streams have
        done with."""
        self._enter()
        try:
            collect()
            self._check(lib.gyre_cuda_status(self._handle))
        finally:
            self._leave()

    # ---- the end ----

    @property
    def closed(self) -> bool:
        return self._handle is None

    def abort(self) -> None:
        """Ends all outstanding requests of the world with Aborted, here and on all other ranks. From any thread; does
        not block. Only close() is useful afterwards."""
        with self._life:
            if self._handle is not None:
                lib.gyre_comm_abort(self._handle)

    # ---- going on after a failure ----

    def revoke(self) -> None:
        """Ends all outstanding requests of the world with Revoked, here and on all other ranks; agree() and shrink()
        still work. After a failure it changes nothing. From any thread; does not block."""
        with self._life:
            if self._handle is not None:
                lib.gyre_comm_revoke(self._handle)

    def failed(self) -> "List[Failure]":
        """The ranks that have failed, as far as this one knows, in rank order. Looks for news, does not block."""
        self._enter()
        try:
            return failures_of(self._handle, self.size, self._check)
        finally:
            self._leave()

    def agree(self, bits: int) -> int:
        """The bitwise AND of the 64 bits of all surviving ranks: the same on every rank that does not fail.
        Collective over the survivors, also in a world that has failed."""
        agreed = ctypes.c_uint64()
        self._enter()
        try:
            self._check(self._guarded(lib.gyre_comm_agree, self._handle, bits & (1 << 64) - 1, agreed))
            return agreed.value
        finally:
            self._leave()

    def shrink(self) -> "Communicator":
        """A communicator of the surviving ranks, in their order: a world of its own. Collective over them, also in a
        world that has failed. This communicator is still to be closed. User-defined operations are kept; memory of
        mem_alloc belongs to the old world. Excluded or Partitioned: the others go on without this rank."""
        made = ctypes.c_void_p()
        self._enter()
        try:
            self._check(self._guarded(lib.gyre_comm_shrink, self._handle, made))
            assert made.value is not None
            world = World()
            world.kept = list(self._world.kept)  # libgyre has taken the operations along
            return Communicator(made.value, world)
        finally:
            self._leave()

    def grow(self, newcomers: int = 0, seconds: float = 0.0) -> "Optional[Communicator]":
        """A communicator of this one's ranks, which keep their numbers, and of processes that called
        create(join=True): a world of its own. Rank 0 waits for `newcomers` processes, at most `seconds`; 0: for
        none, it takes the processes that wait now. None if no process has come: then this communicator goes on;
        otherwise it is still to be closed. Collective. A process joins at the address that get("meeting") gives on
        any rank, or at the address where the world was bootstrapped."""
        made = ctypes.c_void_p()
        self._enter()
        try:
            self._check(self._guarded(lib.gyre_comm_grow, self._handle, newcomers, seconds, made))
            if made.value is None:
                return None
            world = World()
            world.kept = list(self._world.kept)  # libgyre has taken the operations along
            return Communicator(made.value, world)
        finally:
            self._leave()

    def close(self) -> None:
        """Frees the communicator; the last one of a world leaves it in order. Does not wait for other ranks.
        Requests under way end with Aborted, and abort the world. BufferError if this is the world's last
        communicator and there are views of memory of mem_alloc. May be called again."""
        if self._handle is None:
            return
        self._enter()
        try:
            if self._last_of_world() and self._memory_in_use():
                used = len(self._world.blocks)
                raise BufferError(
                    f"{used} block{'s' if used > 1 else ''} of mem_alloc {'are' if used > 1 else 'is'} still looked at "
                    "by views or arrays: del them before the last communicator of the world is closed"
                )
            self._destroy()
        finally:
            self._leave()

    def _last_of_world(self) -> bool:
        return all(other is self or other.closed for other in list(self._world.communicators))

    def _memory_in_use(self) -> bool:
        if self._world.blocks:
            gc.collect()  # views in reference cycles
        self._world.free_unused(self._handle)
        return bool(self._world.blocks)

    def _destroy(self) -> None:
        with self._life:
            handle, self._handle = self._handle, None
        for registration in list(self._registered):
            registration._end_with(handle)
        code = lib.gyre_comm_destroy(handle)
        for flight in list(self._flights):
            if code == Status.SUCCESS:
                outcome = lib.gyre_test(flight.handle)
            else:
                outcome = code  # a forked child: nothing is its own
            if flight.busy and outcome != Status.SUCCESS:
                text = "the communicator was closed while the request was under way"
                other = text_of(lib.gyre_status_text(outcome))
                flight.error = error_for(outcome, text if outcome == Status.ABORTED else other)
            flight.let_go()
        for window in list(self._windows):
            window._let_go()
        self._orphans.clear()
        collect()

    def __enter__(self) -> "Communicator":
        return self

    def __exit__(self, kind: object, reason: object, trace: object) -> None:
        try:
            self.close()
        except BufferError:
            if kind is None:
                raise
            self.abort()  # what left the block is the news; the others shall know at once

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is None:
            return
        warnings.warn(f"unclosed {self!r}", ResourceWarning, source=self)
        if local.calling or self._pid != os.getpid() or (self._last_of_world() and self._world.blocks):
            _abandoned.append((handle, self._world))  # not from here: libgyre is being called, or its memory is in use
            self._handle = None
        else:
            self._destroy()

    def __repr__(self) -> str:
        if self._handle is None:
            return f"<closed gyre communicator, was rank {self.rank} of {self.size}>"
        return f"<gyre communicator, rank {self.rank} of {self.size}>"


@atexit.register
def _close_all() -> None:
    """Closes the open communicators, but those that another thread is using."""
    for comm in list(_open):
        if comm._handle is not None and comm._acquire():
            comm._destroy()
            comm._release()
    while _abandoned:
        lib.gyre_comm_destroy(_abandoned.pop()[0])


def _bind() -> None:
    """Tells the compiled module what it calls."""
    functions = [f"gyre_{name}_start" for name in CALLS]
    functions += ["gyre_test", "gyre_wait", "gyre_wait_any", "gyre_start", "gyre_comm_abort"]
    addresses = {name: ctypes.cast(getattr(lib, name), ctypes.c_void_p).value or 0 for name in functions}
    native.bind(
        addresses,
        {
            "flight": Flight,
            "request": Request,
            "calls": Forms,
            "requests": Completion,
            "op_names": {**{op.name.lower(): int(op) for op in Op}, **{name: int(op) for name, op in OP_ALIASES.items()}},
            "dtype_names": {
                **{dtype.name.lower(): int(dtype) for dtype in DType},
                **{name: int(dtype) for name, dtype in DTYPE_ALIASES.items()},
            },
            "get_handler": signal.getsignal,
            "interrupt": signal.default_int_handler,
            "main": threading.main_thread().ident,
        },
    )


_bind()
