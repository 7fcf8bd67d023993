"""The CUDA driver, as far as Python needs it: waiting for a stream, ordering one after another, and holding what a
stream still uses.

libcuda.so.1 is opened at the first use, when libgyre has opened it already. Work is done in the primary context of a
device, which is current during the call only, as libgyre does it.
"""
import ctypes
import os
import threading
from collections import deque
from contextlib import contextmanager
from ctypes import POINTER, c_int, c_uint, c_uint64, c_void_p
from typing import Any, Deque, Dict, Iterator, List, Optional, Tuple

from ._errors import Error, InvalidArgument, SystemFailure, Unsupported

LEGACY, PER_THREAD = 1, 2  # the handles of CUDA's default streams; 0 means LEGACY
AnyStream = Any  # an int, or an object that has __cuda_stream__, cuda_stream or ptr

_SUCCESS, _NOT_READY = 0, 600
_MEMORY_TYPE, _ORDINAL = 2, 9  # of CUpointer_attribute
_NO_TIMING = 2  # of cuEventCreate

# The version of CUDA whose signature is asked for, and the parameters.
_FUNCTIONS: Dict[str, Tuple[int, List[Any]]] = {
    "cuInit": (2000, [c_uint]),
    "cuGetErrorName": (6000, [c_uint, POINTER(ctypes.c_char_p)]),
    "cuDeviceGet": (2000, [POINTER(c_int), c_int]),
    "cuDevicePrimaryCtxRetain": (7000, [POINTER(c_void_p), c_int]),
    "cuCtxPushCurrent": (4000, [c_void_p]),
    "cuCtxPopCurrent": (4000, [POINTER(c_void_p)]),
    "cuPointerGetAttributes": (7000, [c_uint, POINTER(c_uint), POINTER(c_void_p), c_uint64]),
    "cuStreamSynchronize": (2000, [c_void_p]),
    "cuStreamWaitEvent": (3020, [c_void_p, c_void_p, c_uint]),
    "cuEventCreate": (2000, [POINTER(c_void_p), c_uint]),
    "cuEventRecord": (2000, [c_void_p, c_void_p]),
    "cuEventQuery": (2000, [c_void_p]),
}


class _Driver:
    """Its functions, each found by the version of CUDA that has its signature."""

    def __init__(self) -> None:
        try:
            find = ctypes.CDLL("libcuda.so.1").cuGetProcAddress_v2
        except (OSError, AttributeError) as reason:
            raise Unsupported(f"the CUDA driver cannot be used: {reason}") from None
        find.argtypes = [ctypes.c_char_p, POINTER(c_void_p), c_int, c_uint64, POINTER(c_uint)]
        self._functions: Dict[str, Any] = {}
        for name, (version, parameters) in _FUNCTIONS.items():
            address, found = c_void_p(), c_uint()
            if find(name.encode(), address, version, 0, found) != _SUCCESS or not address.value:
                raise Unsupported(f"the CUDA driver is too old: it has no {name}")
            self._functions[name] = ctypes.CFUNCTYPE(c_uint, *parameters)(address.value)

    def result(self, name: str, *arguments: Any) -> int:
        return int(self._functions[name](*arguments))

    def call(self, name: str, *arguments: Any) -> None:
        code = self.result(name, *arguments)
        if code != _SUCCESS:
            text = ctypes.c_char_p()
            self.result("cuGetErrorName", code, text)
            raise SystemFailure(f"{name}: {(text.value or str(code).encode()).decode()}")


_lock = threading.RLock()  # of all below
_opened: Optional[_Driver] = None
_contexts: Dict[int, c_void_p] = {}  # by device; retained until the process ends
_events: Dict[int, List[c_void_p]] = {}  # by device: those that are free
_held: Dict[Tuple[int, ...], Deque[Tuple[c_void_p, Tuple[Any, ...], Any]]] = {}  # by device and stream, in order
_pid = os.getpid()


def _driver() -> _Driver:
    global _opened
    with _lock:
        if _opened is None:
            _opened = _Driver()
        return _opened


def _context(device: int) -> c_void_p:
    driver = _driver()
    with _lock:
        if device not in _contexts:
            number, context = c_int(), c_void_p()
            driver.call("cuInit", 0)
            driver.call("cuDeviceGet", number, device)
            driver.call("cuDevicePrimaryCtxRetain", context, number.value)
            _contexts[device] = context
        return _contexts[device]


