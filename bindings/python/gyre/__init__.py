"""gyre: decentralised collective communication, from Python.

    import gyre, numpy

    with gyre.create() as comm:            # everything from the environment: gyre-run or torchrun sets it
        x = numpy.full(4, comm.rank, "float32")
        comm.all_reduce(x)                 # in place; the sum over all ranks, on every rank
        request = comm.all_reduce_start(x, op="max")
        ...                                # this rank does something else
        request.wait()                     # or, under asyncio: await request

Buffers are NumPy arrays, array.array, bytearray, memoryview, memory of Communicator.mem_alloc: whatever has the buffer
protocol. Nothing is copied, and counts and element types are those of the buffers. What an operation writes to may be
looked at when it is complete. Arrays in the memory of GPUs are taken after Communicator.cuda_attach, in the order of a
stream if a call names one. See README.md of this folder, and gyre/gyre.h for what each call guarantees.
"""
import ctypes
from typing import Any, Callable, List, Optional, Sequence, Union

from ._buffer import dtype_of
from ._communicator import Communicator
from ._errors import (
    Aborted,
    BadConfiguration,
    CallError,
    CommunicatorError,
    Corrupted,
    Error,
    Excluded,
    Forked,
    InternalError,
    InvalidArgument,
    LocalError,
    MeetingFailed,
    Mismatch,
    NoDescriptors,
    NoMemory,
    Partitioned,
    PeerDead,
    PeerLate,
    PeerLeft,
    PeerStalled,
    PeerUnreachable,
    ProtocolError,
    Refused,
    Revoked,
    SystemFailure,
    Unsupported,
    WrongResult,
    error_for,
    text_of,
)
from ._gpu_array import CUDA_CURRENT, CUDA_DEFAULT
from ._gpu_array import NONE as CUDA_NONE
from ._group import group
from ._library import EXCHANGE, PRINT, Config, lib
from ._meet import meet
from ._memory import Memory, Registration
from ._observe import Counters, Failure, RankPlace, TraceEvent, log_set
from ._request import PersistentRequest, Request, wait_all, wait_any, wait_some
from ._types import DType, Op, Status
from ._window import Window
from ._world import UserOp, World, local

__all__ = [
    "Aborted", "BadConfiguration", "CUDA_CURRENT", "CUDA_DEFAULT", "CUDA_NONE", "CallError", "Communicator", "CommunicatorError", "Corrupted", "Counters", "DType", "Error", "Excluded", "Failure", "Forked",
    "InternalError", "InvalidArgument", "LocalError", "MeetingFailed", "Memory", "Mismatch", "NoDescriptors",
    "NoMemory", "Op", "Partitioned", "PeerDead", "PeerLate", "PeerLeft", "PeerStalled", "PeerUnreachable", "PersistentRequest",
    "ProtocolError", "RankPlace", "Refused", "Registration", "Request", "Revoked", "Status", "SystemFailure", "TraceEvent",
    "Unsupported", "UserOp", "Window", "WrongResult", "config_check",
    "config_describe", "create", "cuda_available", "dtype_of", "group", "info", "library_path", "library_version", "log_set", "wait_all",
    "wait_any", "wait_some",
]  # fmt: skip
__version__ = "0.1.0"

Exchange = Callable[[bytes], Union[bytes, Sequence[bytes]]]


def create(
    *,
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
    address: Optional[str] = None,
    secret: Optional[str] = None,
    exchange: Optional[Exchange] = None,
    join: bool = False,
) -> Communicator:
    """Makes the world communicator; returns when every rank has arrived, at most GYRE_MEET_TIMEOUT.

    Without arguments everything is in the environment: under gyre-run, torchrun, or with RANK, WORLD_SIZE, MASTER_ADDR,
    MASTER_PORT. `rank` and `world_size` go together. `address`: "tcp://HOST:PORT" or "file:///PATH". `secret`: the
    job's, at least 16 characters. `exchange`: a framework's all-gather of bytes, called with this rank's and giving
    those of all ranks in rank order, as a list or in one piece; then no address is needed, but `rank` and `world_size`
    are. `join`: into a world that is there and calls grow(), as GYRE_JOIN=1; `address` is that of any of its
    members."""
    if (rank is None) != (world_size is None):
        raise InvalidArgument("create: rank and world_size go together")
    if exchange is not None and not world_size:
        raise InvalidArgument("create: an exchange needs rank and world_size")
    failure: List[BaseException] = []
    config = Config(
        size=ctypes.sizeof(Config),
        rank=rank or 0,
        world_size=world_size or 0,
        address=None if address is None else address.encode(),
        secret=None if secret is None else secret.encode(),
        join=int(join),
    )
    if exchange is not None:
        config.exchange = _exchange_callback(exchange, world_size or 0, failure)
    code, handle, sentence = meet(config, exchange)
    if code != Status.SUCCESS:
        raise error_for(code, sentence) from (failure[0] if failure else None)
    assert handle is not None
    world = World()
    world.kept.append(config)
    return Communicator(handle, world)


def _exchange_callback(exchange: Exchange, world_size: int, failure: List[BaseException]) -> Any:
    def call(_: Any, mine: int, everyone: int, nbytes: int) -> int:
        local.calling = True
        try:
            given = exchange(ctypes.string_at(mine, nbytes))
            pieces = [given] if isinstance(given, (bytes, bytearray, memoryview)) else list(given)
            whole = b"".join(bytes(piece) for piece in pieces)
            if len(pieces) > 1 and any(len(piece) != nbytes for piece in pieces):
                raise ValueError(f"exchange: pieces of {[len(piece) for piece in pieces]} bytes, expected {nbytes} each")
            if len(whole) != nbytes * world_size:
                raise ValueError(f"exchange: {len(whole)} bytes for {world_size} ranks, expected {nbytes * world_size}")
            ctypes.memmove(everyone, whole, len(whole))
            return 0
        except BaseException as reason:  # nothing may pass through libgyre
            failure.append(reason)
            return 1
        finally:
            local.calling = False

    return EXCHANGE(call)


def library_version() -> str:
    """The version of libgyre.so: "0.1.0"."""
    return text_of(lib.gyre_version())


def library_path() -> str:
    """The file, or the name, by which libgyre.so was found."""
    return str(lib._name)


def _lines(function: Any) -> str:
    lines: List[str] = []
    function(PRINT(lambda _, line: lines.append(text_of(line))), None)
    return "\n".join(lines)


def cuda_available() -> int:
    """The number of GPUs that this process sees; 0 where there is no driver either: info() says why. Initialises the
    CUDA driver, and makes no context."""
    devices = ctypes.c_int()
    return devices.value if lib.gyre_cuda_available(devices) == Status.SUCCESS else 0


def info() -> str:
    """Build, topology, and which transports there are, or why not."""
    return _lines(lib.gyre_info)


def config_describe() -> str:
    """Every setting: name, default, unit, meaning."""
    return _lines(lib.gyre_config_describe)


def config_check() -> None:
    """Raises BadConfiguration for a GYRE_* variable that does not exist or has a bad value."""
    text = ctypes.create_string_buffer(4096)
    code = lib.gyre_config_check(text, len(text))
    if code != Status.SUCCESS:
        raise error_for(code, text_of(text.value) or text_of(lib.gyre_status_text(code)))
