"""Arrays of PyTorch and CuPy in the memory of a real GPU: gyre-run -n 2 python3 -m tests.test_gpu.

scripts/gpu runs it. Exit status 77, with the reason, where there is no GPU or none of the libraries sees it."""
import importlib
import sys
import unittest
from typing import Any, Callable, Dict, List, Optional

import gyre
from gyre._compiled import compiled
from tests.ranks import RankTest, world

_attached: Optional[gyre.Communicator] = None
COUNT = 100_003


def attached(device: int) -> gyre.Communicator:
    global _attached
    if _attached is None:
        _attached = world().duplicate()
        _attached.cuda_attach(device)
    return _attached


def library(name: str) -> Any:
    """The library, if it sees a GPU; a sentence, if it does not."""
    try:
        module: Any = importlib.import_module(name)
        if name == "torch" and not module.cuda.is_available():
            return "torch sees no GPU"
        if name == "cupy" and module.cuda.runtime.getDeviceCount() == 0:
            return "cupy sees no GPU"
        return module
    except Exception as reason:  # cupy raises errors of its own without a driver
        return f"{name}: {reason}"


class ByInterface:
    """A tensor without its DLPack."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self.dtype = tensor.dtype

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        bits = {2: "int16", 1: "uint8"}.get(self.tensor.element_size(), "")
        named = str(self.dtype) in ("torch.bfloat16", "torch.float8_e4m3fn", "torch.float8_e5m2")
        seen = self.tensor.view(getattr(sys.modules["torch"], bits)) if named else self.tensor
        found: Dict[str, Any] = seen.__cuda_array_interface__
        return found


class Torch(RankTest):
    torch: Any

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.torch = library("torch")
        if isinstance(cls.torch, str):
            raise unittest.SkipTest(cls.torch)
        cls.torch.cuda.set_device(cls.rank % cls.torch.cuda.device_count())
        cls.comm = attached(cls.torch.cuda.current_device())

    def mine(self, dtype: Any, rank: Optional[int] = None) -> Any:
        numbers = self.torch.arange(COUNT, device="cuda") * 7 + (self.rank if rank is None else rank) * 3
        return (numbers % 5 + 1).to(dtype)

    def expected(self, dtype: Any) -> Any:
        total = self.mine(dtype, 0).double()
        for rank in range(1, self.size):
            total += self.mine(dtype, rank).double()
        return total.to(dtype)

    def same(self, got: Any, wanted: Any) -> None:
        self.assertTrue(bool((got.view(self.torch.uint8) == wanted.view(self.torch.uint8)).all()))

    def test_types_by_either_protocol(self) -> None:
        for name in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"):
            dtype = getattr(self.torch, name)
            for export in (lambda x: x, ByInterface) if compiled else (ByInterface,):
                with self.subTest(name):
                    x = self.mine(dtype)
                    if export is ByInterface:
                        self.torch.cuda.synchronize()  # version 2 names no stream
                    self.comm.all_reduce(export(x))
                    self.same(x, self.expected(dtype))

    def test_work_of_the_current_stream_comes_first(self) -> None:
        wanted = self.expected(self.torch.float32)
        side = self.torch.cuda.Stream()
        for stream in (None, side):
            with self.torch.cuda.stream(side):
                x = self.torch.zeros(COUNT, device="cuda")
                self.torch.cuda._sleep(50_000_000)
                x += self.mine(self.torch.float32)
                self.comm.all_reduce(x, stream=stream)
                y = x * 2
            side.synchronize()
            self.same(y, wanted * 2)

    def test_dropped_tensors(self) -> None:
        """The memory of a tensor is not given to another one before the stream has passed the call."""
        wanted = self.expected(self.torch.float32)
        side = self.torch.cuda.Stream()
        results: List[Any] = []
        for _ in range(20):
            x, y = self.mine(self.torch.float32), self.torch.empty(COUNT, device="cuda")
            with self.torch.cuda.stream(side):
                self.torch.cuda._sleep(5_000_000)
            self.comm.all_reduce(x, y, stream=side)
            del x
            self.torch.full((COUNT,), -1.0, device="cuda")  # would take the memory of x
            results.append(y)
        side.synchronize()
        for y in results:
            self.same(y, wanted)
        self.comm.cuda_status()

    def test_calls(self) -> None:
        n, x = self.size, self.mine(self.torch.float32)
        whole = self.torch.empty(COUNT * n, device="cuda")
        self.comm.all_gather(x, whole)
        for rank in range(n):
            self.same(whole[rank * COUNT : (rank + 1) * COUNT], self.mine(self.torch.float32, rank))
        block = self.torch.empty(COUNT, device="cuda")
        self.comm.reduce_scatter(whole, block)
        self.same(block, self.mine(self.torch.float32) * n)
        got = self.torch.empty(COUNT, device="cuda")
        self.comm.sendrecv(x, (self.rank + 1) % n, got, (self.rank - 1) % n)
        self.same(got, self.mine(self.torch.float32, (self.rank - 1) % n))
        request = self.comm.all_reduce_start(x)
        request.wait()
        self.same(x, self.expected(self.torch.float32))

    def test_capture_is_refused(self) -> None:
        x = self.mine(self.torch.float32)
        graph = self.torch.cuda.CUDAGraph()
        with self.assertRaisesRegex(gyre.Unsupported, "captured"):
            with self.torch.cuda.graph(graph):
                self.comm.all_reduce(ByInterface(x), stream=self.torch.cuda.current_stream())

    def test_what_is_refused(self) -> None:
        with self.assertRaisesRegex(gyre.InvalidArgument, "not in one piece"):
            self.comm.all_reduce(self.torch.ones(4, 4, device="cuda").T)
        with self.assertRaisesRegex(gyre.InvalidArgument, "exports no memory"):
            self.comm.all_reduce(self.torch.ones(4, device="cuda", requires_grad=True))


class Cupy(RankTest):
    cupy: Any

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.cupy = library("cupy")
        if isinstance(cls.cupy, str):
            raise unittest.SkipTest(cls.cupy)
        cls.cupy.cuda.Device(cls.rank % cls.cupy.cuda.runtime.getDeviceCount()).use()
        cls.comm = attached(cls.cupy.cuda.Device().id)

    def test_arrays(self) -> None:
        for dtype in ("float32", "int64", "complex64", "bool"):
            x = (self.cupy.arange(COUNT) % 5 < 2 + self.rank).astype(dtype)
            wanted = sum((self.cupy.arange(COUNT) % 5 < 2 + rank).astype(dtype) for rank in range(self.size))
            self.comm.all_reduce(x)
            self.assertTrue(bool((x == wanted.astype(dtype)).all()))

    def test_streams(self) -> None:
        makers: List[Callable[[], Any]] = [lambda: self.cupy.cuda.Stream(non_blocking=True), lambda: self.cupy.cuda.Stream.null]
        for make in makers:
            with make() as stream:
                x = self.cupy.full(COUNT, self.rank + 1.0)
                self.comm.all_reduce(x, stream=stream)
                x *= 2
                stream.synchronize()
                self.assertTrue(bool((x == self.size * (self.size + 1)).all()))


if __name__ == "__main__":
    reasons = [it for it in (library("torch"), library("cupy")) if isinstance(it, str)]
    if len(reasons) == 2:
        print(f"no GPU to test with: {'; '.join(reasons)}", flush=True)
        sys.exit(77)
    unittest.main()
