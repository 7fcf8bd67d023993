"""Finds libgyre.so and declares its functions.

It is looked for in this order: the file that GYRE_LIBRARY names; in this package, as a wheel has it (gyre/lib); beside
it, if it lies in an installed prefix (PREFIX/lib/.../gyre); what the loader finds (LD_LIBRARY_PATH, ldconfig); beside
the gyre-run of PATH. The first that exists is loaded, and one that lacks a function of this package is refused with an
error message.

Every call releases the interpreter's lock while it is inside the library.
"""
import ctypes
import os
import shutil
from ctypes import POINTER, c_char_p, c_double, c_int, c_size_t, c_ssize_t, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Tuple

NAMES = ("libgyre.so.1", "libgyre.so.0", "libgyre.so")

EXCHANGE = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_size_t)
REDUCE = ctypes.CFUNCTYPE(None, c_void_p, c_void_p, c_void_p, c_void_p, c_size_t, c_int)
TRACE = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)
LOG = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
PRINT = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


class Config(ctypes.Structure):
    """struct gyre_config."""

    _fields_ = [
        ("size", c_size_t),
        ("rank", c_int),
        ("world_size", c_int),
        ("address", c_char_p),
        ("secret", c_char_p),
        ("exchange", EXCHANGE),
        ("exchange_user", c_void_p),
        ("join", c_int),
    ]


_sizes = POINTER(c_size_t)
_request_p = POINTER(c_void_p)
_comm_p = POINTER(c_void_p)

# Arguments after the communicator. The names that stand here exist in four forms: alone, with _start, with _init, and,
# ordered on a stream, with _on.
_io: List[Any] = [c_void_p, c_void_p, c_size_t, c_int]  # input, output, count, dtype
CALLS: Dict[str, List[Any]] = {
    "all_reduce": [*_io, c_int],
    "reduce": [*_io, c_int, c_int],
    "reduce_scatter": [*_io, c_int],
    "broadcast": [*_io, c_int],
    "all_gather": _io,
    "gather": [*_io, c_int],
    "scatter": [*_io, c_int],
    "all_to_all": _io,
    "barrier": [],
    "all_gatherv": [c_void_p, c_void_p, _sizes, _sizes, c_int],
    "gatherv": [c_void_p, c_void_p, _sizes, _sizes, c_int, c_int],
    "scatterv": [c_void_p, _sizes, _sizes, c_void_p, c_int, c_int],
    "reduce_scatterv": [c_void_p, c_void_p, _sizes, c_int, c_int],
    "all_to_allv": [c_void_p, _sizes, _sizes, c_void_p, _sizes, _sizes, c_int],
    "send": [c_void_p, c_size_t, c_int, c_int],
    "recv": [c_void_p, c_size_t, c_int, c_int],
}

# Everything else: result, arguments.
_OTHERS: Dict[str, Tuple[Any, List[Any]]] = {
    "version": (c_char_p, []),
    "status_name": (c_char_p, [c_int]),
    "status_text": (c_char_p, [c_int]),
    "last_error": (c_char_p, [c_void_p]),
    "dtype_size": (c_size_t, [c_int]),
    "dtype_name": (c_char_p, [c_int]),
    "op_name": (c_char_p, [c_int]),
    "dtype_from_name": (c_int, [c_char_p, POINTER(c_int)]),
    "op_from_name": (c_int, [c_char_p, POINTER(c_int)]),
    "comm_create": (c_int, [POINTER(Config), _comm_p]),
    "comm_duplicate": (c_int, [c_void_p, _comm_p]),
    "comm_split": (c_int, [c_void_p, c_int, c_int, _comm_p]),
    "comm_sub": (c_int, [c_void_p, POINTER(c_int), c_int, _comm_p]),
    "comm_destroy": (c_int, [c_void_p]),
    "comm_abort": (c_int, [c_void_p]),
    "comm_revoke": (c_int, [c_void_p]),
    "comm_failed": (c_int, [c_void_p, c_int, c_void_p]),
    "comm_agree": (c_int, [c_void_p, c_uint64, POINTER(c_uint64)]),
    "comm_shrink": (c_int, [c_void_p, _comm_p]),
    "comm_grow": (c_int, [c_void_p, c_int, c_double, _comm_p]),
    "comm_rank": (c_int, [c_void_p]),
    "comm_size": (c_int, [c_void_p]),
    "comm_dump": (c_int, [c_void_p, c_int]),
    "comm_set": (c_int, [c_void_p, c_char_p, c_char_p]),
    "comm_get": (c_int, [c_void_p, c_char_p, c_char_p, c_size_t]),
    "comm_topology": (c_int, [c_void_p, c_int, c_void_p]),
    "comm_counters": (c_int, [c_void_p, c_void_p]),
    "comm_trace": (c_int, [c_void_p, TRACE, c_void_p]),
    "log_set": (None, [LOG, c_void_p]),
    "comm_algorithm": (c_char_p, [c_void_p, c_char_p, c_size_t, c_int]),
    "sendrecv": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_void_p, c_size_t, c_int, c_int]),
    "group_begin": (c_int, []),
    "group_end": (c_int, []),
    "test": (c_int, [_request_p]),
    "wait": (c_int, [_request_p]),
    "wait_any": (c_int, [_request_p, c_size_t, POINTER(c_ssize_t)]),
    "start": (c_int, [c_void_p]),
    "request_free": (c_int, [_request_p]),
    "op_create": (c_int, [c_void_p, REDUCE, c_void_p, c_int, POINTER(c_int)]),
    "op_create_premul_sum": (c_int, [c_void_p, c_void_p, c_int, POINTER(c_int)]),
    "progress": (c_int, [c_void_p]),
    "window_create": (c_int, [c_void_p, c_void_p, c_size_t, POINTER(c_void_p)]),
    "window_destroy": (c_int, [c_void_p]),
    "window_put": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_size_t]),
    "window_get": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_size_t]),
    "window_accumulate": (c_int, [c_void_p, c_void_p, c_size_t, c_int, c_int, c_int, c_size_t]),
    "window_flush": (c_int, [c_void_p, c_int]),
    "window_signal": (c_int, [c_void_p, c_int, c_uint]),
    "window_wait": (c_int, [c_void_p, c_uint, c_uint64]),
    "mem_alloc": (c_int, [c_void_p, c_size_t, POINTER(c_void_p)]),
    "mem_register": (c_int, [c_void_p, c_void_p, c_size_t]),
    "mem_deregister": (c_int, [c_void_p, c_void_p]),
    "mem_free": (c_int, [c_void_p, c_void_p]),
    "info": (None, [PRINT, c_void_p]),
    "config_describe": (None, [PRINT, c_void_p]),
    "config_check": (c_int, [c_char_p, c_size_t]),
    "cuda_available": (c_int, [POINTER(c_int)]),
    "cuda_attach": (c_int, [c_void_p, c_int]),
    "cuda_status": (c_int, [c_void_p]),
}


