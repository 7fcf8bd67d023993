"""What can be seen of a communicator: where its ranks are, what it has done, each operation as it starts and ends."""
import atexit
import ctypes
from ctypes import c_char_p, c_int, c_int64, c_size_t, c_uint64
from dataclasses import dataclass
from typing import Any, Callable, List, Optional

from ._errors import text_of
from ._library import LOG, TRACE, lib
from ._types import DType, Op, Status
from ._world import local


@dataclass(frozen=True)
class RankPlace:
    """Where a rank is. `host`: numbered from 0 by the lowest rank there, of `hosts`; `local`: its place among the
    `locals` ranks of its host; `transport`: what carries messages to it."""

    world_rank: int
    host: int
    hosts: int
    local: int
    locals: int
    same_host: bool
    process: int
    transport: str


@dataclass(frozen=True)
class Failure:
    """What is known of a rank that has failed: why, as a status (PEER_DEAD, PEER_UNREACHABLE, PEER_STALLED, PEER_LATE,
    PEER_LEFT) and an error message; `when` this process learnt it, in nanoseconds of time.monotonic_ns()."""

    rank: int
    status: int
    when: int
    why: str


@dataclass(frozen=True)
class Counters:
    """What a communicator has done on this rank: operations, bytes of their vectors, payload handed to links."""

    started: int
    done: int
    failed: int
    bytes: int
    window_bytes: int
    self_bytes: int
    shm_bytes: int
    tcp_bytes: int
    other_bytes: int


@dataclass(frozen=True)
class TraceEvent:
    """An operation starts or has ended. `op`: an Op, or the number of an operation of one's own; times are
    nanoseconds of time.monotonic_ns()."""

    ended: bool
    status: int
    collective: str
    algorithm: str
    sequence: int
    count: int
    dtype: DType
    op: int
    root: int
    began: int
    time: int


TraceFunction = Callable[[TraceEvent], Any]
LogFunction = Callable[[int, str], Any]


class _Place(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("world_rank", c_int),
        ("host", c_int),
        ("hosts", c_int),
        ("local", c_int),
        ("locals", c_int),
        ("same_host", c_int),
        ("process", c_int64),
        ("transport", c_char_p),
    ]


class _Failure(ctypes.Structure):
    _fields_ = [("size", c_size_t), ("status", c_int), ("when", c_int64), ("why", c_char_p)]


class _Counters(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("started", c_uint64),
        ("done", c_uint64),
        ("failed", c_uint64),
        ("bytes", c_uint64),
        ("window_bytes", c_uint64),
        ("self_bytes", c_uint64),
        ("shm_bytes", c_uint64),
        ("tcp_bytes", c_uint64),
        ("other_bytes", c_uint64),
    ]


class _Event(ctypes.Structure):
    _fields_ = [
        ("size", c_size_t),
        ("ended", c_int),
        ("status", c_int),
        ("collective", c_char_p),
        ("algorithm", c_char_p),
        ("sequence", c_uint64),
        ("count", c_uint64),
        ("dtype", c_int),
        ("op", c_int),
        ("root", c_int),
        ("began", c_int64),
        ("time", c_int64),
    ]


STRUCTS = {
    "gyre_rank_place": _Place,
    "gyre_counters": _Counters,
    "gyre_trace_event": _Event,
    "gyre_failure": _Failure,
}


def place_of(handle: Any, rank: int, check: Callable[[int], None]) -> RankPlace:
    """The caller is inside a call."""
    raw = _Place(size=ctypes.sizeof(_Place))
    check(lib.gyre_comm_topology(handle, rank, ctypes.byref(raw)))
    numbers = (raw.world_rank, raw.host, raw.hosts, raw.local, raw.locals)
    return RankPlace(*numbers, bool(raw.same_host), raw.process, text_of(raw.transport))


def failures_of(handle: Any, size: int, check: Callable[[int], None]) -> List[Failure]:
    """The caller is inside a call."""
    raw = _Failure(size=ctypes.sizeof(_Failure))
    found = []
    for rank in range(size):
        check(lib.gyre_comm_failed(handle, rank, ctypes.byref(raw)))
        if raw.status != Status.SUCCESS:
            found.append(Failure(rank, raw.status, raw.when, text_of(raw.why)))
    return found


def counters_of(handle: Any, check: Callable[[int], None]) -> Counters:
    """The caller is inside a call."""
    raw = _Counters(size=ctypes.sizeof(_Counters))
    check(lib.gyre_comm_counters(handle, ctypes.byref(raw)))
    return Counters(*[getattr(raw, name) for name, *_ in _Counters._fields_[1:]])


def trace_callback(func: Optional[TraceFunction]) -> Any:
    """What libgyre calls for `func`; what it raises is printed by ctypes, as nothing may pass through libgyre."""
    if func is None:
        return TRACE(0)
    chosen = func

    def call(_: Any, address: int) -> None:
        before, local.calling = local.calling, True
        try:
            raw = _Event.from_address(address)
            texts = (text_of(raw.collective), text_of(raw.algorithm))
            numbers = (raw.sequence, raw.count, DType(raw.dtype), _op(raw.op), raw.root, raw.began, raw.time)
            chosen(TraceEvent(bool(raw.ended), _status(raw.status), *texts, *numbers))
        finally:
            local.calling = before

    return TRACE(call)


def _op(number: int) -> int:
    return Op(number) if number in Op._value2member_map_ else number


def _status(code: int) -> int:
    return Status(code) if code in Status._value2member_map_ else code


_log_callbacks: List[Any] = []  # libgyre may be inside the one before when another is set


def log_set(func: Optional[LogFunction]) -> None:
    """Lines of gyre's log go to func(level, line) instead of standard error; None: back to it. For the whole
    process, and called in any thread. Levels: 0 error, 1 warn, 2 info, 3 debug; GYRE_LOG says which there are."""
    if func is None:
        lib.gyre_log_set(LOG(0), None)
        return
    chosen = func

    def call(_: Any, level: int, line: bytes) -> None:
        before, local.calling = local.calling, True
        try:
            chosen(level, text_of(line))
        finally:
            local.calling = before

    _log_callbacks.append(LOG(call))
    lib.gyre_log_set(_log_callbacks[-1], None)


@atexit.register
def _log_to_standard_error() -> None:
    """Python cannot be called any more."""
    if _log_callbacks:
        lib.gyre_log_set(LOG(0), None)

