"""The compiled module, by which calls are quick; where it is not there, its twin in Python, `_plain`, does the same by
ctypes.

It is looked for beside this package, as a wheel has it; beside libgyre.so, in a folder `gyre`, as cmake --install has
it; and in the build tree that libgyre.so lies in. One of another version is not taken."""
import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Iterator, Optional

from ._library import lib

NAME = f"{__package__}._native"
__all__ = ["compiled", "native"]

FILE = "_native.abi3.so"
VERSION = "0.1.0"


def _library_folder() -> Optional[Path]:
    """Where libgyre.so lies; the loader may have found it by its name alone."""
    named = Path(lib._name)
    if named.is_absolute():
        return named.resolve().parent
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if os.path.basename(path).startswith("libgyre.so"):
                return Path("/" + path).parent
    return None


def _files() -> Iterator[Path]:
    yield Path(__file__).with_name(FILE)
    folder = _library_folder()
    if folder is not None:
        yield folder / "gyre" / FILE
        yield folder.parent / "bindings/python" / FILE


def _import(file: Path) -> Optional[ModuleType]:
    spec = importlib.util.spec_from_file_location(NAME, file)
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module if getattr(module, "__version__", "") == VERSION else None


def _find() -> Optional[ModuleType]:
    if NAME in sys.modules:  # None there: not wanted
        return sys.modules[NAME]
    for file in _files():
        try:
            module = _import(file) if file.is_file() else None
        except ImportError:  # of another system
            continue
        if module is not None:
            sys.modules[NAME] = module
            return module
    return None


if TYPE_CHECKING:
    from . import _native as native  # of which `_plain` is a twin
else:
    native = _find() or importlib.import_module("._plain", __package__)

compiled: bool = native.__name__ == NAME