def prototypes() -> Dict[str, Tuple[Any, Sequence[Any]]]:
    """Every function of gyre.h and cuda.h that this package calls."""
    found: Dict[str, Tuple[Any, Sequence[Any]]] = {f"gyre_{name}": entry for name, entry in _OTHERS.items()}
    for name, arguments in CALLS.items():
        found[f"gyre_{name}"] = (c_int, [c_void_p, *arguments])
        for form in ("start", "init"):
            found[f"gyre_{name}_{form}"] = (c_int, [c_void_p, *arguments, _request_p])
        found[f"gyre_{name}_on"] = (c_int, [c_void_p, *arguments, c_void_p])
    return found


def _in_folders(folders: Iterator[Path]) -> Iterator[str]:
    for folder in folders:
        for name in NAMES:
            if (folder / name).is_file():
                yield str(folder / name)


def _beside_package() -> Iterator[Path]:
    """The package's own; PREFIX/lib and PREFIX/lib/x86_64-linux-gnu, for a package that lies somewhere below
    PREFIX/lib."""
    yield Path(__file__).resolve().parent / "lib"
    for parent in Path(__file__).resolve().parents:
        if parent.name in ("lib", "lib64"):
            yield parent
            yield from sorted(parent.glob("*-linux-gnu*"))


def _beside_program() -> Iterator[Path]:
    program = shutil.which("gyre-run")
    if program:
        prefix = Path(program).resolve().parent.parent
        for folder in ("lib", "lib64"):
            yield prefix / folder
            yield from sorted((prefix / folder).glob("*-linux-gnu*"))
        yield prefix / "src"  # a build tree


def _candidates() -> Iterator[str]:
    yield from _in_folders(_beside_package())
    yield from NAMES
    yield from _in_folders(_beside_program())


def _open() -> ctypes.CDLL:
    named = os.environ.get("GYRE_LIBRARY")
    if named:
        try:
            return ctypes.CDLL(named)
        except OSError as reason:
            raise ImportError(f"GYRE_LIBRARY names {named}, which cannot be loaded: {reason}") from None
    reasons = []
    for candidate in _candidates():
        try:
            return ctypes.CDLL(candidate)
        except OSError as reason:
            reasons.append(str(reason))
    raise ImportError(
        "libgyre.so was not found: install gyre, or set GYRE_LIBRARY to the file, or LD_LIBRARY_PATH to its folder ("
        + "; ".join(reasons)
        + ")"
    )


def _load() -> ctypes.CDLL:
    library = _open()
    for name, (result, arguments) in prototypes().items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(
                f"{library._name} has no function {name}: it is not of the version that this package is for; "
                "set GYRE_LIBRARY to another one"
            ) from None
        function.restype = result
        function.argtypes = arguments
    return library


lib = _load()
