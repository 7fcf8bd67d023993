"""What a buffer may be, what it may not, and which object keeps it alive."""
import array
import ctypes
import gc
import time
import unittest
import weakref
from typing import Any, Callable, List

import numpy

import gyre
from tests.ranks import RankTest


class Buffers(RankTest):
    def refused(self, sentence: str, x: Any, y: Any = None, **options: Any) -> None:
        """Every rank is refused alike, and the communicator is as before."""
        with self.assertRaisesRegex(gyre.InvalidArgument, sentence) as caught:
            self.comm.all_reduce(x, y, **options)
        self.assertIsInstance(caught.exception, ValueError)
        self.assertEqual(caught.exception.status, gyre.Status.INVALID_ARGUMENT)

    def test_kinds(self) -> None:
        n = self.size
        numbers = array.array("i", [1, 2, 3])
        self.comm.all_reduce(numbers)
        self.assertEqual(list(numbers), [n, 2 * n, 3 * n])
        raw = bytearray(b"\1\2\3")
        self.comm.all_reduce(raw)
        self.assertEqual(raw, bytes([n, 2 * n, 3 * n]))
        longs = array.array("l", [1])
        self.comm.all_reduce(memoryview(longs))
        self.assertEqual(longs[0], n)
        doubles = (ctypes.c_double * 2)(1.5, 2.5)
        self.comm.all_reduce(doubles)
        self.assertEqual(list(doubles), [1.5 * n, 2.5 * n])
        matrix = numpy.ones((3, 4), "int64")
        self.comm.all_reduce(matrix)
        self.assertTrue((matrix == n).all())
        zero_dimensional = numpy.array(2.0)
        self.comm.all_reduce(zero_dimensional)
        self.assertEqual(zero_dimensional, 2 * n)
        output = bytearray(3)
        self.comm.all_reduce(b"\1\2\3", output)  # what is only read may be read-only
        self.assertEqual(output, bytes([n, 2 * n, 3 * n]))

    def test_types_without_a_letter(self) -> None:
        one = numpy.full(4, 0x3F80, "uint16")  # bfloat16
        self.comm.all_reduce(one, op="max", dtype="bfloat16")
        self.assertTrue((one == 0x3F80).all())
        self.comm.all_reduce(one, dtype=gyre.DType.BFLOAT16)
        floats = (one.astype("uint32") << 16).view("float32")
        self.assertTrue((floats == self.size).all())
        for name, bits in (("float8_e4m3", 0x38), ("float8_e5m2", 0x3C)):
            x = bytearray([bits]) * 5
            self.comm.all_reduce(x, op="product", dtype=name)
            self.assertEqual(x, bytearray([bits]) * 5)
        raw = bytearray(numpy.ones(3, "float32").tobytes())
        self.comm.all_reduce(raw, dtype="float32")
        self.assertEqual(raw, numpy.full(3, self.size, "float32").tobytes())

    def test_what_is_refused(self) -> None:
        x = numpy.ones(6, "float32")
        self.refused("read-only", bytes(4))
        fixed = x.copy()
        fixed.flags.writeable = False
        self.refused("output: the ndarray is read-only", x, fixed)
        self.refused("not in one piece.*ascontiguousarray", x[::2])
        self.refused("not in one piece", numpy.ones((2, 3)).T)
        self.refused("no memory that gyre can use", [1.0, 2.0])
        self.refused("no memory that gyre can use", "text")
        self.refused("no type for elements of format '.*h'", numpy.ones(4, "int16"))
        self.refused(r"format '>f'\): convert with .astype\('=f4'\)", numpy.ones(4, ">f4"))
        self.refused("no type", numpy.ones(4, "clongdouble"))
        self.refused("dtype=float64 does not fit", x, dtype="float64")
        self.refused("dtype=float32 does not fit", bytearray(7), dtype="float32")
        self.refused("'float23' is not an element type", x, dtype="float23")
        self.refused("'some' is not an operation", x, op="some")
        self.refused("output has 3 elements and needs 6", x, numpy.ones(3, "float32"))
        self.refused("input holds float32, output float64", x, numpy.ones(6))
        self.refused("bit_and is for integers", x, op="bit_and")
        self.refused("overlap", x[:4], x[2:])

    def test_a_type_that_is_not_the_elements_own(self) -> None:
        """dtype= converts nothing: it names what raw bits are, and says again what the elements are."""
        x = numpy.ones(4, "float32")
        self.comm.all_reduce(x, dtype="float32")
        self.assertTrue((x == self.size).all())
        self.refused("are float32, and dtype=int32 does not convert", x, dtype="int32")
        self.refused("output: .* are int32, and dtype=float32 does", numpy.ones(4, "uint32"), numpy.ones(4, "int32"), dtype="float32")
        self.refused("are float16, and dtype=bfloat16 does", numpy.ones(4, "float16"), dtype="bfloat16")
        self.refused("are int64, and dtype=uint64 does", array.array("q", [1]), dtype="uint64")
        self.refused("are int8, and dtype=float8_e4m3 does", numpy.ones(4, "int8"), dtype="float8_e4m3")
        self.refused("are of format 'Zf', and dtype=float64 does", numpy.ones(4, "complex64"), dtype="float64")
        self.refused("dtype=float32 does not fit 4 bytes", numpy.ones(4, "bool"), dtype="float32")
        self.refused(r"format '>f'\): convert with .astype\('=f4'\)", numpy.ones(4, ">f4"), dtype="float32")
        self.refused(r"format '>H'\): convert with .astype\('=u2'\)", numpy.ones(4, ">u2"), dtype="bfloat16")
        self.refused(r"format '>q'\): convert with .astype\('=i8'\)", numpy.ones(4, ">i8"), dtype="int64")
        self.assertTrue((x == self.size).all())
        bits = numpy.ones(4, "float32").view("uint32")
        self.comm.all_reduce(bits, dtype="float32")
        self.assertTrue((bits.view("float32") == self.size).all())
        for kind in ("int16", "V2", "S2"):  # PyTorch's bits of a bfloat16 are of int16
            one = numpy.full(4, 0x3F80, "uint16").view(kind)
            self.comm.all_reduce(one, op="max", dtype="bfloat16")
            self.assertTrue((one.view("uint16") == 0x3F80).all())
        flags = numpy.array([self.rank == 0, False])
        self.comm.all_reduce(flags, op="max", dtype="uint8")
        self.assertEqual(flags.tolist(), [True, False])

    def test_sizes_of_blocks(self) -> None:
        n = self.size
        x = numpy.ones(5, "float32")
        calls: List[Callable[[], object]] = [
            lambda: self.comm.all_gather(x, numpy.ones(5 * n + n, "float32")),
            lambda: self.comm.all_gatherv(x, numpy.ones(5 * n - 1, "float32"), [5] * n),
            lambda: self.comm.all_gatherv(x, numpy.ones(5 * n, "float32"), [5] * n, [4] * n if n > 9 else [1 << 40] * n),
            lambda: self.comm.all_gatherv(x, numpy.ones(5 * n, "float32"), [5] * (n + 1)),
            lambda: self.comm.all_gatherv(x, numpy.ones(5 * n, "float32"), [-1] * n),
            lambda: self.comm.reduce_scatterv(x, None, [6] * n),
            lambda: self.comm.broadcast(x, root=n),
            lambda: self.comm.broadcast(x, root=-1),
            lambda: self.comm.send(x, n),
            lambda: self.comm.gather(x, None, root=self.rank),
            lambda: self.comm.scatter(None, x, root=self.rank),
        ]
        if n > 1:
            calls += [lambda: self.comm.reduce_scatter(numpy.ones(5 * n + 1)), lambda: self.comm.all_to_all(numpy.ones(n + 1))]
        for number, call in enumerate(calls):
            with self.subTest(number), self.assertRaises(gyre.InvalidArgument):
                call()

    def test_memory_of_a_gpu(self) -> None:
        """Without an attachment; test_ranks_gpu has the rest."""

        class OnDevice:
            __cuda_array_interface__ = {"shape": (4,), "typestr": "<f4", "data": (0x7F0000000000, False), "version": 3}

        sentence = "memory of a GPU .address 0x7f0000000000., and the communicator is not attached to one.*copy it to the host"
        for call in (self.comm.all_reduce, self.comm.all_reduce_start, self.comm.all_reduce_init, self.comm.broadcast):
            with self.assertRaisesRegex(gyre.Unsupported, sentence):
                call(OnDevice())

    def test_a_buffer_is_held_until_the_request_completes(self) -> None:
        x = bytearray(1000)
        request = self.comm.all_reduce_start(x)
        with self.assertRaises(BufferError):
            x.extend(b"resized")
        request.wait()
        x.extend(b"resized")

    def test_buffers_dropped_early(self) -> None:
        """Only the requests hold the arrays; then the requests are dropped, too."""
        arrays = [numpy.full(50_000, self.rank + number, "float64") for number in range(4)]
        seen = [weakref.ref(x) for x in arrays]
        requests = [self.comm.all_reduce_start(x, x) for x in arrays]
        del arrays
        gc.collect()
        self.assertTrue(all(ref() is not None for ref in seen))
        checks = [ref() for ref in seen]
        gyre.wait_all(requests)
        for number, x in enumerate(checks):
            assert x is not None
            self.assertTrue((x == sum(rank + number for rank in range(self.size))).all())
        del checks, x
        self.assertTrue(all(ref() is None for ref in seen))

        for _ in range(20):
            self.comm.all_reduce_start(numpy.ones(30_000))
            gc.collect()
        deadline = time.monotonic() + 60
        while self.comm._flights and time.monotonic() < deadline:
            self.comm.progress()
        self.assertEqual(len(self.comm._flights), 0)
        self.assertEqual(len(self.comm._orphans), 0)

    def test_a_dropped_persistent_request_is_freed(self) -> None:
        x = bytearray(8)
        self.comm.all_reduce_init(x)
        self.comm.barrier()
        x.extend(b"free again")

    def test_memory(self) -> None:
        memory = self.comm.mem_alloc(4096)
        self.assertEqual(memory.address % 4096, 0)
        x = memory.array("float32", 100)
        self.assertFalse(x.any())
        x[:] = self.rank
        self.comm.all_reduce(x)
        self.assertTrue((x == sum(range(self.size))).all())
        self.assertEqual(numpy.asarray(memory).nbytes, 4096)
        self.assertEqual(memory.cast("f")[0], sum(range(self.size)))
        memory.view[:4] = b"\1\1\1\1"
        self.comm.all_reduce(memory, op="max")
        self.assertEqual(memory.view[0], 1)
        self.comm.all_reduce(memory, op="max", dtype="float32")
        blocks = self.comm._world.blocks
        self.assertEqual(len(blocks), 1)
        memory.free()
        with self.assertRaisesRegex(gyre.InvalidArgument, "freed"):
            memory.view
        self.comm.barrier()
        self.assertEqual(len(blocks), 1)  # the array still looks at it
        self.assertEqual(float(x[5]), float(sum(range(self.size))))
        del x
        self.assertEqual(len(blocks), 0)
        self.assertEqual(len(self.comm._world.unused), 1)
        self.comm.barrier()
        self.assertEqual(len(self.comm._world.unused), 0)
        with self.assertRaises(gyre.InvalidArgument):
            self.comm.mem_alloc(-1)

    def test_arrays_of_memory(self) -> None:
        """NumPy 2 leaves it to __array__ to copy, where Python has no __buffer__; NumPy 1 does not say `copy`."""
        memory = self.comm.mem_alloc(64)
        for copy in (numpy.array(memory), memory.__array__(copy=True), memory.__array__("uint8", copy=True)):
            copy[:] = 7
            self.assertEqual(bytes(memory.view), bytes(64))
        for number, view in enumerate((numpy.asarray(memory), memory.__array__(), memory.__array__("uint8", copy=False)), 1):
            view[:] = number
            self.assertEqual(bytes(memory.view), bytes([number]) * 64)
        for other in (numpy.asarray(memory, "float32"), numpy.array(memory, "float32"), memory.__array__("float32", copy=True)):
            self.assertEqual(other.dtype, "float32")
            self.assertTrue((other == number).all())
        with self.assertRaisesRegex(ValueError, "uint8 is no float32 without a copy"):
            memory.__array__("float32", copy=False)

    def test_much_memory_one_after_the_other(self) -> None:
        """Never more than a block or two are there: the last one goes back before the next one comes."""
        world = self.comm._world
        for _ in range(64):
            self.comm.mem_alloc(4 << 20).array("uint8")[0] = 1
            self.assertLessEqual(len(world.blocks) + len(world.unused), 2)


if __name__ == "__main__":
    unittest.main()
