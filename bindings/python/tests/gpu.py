"""Memory and streams of a GPU for tests, by the driver that is installed as libcuda.so.1: on machines without a GPU its
stand-in, where an access of the host to device memory faults. Arrays that export it by either protocol."""
import ctypes
from ctypes import c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p
from typing import Any, Dict, List, Optional, Tuple

import numpy

_cuda = ctypes.CDLL("libcuda.so.1")
_cuda.cuMemAlloc.argtypes = [ctypes.POINTER(c_uint64), c_size_t]
_cuda.cuMemFree.argtypes = [c_uint64]
_cuda.cuMemHostAlloc.argtypes = [ctypes.POINTER(c_void_p), c_size_t, c_uint]
_cuda.cuMemcpyAsync.argtypes = [c_uint64, c_uint64, c_size_t, c_void_p]
_cuda.cuStreamCreate.argtypes = [ctypes.POINTER(c_void_p), c_uint]
_cuda.cuStreamSynchronize.argtypes = [c_void_p]
_cuda.cuStreamQuery.argtypes = [c_void_p]
_cuda.cuStreamWaitEvent.argtypes = [c_void_p, c_void_p, c_uint]
_cuda.cuStreamWaitValue32.argtypes = [c_void_p, c_uint64, c_uint32, c_uint]
_cuda.cuEventCreate.argtypes = [ctypes.POINTER(c_void_p), c_uint]
_cuda.cuEventRecord.argtypes = [c_void_p, c_void_p]
_cuda.cuDevicePrimaryCtxRetain.argtypes = [ctypes.POINTER(c_void_p), c_int]
_cuda.cuCtxGetDevice.argtypes = [ctypes.POINTER(c_int)]
_cuda.cuCtxPushCurrent.argtypes = [c_void_p]
_cuda.cuCtxPopCurrent.argtypes = [ctypes.POINTER(c_void_p)]

NON_BLOCKING, NOT_READY = 1, 600


def check(result: int) -> None:
    if result:
        raise AssertionError(f"the CUDA driver has returned {result}")


def enter(device: int) -> None:
    """The device's context is the current one of this thread until leave()."""
    context = c_void_p()
    check(_cuda.cuInit(0))
    check(_cuda.cuDevicePrimaryCtxRetain(context, device))
    check(_cuda.cuCtxPushCurrent(context))


def leave() -> None:
    check(_cuda.cuCtxPopCurrent(c_void_p()))


class Stream:
    """A stream that is not ordered with the legacy one."""

    def __init__(self) -> None:
        handle = c_void_p()
        check(_cuda.cuStreamCreate(handle, NON_BLOCKING))
        assert handle.value
        self.handle: int = handle.value
        word = c_void_p()
        check(_cuda.cuMemHostAlloc(word, ctypes.sizeof(c_uint32), 0))  # streams wait for pinned memory only
        assert word.value
        self._word = (c_uint32 * 1).from_address(word.value)

    def synchronize(self) -> None:
        check(_cuda.cuStreamSynchronize(self.handle))

    def is_done(self) -> bool:
        return int(_cuda.cuStreamQuery(self.handle)) != NOT_READY

    def stop(self) -> None:
        """Work after this waits for go()."""
        self._word[0] = 0
        check(_cuda.cuStreamWaitValue32(self.handle, ctypes.addressof(self._word), 1, 0))

    def go(self) -> None:
        self._word[0] = 1


class Memory:
    """Device memory with the bytes of an array of NumPy; `filled_by` None: they are there at once."""

    def __init__(self, like: Any, filled_by: Optional[Stream] = None) -> None:
        self.like = numpy.ascontiguousarray(like)  # kept: a stream may still read it
        address = c_uint64()
        check(_cuda.cuMemAlloc(address, max(self.like.nbytes, 1)))
        self.address: int = address.value
        self.put(self.like, filled_by)

    def put(self, array: Any, stream: Optional[Stream] = None) -> None:
        self.like = numpy.ascontiguousarray(array)
        handle = stream.handle if stream else 2
        check(_cuda.cuMemcpyAsync(self.address, self.like.ctypes.data, self.like.nbytes, handle))
        if stream is None:
            check(_cuda.cuStreamSynchronize(handle))

    def get(self) -> Any:
        """Its bytes now, as an array of the same kind."""
        found = numpy.empty_like(self.like)
        check(_cuda.cuMemcpyAsync(found.ctypes.data, self.address, found.nbytes, 2))
        check(_cuda.cuStreamSynchronize(2))
        return found

    def __del__(self) -> None:
        _cuda.cuMemFree(self.address)