@contextmanager
def _current(device: int) -> Iterator[_Driver]:
    driver = _driver()
    driver.call("cuCtxPushCurrent", _context(device))
    try:
        yield driver
    finally:
        driver.result("cuCtxPopCurrent", c_void_p())


def stream_of(stream: AnyStream) -> int:
    """The handle of a stream: an int, or what cuda.core's, PyTorch's or CuPy's has."""
    given = stream
    if not isinstance(stream, int) and hasattr(stream, "__cuda_stream__"):
        protocol = stream.__cuda_stream__
        version, given = protocol() if callable(protocol) else protocol
        if version != 0:
            raise Unsupported(f"the {type(stream).__name__} has version {version} of __cuda_stream__; gyre knows version 0")
    elif not isinstance(stream, int):
        given = getattr(stream, "cuda_stream", getattr(stream, "ptr", None))
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given < 1 << 64:
        raise InvalidArgument(
            f"a {type(stream).__name__} is no stream: give its handle as an int, or an object that has __cuda_stream__, "
            "cuda_stream (PyTorch) or ptr (CuPy)"
        )
    return given


def device_of(address: int) -> Optional[int]:
    """The device of memory that the driver knows; None: it does not know the address."""
    kind, ordinal = c_uint(), c_int()
    wanted = (c_uint * 2)(_MEMORY_TYPE, _ORDINAL)
    into = (c_void_p * 2)(ctypes.addressof(kind), ctypes.addressof(ordinal))
    code = _driver().result("cuPointerGetAttributes", 2, wanted, into, address)
    return ordinal.value if code == _SUCCESS and kind.value else None


def wait(device: int, stream: int) -> None:
    """Blocks until the stream has no work left."""
    with _current(device) as driver:
        driver.call("cuStreamSynchronize", stream)


def _record(device: int, stream: int) -> c_void_p:
    """An event at the end of what the stream has now."""
    with _current(device) as driver:
        with _lock:
            free = _events.setdefault(device, [])
            event = free.pop() if free else c_void_p()
        if not event.value:
            driver.call("cuEventCreate", event, _NO_TIMING)
        try:
            driver.call("cuEventRecord", event, stream)
        except Error:
            _give(device, event)
            raise
        return event


def _give(device: int, event: c_void_p) -> None:
    with _lock:
        _events.setdefault(device, []).append(event)


def order(first_device: int, first: int, device: int, stream: int) -> None:
    """What `stream` gets from now on runs after what `first` has now."""
    if device == first_device and (first or LEGACY) == (stream or LEGACY):
        return
    event = _record(first_device, first)
    try:
        with _current(device) as driver:
            driver.call("cuStreamWaitEvent", stream, event, 0)
    finally:
        _give(first_device, event)


# ---- what streams still use ----


def hold(device: int, stream: int, buffers: Tuple[Any, ...], other: Any) -> None:
    """Keeps buffers and one other object until the stream has done what it has now; then the buffers are released."""
    key = (device, stream or LEGACY) + ((threading.get_ident(),) if stream == PER_THREAD else ())
    try:
        event = _record(device, stream)
    except Error:
        try:
            wait(device, stream)
        except Error:  # the device has failed: nothing touches the memory any more
            pass
        _release(buffers)
        return
    with _lock:
        _held.setdefault(key, deque()).append((event, buffers, other))


def _has_passed(device: int, event: c_void_p) -> bool:
    try:
        with _current(device) as driver:
            return driver.result("cuEventQuery", event) != _NOT_READY
    except Error:  # the device has failed
        return True


def collect() -> None:
    """Releases what streams have done with."""
    if not _held or os.getpid() != _pid:  # a forked child has none of the parent's streams
        return
    done: List[Tuple[Tuple[Any, ...], Any]] = []
    with _lock:
        for key, queue in list(_held.items()):
            while queue and _has_passed(key[0], queue[0][0]):
                event, buffers, other = queue.popleft()
                _give(key[0], event)
                done.append((buffers, other))
            if not queue:
                _held.pop(key, None)
    for buffers, _ in done:
        _release(buffers)


def _release(buffers: Tuple[Any, ...]) -> None:
    for buffer in buffers:
        buffer.release()
