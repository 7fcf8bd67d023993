"""Memory of gyre_mem_alloc: mapped by every rank of the host, and freed when no view of it is left.

Every view (memoryviews, NumPy arrays) holds one ctypes array, which holds the communicator. When the
array goes, the address is noted, and the next call on the world frees it: finalisers never call libgyre."""
import ctypes
import weakref
from typing import TYPE_CHECKING, Any, Optional

from ._errors import InvalidArgument
from ._library import lib
from ._types import Status

if TYPE_CHECKING:
    from ._communicator import Communicator


class Memory:
    """A block of memory; page-aligned, zeroed. Any call takes it as a buffer of bytes; `view` is a memoryview of it,
    and numpy.asarray(memory) or memory.array("float32") are arrays that keep it alive."""

    def __init__(self, comm: "Communicator", address: int, nbytes: int) -> None:
        base: Any = (ctypes.c_uint8 * nbytes).from_address(address)
        base.owner = comm
        unused = comm._world.unused
        blocks = comm._world.blocks

        def gone(_: object) -> None:
            if blocks.pop(address, None) is not None:
                unused.append(address)

        blocks[address] = weakref.ref(base, gone)
        self._base: Any = base
        self.nbytes = nbytes
        self.address = address

    @property
    def view(self) -> memoryview:
        """Its bytes."""
        if self._base is None:
            raise InvalidArgument("the memory has been freed")
        return memoryview(self._base).cast("B")

    def cast(self, format: str) -> memoryview:
        """Its elements, by a letter of the struct module."""
        view: Any = self.view
        elements: memoryview = view.cast(format)
        return elements

    def array(self, dtype: Any = "uint8", count: Optional[int] = None) -> Any:
        """A NumPy array on it, of `count` elements or as many as there are."""
        import numpy

        return numpy.frombuffer(self.view, dtype=dtype, count=-1 if count is None else count)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Any:
        """For NumPy where it does not find __buffer__. NumPy 2 says whether to copy, and takes what it gets; NumPy 1
        copies by itself."""
        plain = self.array()
        if dtype is None or plain.dtype == dtype:
            return plain.copy() if copy else plain
        if copy is False:
            raise InvalidArgument(f"memory of uint8 is no {dtype} without a copy: memory.array(dtype) looks at it as such")
        return plain.astype(dtype)

    def __buffer__(self, flags: int) -> memoryview:  # from Python 3.12 on; elsewhere Buffer knows this class
        return self.view

    def free(self) -> None:
        """This object lets go of the memory; it is freed once no view and no array is left. `del` does the same."""
        self._base = None

    def __len__(self) -> int:
        return self.nbytes

    def __repr__(self) -> str:
        state = "freed" if self._base is None else f"at {self.address:#x}"
        return f"<gyre memory of {self.nbytes} bytes {state}>"


class Registration:
    """Memory registered with gyre; held until close(), or until the communicator is closed. A context manager."""

    def __init__(self, comm: "Communicator", memory: Any) -> None:
        """Not to be called: see Communicator.mem_register."""
        from ._buffer import Buffer  # which knows Memory

        self._comm = comm
        self._buffer = Buffer("mem_register: memory", memory, writable=True, raw=True)
        try:
            comm._enter()
            try:
                comm._check(lib.gyre_mem_register(comm._handle, self._buffer.address, self._buffer.nbytes))
            finally:
                comm._leave()
        except BaseException:
            self._buffer.release()
            raise
        comm._registered.add(self)

    def _let_go(self) -> None:
        """libgyre does not know it any more."""
        self._comm._registered.discard(self)
        self._buffer.release()

    def _end_with(self, handle: Optional[int]) -> None:
        """The communicator is about to go. Its world may go on, and knows the memory until it is told: where it
        cannot be, the memory is held as long as the world."""
        if lib.gyre_mem_deregister(handle, self._buffer.address) == Status.SUCCESS:
            self._let_go()
        else:
            self._comm._registered.discard(self)
            self._comm._world.kept.append(self._buffer)

    def close(self) -> None:
        """Gives the memory back. May be called again."""
        if self not in self._comm._registered:
            return
        self._comm._enter()
        try:
            code = lib.gyre_mem_deregister(self._comm._handle, self._buffer.address)
            if code == Status.SUCCESS:
                self._let_go()
            self._comm._check(code)
        finally:
            self._comm._leave()

    def __enter__(self) -> "Registration":
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