class Array(Memory):
    """By __cuda_array_interface__. `changes`: of that; `dtype`: the name of the type that NumPy does not have."""

    def __init__(
        self, like: Any, filled_by: Optional[Stream] = None, dtype: Optional[str] = None, **changes: Any
    ) -> None:
        super().__init__(like, filled_by)
        self.changes = changes
        if filled_by is not None:
            self.changes.setdefault("stream", filled_by.handle)
        if dtype is not None:
            self.dtype = dtype

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        like = self.like
        plain = {"shape": like.shape, "typestr": like.dtype.str, "data": (self.address, False), "version": 3}
        return {**plain, **self.changes}


# ---- DLPack ----


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", c_void_p), ("device", c_int), ("number", c_int), ("dimensions", c_int), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", c_void_p), ("strides", c_void_p), ("offset", c_uint64),
    ]  # fmt: skip


_DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", c_void_p), ("deleter", _DELETER)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", _DELETER), ("flags", c_uint64), ("tensor", _Tensor)
    ]  # fmt: skip


_new = ctypes.pythonapi.PyCapsule_New
_new.argtypes = [c_void_p, ctypes.c_char_p, c_void_p]
_new.restype = ctypes.py_object
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class Exporter(Memory):
    """By DLPack. `version` None: as before version 1. `code`: of the elements, where it is not that of NumPy's type.
    `deleted`: how often the deleter has been called."""

    def __init__(
        self,
        like: Any,
        filled_by: Optional[Stream] = None,
        version: Optional[Tuple[int, int]] = (1, 1),
        code: Optional[int] = None,
        flags: int = 0,
        kind: int = 2,
        strides: Optional[Tuple[int, ...]] = None,
    ) -> None:
        super().__init__(like, filled_by)
        number = c_int()
        check(_cuda.cuCtxGetDevice(number))
        self.place = (kind, number.value)
        self.filled_by, self.version, self.flags, self.strides = filled_by, version, flags, strides
        self.code = _CODES[self.like.dtype.kind] if code is None else code
        self.exported: List[Any] = []  # kept: a deleter cannot free itself
        self.streams: List[Any] = []
        self.deleted = 0

    def __dlpack_device__(self) -> Tuple[int, int]:
        return self.place

    def __dlpack__(self, **options: Any) -> Any:
        if self.version is None and "max_version" in options:
            raise TypeError("__dlpack__() got an unexpected keyword argument 'max_version'")
        self.streams.append(options.get("stream"))
        if self.filled_by is not None and options.get("stream") not in (None, -1):
            event = c_void_p()
            check(_cuda.cuEventCreate(event, 2))
            check(_cuda.cuEventRecord(event, self.filled_by.handle))
            check(_cuda.cuStreamWaitEvent(options["stream"], event, 0))
        return self._capsule()

    def _capsule(self) -> Any:
        managed: Any = _Managed() if self.version is None else _Versioned()
        address = ctypes.addressof(managed)

        def delete(_: object) -> None:
            self.deleted += 1

        count = len(self.like.shape)
        shape = (ctypes.c_int64 * count)(*self.like.shape)
        strides = None if self.strides is None else (ctypes.c_int64 * count)(*self.strides)
        managed.deleter = _DELETER(delete)
        managed.tensor = _Tensor(
            self.address, *self.place, count, self.code, self.like.dtype.itemsize * 8, 1, ctypes.addressof(shape),
            None if strides is None else ctypes.addressof(strides), 0,
        )  # fmt: skip
        if self.version is not None:
            managed.major, managed.minor = self.version
            managed.flags = self.flags
        self.exported.append((managed, shape, strides))
        return _new(address, b"dltensor" if self.version is None else b"dltensor_versioned", None)
