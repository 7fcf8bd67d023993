"""Arrays in the memory of a GPU: what they export by DLPack or by __cuda_array_interface__.

An array that has DLPack is asked by that, as its exporter knows all element types, and orders its own work before the
caller's. The other protocol is for arrays without it. Both give what native.tensor gives.
"""
from typing import Any, Dict, NamedTuple, Optional, Tuple

from . import _driver
from ._compiled import compiled, native
from ._errors import Error, InvalidArgument, Unsupported
from ._types import DType

HOST = (1, 3, 11)  # kinds of devices of DLPack whose memory the processor reaches: CPU, pinned memory of CUDA and ROCm
_CUDA = (2, 13)  # device and managed memory
CUDA_DEFAULT, NONE, CUDA_CURRENT = -3, -2, -1  # what a rank is attached to besides numbers of devices: gyre/cuda.h

_TYPES: Dict[str, Tuple[DType, int]] = {
    "i1": (DType.INT8, 1),
    "i4": (DType.INT32, 1),
    "i8": (DType.INT64, 1),
    "u1": (DType.UINT8, 1),
    "u4": (DType.UINT32, 1),
    "u8": (DType.UINT64, 1),
    "f2": (DType.FLOAT16, 1),
    "f4": (DType.FLOAT32, 1),
    "f8": (DType.FLOAT64, 1),
    "b1": (DType.BOOL, 1),
    "c8": (DType.FLOAT32, 2),
    "c16": (DType.FLOAT64, 2),
}
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6, "V": 1}  # DLPack's; V: raw bits

# Types that typestr has no letter for, by the name of the array's dtype.
NAMED = {
    "bfloat16": DType.BFLOAT16,
    "float8_e4m3fn": DType.FLOAT8_E4M3,
    "float8_e5m2": DType.FLOAT8_E5M2,
}


class Gpu(NamedTuple):
    """What a call knows of GPUs."""

    device: Optional[int]
    """The one that its communicator is attached to; NONE; None: it is not attached."""
    stream: Optional[int]
    """The handle of the stream that orders the call; None: the host waits."""


def export(what: str, source: Any, gpu: Optional[Gpu]) -> Optional[Tuple[Any, ...]]:
    """What the array exports, as native.tensor gives it; None: it is in the memory of the host. `gpu` None: for no use
    that takes memory of a GPU."""
    kind = _kind_of(source)
    if kind in HOST:
        return None
    interface = None if kind in _CUDA and compiled else _interface(what, source)
    if kind is None and interface is None:
        return None
    if kind is not None and kind not in _CUDA:
        raise Unsupported(
            f"{what}: the {type(source).__name__} is in the memory of a device (DLPack's kind {kind}), which gyre cannot "
            "reach: copy it to the host first"
        )
    device, stream = _reach(what, source, interface, gpu)
    exported = _export(what, source, interface, Gpu(device, stream))
    if exported[2] and _driver.device_of(exported[1]) is None:
        raise InvalidArgument(
            f"{what}: the {type(source).__name__} is said to be in the memory of a GPU at address {exported[1]:#x}, which the "
            "CUDA driver of this process does not know"
        )
    return exported


def _kind_of(source: Any) -> Optional[int]:
    """DLPack's kind of the device; None: no DLPack."""
    ask = getattr(source, "__dlpack_device__", None)
    return int(ask()[0]) if callable(ask) else None


def _interface(what: str, source: Any) -> Optional[Dict[str, Any]]:
    try:
        found = getattr(source, "__cuda_array_interface__", None)
    except Exception as refusal:
        raise InvalidArgument(f"{what}: the {type(source).__name__} exports no memory: {refusal}") from None
    return None if found is None else dict(found)


def _reach(what: str, source: Any, interface: Optional[Dict[str, Any]], gpu: Optional[Gpu]) -> Tuple[int, Optional[int]]:
    """The device and the stream of the call, where memory of a GPU can be used."""
    if gpu is not None and gpu.device is not None and gpu.device != NONE:
        return gpu.device, gpu.stream
    place = f"the {type(source).__name__} is in the memory of a GPU"
    if interface is not None:
        place += f" (address {interface['data'][0]:#x})"
    if gpu is None:
        raise Unsupported(f"{what}: {place}, and this takes memory of the host alone: copy it to the host first")
    if gpu.device == NONE:
        raise Unsupported(f"{what}: {place}, and this rank is attached to none: copy it to the host first")
    raise Unsupported(
        f"{what}: {place}, and the communicator is not attached to one: call cuda_attach() on every rank, or copy it to the "
        "host first"
    )


