"""Arrays of every library that is there, of every element type; what calls give; names as users type them."""
import importlib
import unittest
from typing import Any, Dict, List, Optional, Tuple, Union

import numpy

import gyre
from gyre._compiled import compiled
from tests.ranks import FORMS, RankTest

NUMPY = ("bool", "int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128")
ML_DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")
TORCH = ("bool", "int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
JAX = ("bool", "int8", "uint8", "int32", "uint32", "float16", "bfloat16", "float32", "complex64", "float8_e4m3fn", "float8_e5m2")


def library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise unittest.SkipTest(f"{name} is not installed") from None


class Arrays(RankTest):
    def ones_are_summed(self, ones: Any, wanted: Any, values: Any) -> None:
        """`ones`: makes an array; `values`: its elements as numbers."""
        for form in FORMS:
            x = ones()
            self.call(form, "all_reduce", x)
            self.assertTrue((values(x) == wanted).all(), (form, x))

    def test_numpy(self) -> None:
        for name in NUMPY:
            with self.subTest(name):
                wanted = True if name == "bool" else self.size
                self.ones_are_summed(lambda: numpy.ones((3, 5), name), wanted, lambda x: x)

    def test_ml_dtypes(self) -> None:
        module = library("ml_dtypes")
        for name in ML_DTYPES:
            with self.subTest(name):
                kind = getattr(module, name)
                self.ones_are_summed(lambda: numpy.ones(20, kind), self.size, lambda x: x.astype("float32"))
                x = numpy.ones(3, kind)
                self.assertIs(self.comm.all_reduce(x, dtype=name), x)
                with self.assertRaisesRegex(gyre.InvalidArgument, "does not convert"):
                    self.comm.all_reduce(x, dtype="uint8" if x.itemsize == 1 else "float16")
        for name in ("float8_e4m3", "float8_e4m3fnuz", "int4"):  # others than gyre's
            with self.subTest(name), self.assertRaisesRegex(gyre.InvalidArgument, f"no type for elements of {name}"):
                self.comm.all_reduce(numpy.ones(4, getattr(module, name)))

    def exported(self) -> None:
        if not compiled:
            self.skipTest("DLPack needs the compiled module")

    def test_torch(self) -> None:
        torch = library("torch")
        self.exported()
        for name in TORCH:
            with self.subTest(name):
                kind = getattr(torch, name)
                wanted = True if name == "bool" else self.size
                self.ones_are_summed(lambda: torch.ones((3, 5), dtype=kind), wanted, lambda x: x)
        for name in ("float8_e4m3fn", "float8_e5m2"):  # since torch 2.1
            with self.subTest(name):
                kind = getattr(torch, name, None)
                if kind is None:
                    continue
                self.ones_are_summed(lambda: torch.ones(6).to(kind), self.size, lambda x: x.to(torch.float32))

    def test_what_torch_does_not_export(self) -> None:
        torch = library("torch")
        self.exported()
        with self.assertRaisesRegex(gyre.InvalidArgument, "not in one piece"):
            self.comm.all_reduce(torch.ones((4, 4)).t()[:2])
        with self.assertRaisesRegex(gyre.InvalidArgument, "exports no memory.*detach"):
            self.comm.all_reduce(torch.ones(4, requires_grad=True))
        with self.assertRaisesRegex(gyre.InvalidArgument, "no type for the elements"):
            self.comm.all_reduce(torch.ones(4, dtype=torch.int16))
        with self.assertRaisesRegex(gyre.InvalidArgument, "are float32, and dtype=int32 does not convert"):
            self.comm.all_reduce(torch.ones(4), dtype="int32")
        bits = torch.ones(4, dtype=torch.bfloat16).view(torch.int16)
        self.comm.all_reduce(bits, dtype="bfloat16")
        self.assertTrue((bits.view(torch.bfloat16) == self.size).all())

    def test_a_tensor_is_held_until_the_request_completes(self) -> None:
        torch = library("torch")
        self.exported()
        requests = [self.comm.all_reduce_start(torch.ones(50_000), op="max") for _ in range(4)]
        gyre.wait_all(requests)

    def test_jax(self) -> None:
        """Its arrays are immutable: they are read, and never written to."""
        jax = library("jax")
        self.exported()
        for name in JAX:
            with self.subTest(name):
                x = jax.numpy.ones(6, getattr(jax.numpy, name))
                y = numpy.zeros(6, x.dtype)
                self.comm.all_reduce(x, y)
                self.assertTrue((y.astype("complex64") == (1 if name == "bool" else self.size)).all(), y)
                with self.assertRaisesRegex(gyre.InvalidArgument, "read-only"):
                    self.comm.all_reduce(x)

    def test_cupy(self) -> None:
        cupy = library("cupy")
        try:
            x = cupy.ones(4)
        except Exception as reason:
            self.skipTest(f"cupy has no GPU: {reason}")
        with self.assertRaisesRegex(gyre.Unsupported, "memory of a GPU"):
            self.comm.all_reduce(x)

    def test_another_device_of_dlpack(self) -> None:
        class OnDevice:
            def __dlpack__(self, **options: Any) -> Any:
                raise AssertionError("asked for memory that cannot be reached")

            def __dlpack_device__(self) -> Tuple[int, int]:
                return (kind, 0)

        for kind, sentence in ((2, "memory of a GPU, and the communicator is not attached"), (10, "a device .DLPack's kind 10")):
            with self.assertRaisesRegex(gyre.Unsupported, sentence):
                self.comm.all_reduce(OnDevice())

    def test_what_exports_by_dlpack_alone(self) -> None:
        self.exported()

        class Exporter:
            def __init__(self, array: Any) -> None:
                self.array = array

            def __dlpack__(self, **options: Any) -> Any:
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self) -> Any:
                return self.array.__dlpack_device__()

        x = numpy.ones((2, 3), "int64")
        exporter = Exporter(x)
        self.assertIs(self.comm.all_reduce(exporter), exporter)
        self.assertTrue((x == self.size).all())
        with self.assertRaisesRegex(gyre.InvalidArgument, "no type for the elements of the Exporter"):
            self.comm.all_reduce(Exporter(numpy.ones(4, "int16")))
        with self.assertRaisesRegex(gyre.InvalidArgument, "not in one piece"):
            self.comm.all_reduce(Exporter(numpy.ones((2, 3)).T))
        frozen = numpy.ones(4)
        frozen.flags.writeable = False
        with self.assertRaisesRegex(gyre.InvalidArgument, "read-only|readonly"):
            self.comm.all_reduce(Exporter(frozen))

    # ---- what calls give, and how they are named ----

    def test_results(self) -> None:
        n, rank, root = self.size, self.rank, self.rank == 0
        x, y, whole = numpy.ones(2), numpy.ones(2), numpy.ones(2 * n)
        given: Dict[str, Tuple[Any, Optional[Any]]] = {
            "all_reduce": (self.comm.all_reduce(x), x),
            "all_reduce into": (self.comm.all_reduce(x, y), y),
            "reduce": (self.comm.reduce(x), x if root else None),
            "reduce_scatter": (self.comm.reduce_scatter(whole), whole),
            "reduce_scatter into": (self.comm.reduce_scatter(whole, y), y),
            "broadcast": (self.comm.broadcast(x), x),
            "all_gather": (self.comm.all_gather(x, whole), whole),
            "gather": (self.comm.gather(x, whole if root else None), whole if root else None),
            "scatter": (self.comm.scatter(whole if root else None, y), y),
            "all_to_all": (self.comm.all_to_all(whole), whole),
            "barrier": (self.comm.barrier(), None),
            "all_gatherv": (self.comm.all_gatherv(x, whole, [2] * n), whole),
            "sendrecv": (self.comm.sendrecv(x, (rank + 1) % n, y, (rank - 1) % n), y),
        }
        for name, (result, wanted) in given.items():
            with self.subTest(name):
                self.assertIs(result, wanted)

    def test_names(self) -> None:
        x = numpy.full(4, 2.0)
        for op, wanted in (("avg", 2.0), ("mean", 2.0), ("AVG", 2.0), ("prod", 2.0**self.size), ("Product", 2.0**self.size)):
            with self.subTest(op):
                self.assertTrue((self.comm.all_reduce(x.copy(), op=op) == wanted).all())
        types: List[Union[str, gyre.DType]] = ["float64", "double", "FP64", gyre.DType.FLOAT64]
        for dtype in types:
            with self.subTest(dtype):
                self.assertTrue((self.comm.all_reduce(x.copy(), dtype=dtype) == 2 * self.size).all())

    def test_arguments_by_name(self) -> None:
        x, y = numpy.ones(4), numpy.zeros(4)
        self.assertIs(self.comm.all_reduce(input=x, output=y, op="max"), y)
        self.assertIs(self.comm.all_reduce(x, op=gyre.Op.MAX, output=y, dtype=None), y)
        comm: Any = self.comm  # mypy would say the same
        calls: List[Any] = [
            lambda: comm.all_reduce(),
            lambda: comm.all_reduce(x, y, "sum", "more"),
            lambda: comm.all_reduce(x, input=x),
            lambda: comm.all_reduce(x, outputs=y),
            lambda: comm.barrier(1),
            lambda: comm.send(x),
        ]
        for number, call in enumerate(calls):
            with self.subTest(number), self.assertRaises(TypeError):
                call()


if __name__ == "__main__":
    unittest.main()
