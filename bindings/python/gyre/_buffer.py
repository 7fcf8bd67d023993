"""Buffers: the memory of whatever has the buffer protocol, held for as long as gyre may touch it.

A Buffer keeps the object's export (Py_buffer), or what it exports by DLPack, until release(): the object can neither be
freed nor resized meanwhile, even if the caller forgets it. Nothing is copied. The memory has to be in one piece, in C
order; what gyre writes to has to be writable. The element type is that of the object, or, for types that Python has no
letter for (bfloat16, 8-bit floats) and for raw bits, in unsigned integers or bytes, the one that the caller names.
"""
import ctypes
import sys
from ctypes import POINTER, c_char_p, c_int, c_ssize_t, c_void_p
from typing import Any, Optional, Tuple

from ._compiled import compiled, native
from ._errors import InvalidArgument
from ._gpu_array import HOST, NAMED, Gpu, export
from ._memory import Memory
from ._types import DTYPE_ALIASES, AnyDType, DType


class _PyBuffer(ctypes.Structure):
    """Py_buffer of CPython's stable interface."""

    _fields_ = [
        ("buf", c_void_p),
        ("obj", c_void_p),
        ("len", c_ssize_t),
        ("itemsize", c_ssize_t),
        ("readonly", c_int),
        ("ndim", c_int),
        ("format", c_char_p),
        ("shape", POINTER(c_ssize_t)),
        ("strides", POINTER(c_ssize_t)),
        ("suboffsets", POINTER(c_ssize_t)),
        ("internal", c_void_p),
    ]


_FULL_READ_ONLY = 0x0100 | 0x0018 | 0x0004  # PyBUF_FULL_RO: indirect, strides, format; writable is not demanded

# These run with the interpreter's lock held, as the buffer protocol wants it. Through a library handle of our own, so
# that other users of ctypes.pythonapi may declare them as they like.
_api = ctypes.PyDLL(None)
_get = _api.PyObject_GetBuffer
_get.argtypes = [ctypes.py_object, POINTER(_PyBuffer), c_int]
_get.restype = c_int
_is_contiguous = _api.PyBuffer_IsContiguous
_is_contiguous.argtypes = [POINTER(_PyBuffer), ctypes.c_char]
_is_contiguous.restype = c_int
_release = _api.PyBuffer_Release
_release.argtypes = [POINTER(_PyBuffer)]
_release.restype = None

_SIGNED = {1: DType.INT8, 4: DType.INT32, 8: DType.INT64}
_UNSIGNED = {1: DType.UINT8, 4: DType.UINT32, 8: DType.UINT64}
_FLOATS = {"e": DType.FLOAT16, "f": DType.FLOAT32, "d": DType.FLOAT64}
_FOREIGN = (">", "!") if sys.byteorder == "little" else ("<",)
_BITS = tuple("BHILQNchsx?")  # what may be bits of any type: int16 is no type of gyre's


def dtype_of(dtype: AnyDType) -> DType:
    """The type of this name or number."""
    try:
        if isinstance(dtype, str):
            alias = DTYPE_ALIASES.get(dtype.lower())
            return DType[dtype.upper()] if alias is None else alias
        return DType(dtype)
    except (KeyError, ValueError):
        names = ", ".join(kind.name.lower() for kind in DType)
        raise InvalidArgument(f"{dtype!r} is not an element type; there are {names}") from None


def _letter(form: str) -> str:
    """The kind of element that a format of the struct module stands for, without byte order and length."""
    return form.lstrip("@=<>!0123456789")


def _natural(form: str, itemsize: int) -> Optional[DType]:
    """The type that a format stands for."""
    letter = _letter(form)
    if letter in ("b", "h", "i", "l", "q", "n"):
        return _SIGNED.get(itemsize)
    if letter in ("B", "H", "I", "L", "Q", "N", "c"):
        return _UNSIGNED.get(itemsize)
    return DType.BOOL if letter == "?" else _FLOATS.get(letter)


def _native(form: str, itemsize: int) -> str:
    """How to convert elements of the other byte order, as part of an error message."""
    letter = _letter(form)
    for kind, letters in (("i", "bhilqn"), ("u", "BHILQN"), ("f", "efdg")):
        if letter in tuple(letters):
            return f"convert with .astype('={kind}{itemsize}')"
    return "convert them"


# What gyre has no type of its own for: the type that its elements are moved and reduced as.
_KINDS = {
    "Zf": ("complex", DType.FLOAT32),
    "Zd": ("complex", DType.FLOAT64),
}


# Bits of any type: DLPack's codes of unsigned integers, and of signed ones, as PyTorch has no others of 16 bits.
_DLPACK_BITS = (0, 1)

