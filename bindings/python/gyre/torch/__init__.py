"""The backend "gyre" of torch.distributed, for tensors in the memory of the host.

    import gyre.torch                                # torch 2.15 and later find an installed package without it
    torch.distributed.init_process_group("gyre")     # or "cpu:gyre,cuda:nccl"

The backend is a subclass of c10d::Backend in C++. It is compiled when the first group is made, against the torch that
is installed, and kept in ~/.cache/gyre (TORCH_GYRE_CACHE); this needs a C++ compiler (CXX) and Python's headers.
"""
import atexit
import datetime
import functools
from types import ModuleType
from typing import Any

import torch.distributed


@functools.lru_cache(maxsize=None)
def _backend() -> ModuleType:
    from . import _build

    module = _build.load()
    atexit.register(module.close_all)
    return module


def _create(store: Any, rank: int, size: int, timeout: datetime.timedelta) -> Any:
    return _backend().create(store, rank, size, timeout)


def register() -> None:
    """Tells torch.distributed of the backend. Called by the import, and by torch through its entry points."""
    if torch.distributed.is_available() and not hasattr(torch.distributed.Backend, "GYRE"):
        torch.distributed.Backend.register_backend("gyre", _create, devices=["cpu"])


register()
