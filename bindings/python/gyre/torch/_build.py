"""Compiles the extension against the torch that is installed, once for each version of it and of the sources, and loads
it."""
import fcntl
import hashlib
import importlib.util
import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import List

import torch

from .. import library_path

SOURCES = Path(__file__).resolve().parent / "csrc"
NAME = "gyre.torch._backend"


def _headers() -> Path:
    """The folder that holds gyre/gyre.h: of the wheel, of the source tree, or of the prefix in which libgyre lies."""
    package = Path(__file__).resolve().parents[1]
    found = [package / "include", package.parents[2] / "include"]
    found += [folder / "include" for folder in Path(library_path()).resolve().parents]
    for folder in found:
        if (folder / "gyre/gyre.h").exists():
            return folder
    raise ImportError("gyre.torch: there is no gyre/gyre.h beside the package or beside libgyre.so, to compile the backend with")


def _cache() -> Path:
    chosen = os.environ.get("TORCH_GYRE_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "gyre"


def _command(headers: Path, target: str) -> List[str]:
    folder = Path(torch.__file__).parent
    compiler = shlex.split(os.environ.get("CXX", "c++"))
    version = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    includes = [f"-I{headers}"]
    for include in (folder / "include", folder / "include/torch/csrc/api/include", sysconfig.get_paths()["include"]):
        includes += ["-isystem", str(include)]
    return [*compiler, "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra", f"-std=c++{20 if version >= (2, 10) else 17}",
            f"-D_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}", *shlex.split(os.environ.get("CXXFLAGS", "")), *includes,
            "-x", "c++", "-", "-o", target, f"-L{folder}/lib", f"-Wl,-rpath,{folder}/lib", "-ltorch_python", "-ltorch", "-ltorch_cpu", "-lc10", "-ldl", "-lpthread"]


def _key(headers: Path) -> str:
    """What a compiled file is good for: versions, compiler's settings, sources."""
    known = hashlib.sha256()
    for part in (torch.__version__, sys.version, os.environ.get("CXX", ""), os.environ.get("CXXFLAGS", "")):
        known.update(part.encode() + b"\0")
    for file in [*sorted(SOURCES.iterdir()), headers / "gyre/gyre.h"]:
        known.update(file.read_bytes())
    return known.hexdigest()[:16]


def _compile(headers: Path, target: Path) -> None:
    """All sources as one: torch's headers, which take most of the time, are read once."""
    everything = "".join(f'#include "{file}"\n' for file in sorted(SOURCES.glob("*.cpp")))
    with tempfile.NamedTemporaryFile(dir=target.parent, suffix=".so", delete=False) as file:
        pass
    try:
        done = subprocess.run(_command(headers, file.name), input=everything, capture_output=True, text=True)
        if done.returncode:
            raise ImportError(f"gyre.torch: the backend does not compile with torch {torch.__version__}:\n{done.stderr[-4000:]}")
        os.replace(file.name, target)
    except FileNotFoundError as error:
        raise ImportError(f"gyre.torch: there is no C++ compiler to build the backend with ({error}); CXX names one") from None
    finally:
        if os.path.exists(file.name):
            os.unlink(file.name)


def load() -> ModuleType:
    """The extension; compiled, where this has not been done yet, by one process of the host while the others wait."""
    headers = _headers()
    folder = _cache()
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"torch-{torch.__version__}-{sys.implementation.cache_tag}-{_key(headers)}.so"
    if not target.exists():
        with open(folder / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not target.exists():
                _compile(headers, target)
    spec = importlib.util.spec_from_file_location(NAME, target)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.load(library_path())
    return module