def _export(what: str, source: Any, interface: Optional[Dict[str, Any]], gpu: Gpu) -> Tuple[Any, ...]:
    if interface is not None:
        return _of_interface(what, source, interface, gpu)
    try:
        tensor = native.tensor(source, gpu.stream or _driver.LEGACY)
    except Exception as refusal:  # which the other protocol may not know: a conjugate view, another current device
        raise InvalidArgument(f"{what}: the {type(source).__name__} exports no memory: {refusal}") from None
    if gpu.stream is None:
        _driver.wait(tensor[10], _driver.LEGACY)  # behind which the exporter has put its work
    return tensor


# ---- __cuda_array_interface__ ----


def _of_interface(what: str, source: Any, interface: Dict[str, Any], gpu: Gpu) -> Tuple[Any, ...]:
    name = type(source).__name__
    try:
        version = int(interface["version"])
        shape = tuple(int(length) for length in interface["shape"])
        typestr = str(interface["typestr"])
        address, readonly = interface["data"]
        strides = interface.get("strides")
    except (KeyError, TypeError, ValueError) as reason:
        raise InvalidArgument(f"{what}: __cuda_array_interface__ of the {name} is incomplete: {reason!r}") from None
    if version not in (2, 3):
        raise Unsupported(f"{what}: the {name} has version {version} of __cuda_array_interface__; gyre knows 2 and 3")
    if interface.get("mask") is not None:
        raise InvalidArgument(f"{what}: the {name} has a mask, which gyre does not look at: give an array without")
    if any(callable(getattr(source, bit, None)) and getattr(source, bit)() for bit in ("is_conj", "is_neg")):
        raise InvalidArgument(f"{what}: the {name} is a view that PyTorch negates when it is read: give .resolve_conj() of it")
    number, parts, bits, code = _type_of(what, source, typestr)
    elements = 1
    for length in shape:
        elements *= length
    device = _driver.device_of(int(address or 0)) if elements else None
    if version == 3:
        _wait_for_producer(what, interface.get("stream"), gpu.device if device is None else device, gpu)
    immutable = type(source).__module__.partition(".")[0] in ("jax", "jaxlib")
    contiguous = strides is None or _is_contiguous(shape, strides, bits // 8)
    return (
        interface, int(address or 0), elements, number, parts, bits, code, bool(readonly) or immutable, contiguous, 2, device
    )  # fmt: skip


def _type_of(what: str, source: Any, typestr: str) -> Tuple[int, int, int, int]:
    """As native.tensor has them: the number of the type or −1, the parts of an element, its bits, DLPack's code."""
    order, letter, size = typestr[:1], typestr[1:2], typestr[2:]
    name = type(source).__name__
    if letter not in _CODES or not size.isdigit() or size == "0":
        raise InvalidArgument(f"{what}: gyre has no type for the elements of the {name} ({typestr!r}): convert them")
    if order == ">" and size != "1":
        raise InvalidArgument(f"{what}: the elements of the {name} are in another byte order ({typestr!r}): convert them")
    named = NAMED.get(str(getattr(source, "dtype", "")).rpartition(".")[2])
    if named is not None and named.size == int(size):
        return int(named), 1, 8 * int(size), 4
    number, parts = _TYPES.get(letter + size, (-1, 1))
    return int(number), parts, 8 * int(size), _CODES[letter]


def _is_contiguous(shape: Tuple[int, ...], strides: Any, itemsize: int) -> bool:
    """In C order without gaps; the strides are in bytes."""
    expected = itemsize
    fits = len(strides) == len(shape)
    for length, stride in zip(reversed(shape), reversed(strides)):
        if length == 0:
            return True
        fits = fits and (length == 1 or stride == expected)
        expected *= length
    return fits


def _wait_for_producer(what: str, producer: Any, device: Optional[int], gpu: Gpu) -> None:
    """The stream on which the array is being written, of version 3; None: nothing is to be waited for."""
    if producer is None:
        return
    if not isinstance(producer, int) or isinstance(producer, bool) or producer <= 0:
        raise InvalidArgument(f"{what}: stream {producer!r} in __cuda_array_interface__ is not 1, 2 or a pointer")
    assert device is not None and gpu.device is not None
    try:
        if gpu.stream is None:
            _driver.wait(device, producer)
        else:
            _driver.order(device, producer, gpu.device, gpu.stream)
    except Error as reason:
        raise type(reason)(f"{what}: the stream of the array cannot be waited for: {reason}") from None