# Types of PyTorch that its older releases do not export by DLPack, or, where only __cuda_array_interface__ is there, by
# that: as what they are seen instead.
_NOT_EXPORTED = {
    "bool": ("uint8", DType.BOOL),
    "float8_e4m3fn": ("uint8", DType.FLOAT8_E4M3),
    "float8_e5m2": ("uint8", DType.FLOAT8_E5M2),
}
if not compiled:
    _NOT_EXPORTED["bfloat16"] = ("int16", DType.BFLOAT16)


def _bits_of(what: str, source: Any) -> Optional[Tuple[Any, DType]]:
    """An array of one of these types as one of unsigned integers, and the type; None for any other object."""
    name = str(getattr(source, "dtype", "")).rpartition(".")[2]
    foreign = type(source).__module__.partition(".")[0]
    if foreign == "numpy":
        if name in NAMED:
            return source.view(f"u{NAMED[name].size}"), NAMED[name]
        if name:
            raise InvalidArgument(f"{what}: gyre has no type for elements of {name}: convert them")
    if foreign == "torch" and name in _NOT_EXPORTED:
        bits, kind = _NOT_EXPORTED[name]
        return source.view(getattr(sys.modules["torch"], bits)), kind
    return None


def _does_not_convert(what: str, source: Any, kind: str, dtype: DType) -> InvalidArgument:
    return InvalidArgument(
        f"{what}: the elements of the {type(source).__name__} are {kind}, and dtype={dtype.name.lower()} does not convert "
        "them: convert them first, for instance with .astype; raw bits are taken from unsigned integers and bytes"
    )


class Buffer:
    """`address`, `count` elements of `dtype`, in `nbytes` bytes, of `source`. `what` names the argument in error
    messages. `kind` is "complex" where each two elements are a complex number, else empty."""

    __slots__ = ("_view", "_held", "_tensor", "source", "address", "nbytes", "dtype", "count", "kind")

    def __init__(
        self,
        what: str,
        source: Any,
        *,
        writable: bool,
        dtype: Optional[AnyDType] = None,
        raw: bool = False,
        gpu: Optional[Gpu] = None,
    ) -> None:
        """`raw`: bytes, whatever the elements are. `gpu` None: memory of a GPU is refused."""
        self._held = False
        self._tensor: Any = None
        self.source = source
        self.kind = ""
        self._view = _PyBuffer()
        reason = self._export(source)
        if reason is not None:
            self._borrow(what, source, writable, dtype, raw, reason, gpu)
            return
        try:
            self._check(what, source, writable)
            self.dtype = DType.UINT8 if raw else self._choose(what, source, dtype)
        except BaseException:
            self.release()
            raise
        self.address: Optional[int] = self._view.buf
        self.nbytes: int = self._view.len
        self.count: int = self.nbytes // self.dtype.size

    def _export(self, source: Any) -> Optional[BaseException]:
        """By the buffer protocol; gives why it could not be."""
        try:
            _get(source.view if isinstance(source, Memory) else source, self._view, _FULL_READ_ONLY)
        except (TypeError, BufferError, ValueError) as reason:
            return reason
        self._held = True
        return None

    def _borrow(
        self,
        what: str,
        source: Any,
        writable: bool,
        dtype: Optional[AnyDType],
        raw: bool,
        reason: BaseException,
        gpu: Optional[Gpu],
    ) -> None:
        """What has no buffer protocol for its elements: the bits of an array of ml_dtypes' types, an array in the
        memory of a GPU, or a tensor by DLPack."""
        named = _bits_of(what, source)
        if named is not None:
            bits, kind = named
            if not raw and dtype is not None and dtype_of(dtype) != kind:
                raise _does_not_convert(what, source, kind.name.lower(), dtype_of(dtype))
            self.__init__(what, bits, writable=writable, dtype=kind, raw=raw, gpu=gpu)  # type: ignore[misc]
            self.source = source
            return
        tensor = export(what, source, gpu) or self._export_tensor(what, source, reason)
        self._tensor = tensor[0]
        try:
            self._describe(what, source, writable, dtype, raw, tensor)
        except BaseException:
            self.release()
            raise

    @staticmethod
    def _export_tensor(what: str, source: Any, reason: BaseException) -> Tuple[Any, ...]:
        if not hasattr(source, "__dlpack__"):
            raise InvalidArgument(
                f"{what}: a {type(source).__name__} has no memory that gyre can use ({reason}): give a NumPy array, "
                "array.array, bytearray, memoryview or another object with the buffer protocol, DLPack or "
                "__cuda_array_interface__"
            ) from None
        try:
            tensor = native.tensor(source)
        except Exception as refusal:
            raise InvalidArgument(f"{what}: the {type(source).__name__} exports no memory: {refusal}") from None
        if tensor[9] not in HOST:
            raise InvalidArgument(f"{what}: the {type(source).__name__} is in the memory of a device, and does not say so")
        return tensor

    def _describe(
        self, what: str, source: Any, writable: bool, dtype: Optional[AnyDType], raw: bool, tensor: Tuple[Any, ...]
    ) -> None:
        _, address, elements, number, parts, bits, code, readonly, contiguous, _, _ = tensor
        name = type(source).__name__
        if not contiguous:
            raise InvalidArgument(f"{what}: the {name} is not in one piece in C order; give a contiguous one")
        if writable and readonly:
            raise InvalidArgument(f"{what}: the {name} is read-only, and gyre is to write to it")
        self.address = address
        self.nbytes = elements * bits // 8
        self.dtype = DType.UINT8
        if not raw:
            self.dtype = self._type_of_tensor(what, source, dtype, number, bits, code)
            self.kind = "complex" if parts == 2 else ""
        self.count = self.nbytes // self.dtype.size

    def _type_of_tensor(
        self, what: str, source: Any, wanted: Optional[AnyDType], number: int, bits: int, code: int
    ) -> DType:
        natural = DType(number) if number >= 0 else None
        if wanted is None and natural is None:
            raise InvalidArgument(
                f"{what}: gyre has no type for the elements of the {type(source).__name__} "
                f"(DLPack's code {code}, {bits} bits): convert them"
            )
        if wanted is None or dtype_of(wanted) is natural:
            assert natural is not None
            return natural
        chosen = dtype_of(wanted)
        if code not in _DLPACK_BITS or not (bits == 8 * chosen.size or natural is DType.UINT8) or self.nbytes % chosen.size:
            found = natural.name.lower() if natural is not None else f"of {bits} bits"
            raise _does_not_convert(what, source, found, chosen)
        return chosen

    def _check(self, what: str, source: Any, writable: bool) -> None:
        if not _is_contiguous(self._view, b"C"):
            raise InvalidArgument(
                f"{what}: the {type(source).__name__} is not in one piece in C order; give a contiguous one, for "
                "instance numpy.ascontiguousarray of it"
            )
        if writable and self._view.readonly:
            raise InvalidArgument(f"{what}: the {type(source).__name__} is read-only, and gyre is to write to it")

    def _choose(self, what: str, source: Any, wanted: Optional[AnyDType]) -> DType:
        form = (self._view.format or b"B").decode("ascii", "replace")
        itemsize = self._view.itemsize
        natural = _natural(form, itemsize)
        if form.startswith(_FOREIGN) and itemsize > 1:
            raise InvalidArgument(
                f"{what}: the elements of the {type(source).__name__} are in another byte order than this machine's "
                f"(format {form!r}): {_native(form, itemsize)}"
            )
        if wanted is not None:
            return self._named(what, source, natural, dtype_of(wanted))
        if natural is None and _letter(form) in _KINDS:
            self.kind, natural = _KINDS[_letter(form)]
        if natural is None:
            raise InvalidArgument(
                f"{what}: gyre has no type for elements of format {form!r} and {itemsize} bytes: convert them; or, if "
                "they are bits of a type that Python has no letter for, name it, for instance dtype='bfloat16'"
            )
        return natural

    def _named(self, what: str, source: Any, natural: Optional[DType], dtype: DType) -> DType:
        """The type that the caller names: the elements' own, or that of raw bits. Nothing is converted."""
        form = (self._view.format or b"B").decode("ascii", "replace")
        itemsize = self._view.itemsize
        name = dtype.name.lower()
        if not (itemsize == dtype.size or (itemsize == 1 and natural is DType.UINT8)) or self._view.len % dtype.size:
            raise InvalidArgument(
                f"{what}: dtype={name} does not fit {self._view.len} bytes of a {type(source).__name__} in elements of "
                f"{itemsize}: one element has {dtype.size} bytes"
            )
        if natural != dtype and _letter(form) not in _BITS:
            kind = natural.name.lower() if natural is not None else f"of format {form!r}"
            raise _does_not_convert(what, source, kind, dtype)
        return dtype

    def release(self) -> None:
        """Gives the memory back to its owner. May be called again."""
        self._tensor = None
        if self._held:
            self._held = False
            _release(self._view)

    def __del__(self) -> None:
        if getattr(self, "_held", False):
            self.release()


AnyBuffer = Any  # typing.Buffer needs Python 3.12
