"""Memory of a GPU in every call, by both protocols, with and without streams, against the same call on host memory.

The driver is the stand-in (tests/cuda): an access of the host to device memory faults, streams run late."""
import gc
import sys
import types
import unittest
import weakref
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy

import gyre
from gyre import _driver
from gyre._compiled import compiled
from tests.gpu import Array, Exporter, Memory, Stream, enter, leave
from tests.ranks import FORMS, RankTest, world

Make = Callable[[Any], Any]
MAKERS: Dict[str, Make] = {"interface": Array}
if compiled:  # DLPack needs the module
    MAKERS["dlpack"] = Exporter
    MAKERS["old dlpack"] = lambda like: Exporter(like, version=None)

BOTH: Tuple[Callable[..., Any], ...] = (Array, Exporter) if compiled else (Array,)

_attached: Optional[gyre.Communicator] = None


def attached() -> gyre.Communicator:
    """Attached before this thread has a context, so by its number on the host."""
    global _attached
    if _attached is None:
        _attached = world().duplicate()
        _attached.cuda_attach()
        assert _attached.cuda_device is not None
        enter(_attached.cuda_device)
    return _attached


def data(rank: int, count: int, dtype: str = "float32") -> Any:
    return ((numpy.arange(count) * 7 + rank * 3 + 1) % 5 + 1).astype(dtype)


class GpuTest(RankTest):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.comm = attached()

    def same(self, got: Memory, wanted: Any) -> None:
        self.assertEqual(got.get().tobytes(), wanted.tobytes())

    def cases(self) -> List[Tuple[str, Callable[[Make], Tuple[Tuple[Any, ...], Any]]]]:
        """Each call: its name, and a function that makes its arguments and says which of them holds the result."""
        n, rank, root, count = self.size, self.rank, self.size - 1, 24
        counts = [3 + r for r in range(n)]
        sent = [1 + (rank + r) % 3 for r in range(n)]
        own, whole, places = data(rank, count), data(rank, count * n), [5 * r for r in range(n)]

        def empty(length: int) -> Any:
            return numpy.zeros(length, "float32")

        def both(make: Make, source: Any, length: int, *more: Any) -> Tuple[Tuple[Any, ...], Any]:
            target = make(empty(length))
            return (make(source), target, *more), target

        def alone(make: Make, source: Any, *more: Any) -> Tuple[Tuple[Any, ...], Any]:
            target = make(source)
            return (target, *more), target

        def rooted(make: Make, wide: bool) -> Tuple[Tuple[Any, ...], Any]:
            """gather: the root has all blocks; scatter: the others have no input."""
            target = make(empty(count * n if wide else count)) if rank == root or not wide else None
            source = make(own if wide else whole) if wide or rank == root else None
            return (source, target, root), target

        v = sum(counts)
        return [
            ("all_reduce", lambda make: both(make, own, count, "max")),
            ("all_reduce", lambda make: alone(make, own)),
            ("reduce", lambda make: both(make, own, count, "sum", root)),
            ("reduce_scatter", lambda make: both(make, whole, count)),
            ("reduce_scatter", lambda make: alone(make, whole)),
            ("broadcast", lambda make: both(make, own, count, root)),
            ("broadcast", lambda make: alone(make, own, None, root)),
            ("all_gather", lambda make: both(make, own, count * n)),
            ("gather", lambda make: rooted(make, True)),
            ("scatter", lambda make: rooted(make, False)),
            ("all_to_all", lambda make: both(make, whole, count * n)),
            ("all_to_all", lambda make: alone(make, whole)),
            ("all_gatherv", lambda make: both(make, data(rank, counts[rank]), 5 * n + n, counts, places)),
            ("gatherv", lambda make: both(make, data(rank, counts[rank]), v, counts, None, root)),
            ("scatterv", lambda make: both(make, data(rank, v), counts[rank], counts, None, root)),
            ("reduce_scatterv", lambda make: both(make, data(rank, v), counts[rank], counts)),
            ("all_to_allv", lambda make: both(make, data(rank, sum(sent)), sum(sent), sent, sent)),
            ("sendrecv", lambda make: self.ring(make, own)),
        ]  # fmt: skip

    def ring(self, make: Make, own: Any) -> Tuple[Tuple[Any, ...], Any]:
        target = make(numpy.zeros_like(own))
        return (make(own), (self.rank + 1) % self.size, target, (self.rank - 1) % self.size), target

    def wanted(self, name: str, build: Callable[[Make], Tuple[Tuple[Any, ...], Any]]) -> Any:
        """The result of the same call on host memory, which the communicator takes as before."""
        arguments, target = build(lambda like: like.copy())
        getattr(self.comm, name)(*arguments)
        return target


class WithoutStreams(GpuTest):
    def test_the_device(self) -> None:
        devices = gyre.cuda_available()
        self.assertEqual(self.comm.cuda_device, self.rank % devices)
        self.assertEqual(self.comm.get("device"), str(self.comm.cuda_device))
        self.assertIsNone(world().cuda_device)
        self.assertEqual(world().get("device"), "")
        self.comm.cuda_status()
        with self.assertRaisesRegex(gyre.InvalidArgument, "attached already"):
            self.comm.cuda_attach()

    def test_every_call_in_every_form(self) -> None:
        for name, build in self.cases():
            wanted = self.wanted(name, build)
            for kind, make in MAKERS.items():
                for form in FORMS if name != "sendrecv" else ("",):
                    with self.subTest(name, kind=kind, form=form):
                        arguments, target = build(make)
                        self.call(form, name, *arguments)
                        if target is not None:
                            self.same(target, wanted)

    def test_host_and_device_together(self) -> None:
        x = data(self.rank, 100)
        wanted = self.comm.all_reduce(x.copy())
        y, target = numpy.zeros_like(x), Array(numpy.zeros_like(x))
        self.comm.all_reduce(Array(x), y)
        self.assertEqual(y.tobytes(), wanted.tobytes())
        self.assertIs(self.comm.all_reduce(x, target), target)
        self.same(target, wanted)

    def test_types(self) -> None:
        for make in MAKERS.values():
            for dtype in ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128"):
                with self.subTest(dtype):
                    x = data(self.rank, 33, dtype)
                    y = make(x)
                    self.comm.all_reduce(y)
                    self.same(y, self.comm.all_reduce(x))
            flags = (numpy.arange(50) + self.rank) % 3 == 0
            y = make(flags)
            self.comm.all_reduce(y, op="max")
            self.same(y, self.comm.all_reduce(flags, op="max"))

    def test_types_that_numpy_has_not(self) -> None:
        """bfloat16 and 8-bit floats: by the name of the array's type, by DLPack's code, or named by the caller."""
        for name, kind, code, bits in (("bfloat16", "uint16", 4, 0x3F80), ("float8_e4m3fn", "uint8", 10, 0x38), ("float8_e5m2", "uint8", 12, 0x3C)):
            x = numpy.full(20, bits, kind)
            wanted = self.comm.all_reduce(x.copy(), dtype=name)
            for typestr in ("<V2", "<u2", "<f2", "<i2") if kind == "uint16" else ("|V1", "|u1"):
                y = Array(x, dtype=f"torch.{name}", typestr=typestr)
                self.same(self.comm.all_reduce(y), wanted)
            z = Array(x)
            self.same(self.comm.all_reduce(z, dtype=name), wanted)
            if compiled:
                t = Exporter(x, code=code)
                self.same(self.comm.all_reduce(t), wanted)

    def test_tensors_as_pytorch_exports_them(self) -> None:
        """By DLPack, or, without the module, as bits; some types are always seen as bits. Its real ones: test_gpu."""
        before: Any = sys.modules.get("torch")
        modules: Dict[str, Any] = sys.modules
        modules["torch"] = types.SimpleNamespace(uint8="|u1", int16="<i2")
        try:
            for name, kind, code, bits in (("bfloat16", "uint16", 4, 0x3F80), ("float8_e5m2", "uint8", 12, 0x3C), ("bool", "uint8", 6, 1)):
                x = numpy.full(20, bits, kind)
                y = Tensor(x, code=code)
                y.dtype = f"torch.{name}"
                self.assertIs(self.comm.all_reduce(y, op="max"), y)
                self.same(y, self.comm.all_reduce(x, op="max", dtype=name))
        finally:
            if before is None:
                del modules["torch"]
            else:
                modules["torch"] = before

    def test_an_array_that_is_still_being_written(self) -> None:
        """Version 3 names the stream; DLPack's exporter orders the one that it is given."""
        x = data(self.rank, 10_000)
        wanted = self.comm.all_reduce(x.copy())
        for make in BOTH:
            stream = Stream()
            y: Any = make(x, stream)
            self.comm.all_reduce(y)
            self.same(y, wanted)
        if compiled:
            self.assertEqual(y.streams, [_driver.LEGACY])

    def test_strides(self) -> None:
        x = data(self.rank, 12).reshape(3, 4)
        wanted = self.comm.all_reduce(x.copy())
        for strides in (None, (16, 4)):
            y = Array(x, strides=strides)
            self.comm.all_reduce(y)
            self.same(y, wanted)
        one = Array(x.reshape(1, 12), strides=(999, 4), version=2)
        self.comm.all_reduce(one)
        self.same(one, wanted)
        self.comm.all_reduce(Array(numpy.zeros((0, 3), "float32"), data=(0, False), strides=(7, 7)))

    def refused(self, kind: type, sentence: str, x: Any, y: Any = None, **options: Any) -> None:
        """Every rank is refused alike, and the communicator is as before."""
        with self.assertRaisesRegex(kind, sentence):
            self.comm.all_reduce(x, y, **options)

    def test_what_is_refused(self) -> None:
        x = data(self.rank, 6)
        wrong, unsupported = gyre.InvalidArgument, gyre.Unsupported
        self.refused(wrong, "Array is not in one piece", Array(x, strides=(8,)))
        self.refused(wrong, "Array is not in one piece", Array(x.reshape(2, 3), strides=(4, 8)))
        other = Array(x)
        self.refused(wrong, "read-only", Array(x, data=(other.address, True)))
        self.refused(wrong, "has a mask", Array(x, mask=Array(x)))
        self.refused(unsupported, "version 1 of __cuda_array_interface__", Array(x, version=1))
        self.refused(unsupported, "version 4 of __cuda_array_interface__", Array(x, version=4))
        self.refused(wrong, "no type for the elements of the Array", Array(x.view("int16")))
        self.refused(wrong, "no type for the elements of the Array .'<M8'", Array(x, typestr="<M8"))
        self.refused(wrong, "another byte order .'>f4'", Array(x, typestr=">f4"))
        self.refused(wrong, "are float32, and dtype=int32 does not convert", Array(x), dtype="int32")
        self.refused(wrong, "stream 0 in __cuda_array_interface__", Array(x, stream=0))
        self.refused(wrong, "output has 3 elements and needs 6", Array(x), Array(x[:3]))
        self.refused(wrong, "at address 0x5000, which the CUDA driver of this process does not know", Array(x, data=(0x5000, False)))
        self.refused(wrong, "incomplete: KeyError", Incomplete())
        with self.assertRaisesRegex(unsupported, "takes memory of the host alone"):
            self.comm.mem_register(Array(x))
        with self.assertRaisesRegex(unsupported, "window_create: memory: the Array is in the memory of a GPU"):
            self.comm.window_create(Array(x))
        with self.assertRaisesRegex(unsupported, "not attached to one: call cuda_attach"):
            world().all_reduce(Array(x))
        with self.assertRaisesRegex(wrong, "not attached to a GPU, so no stream"):
            world().all_reduce(x, stream=0)

    def test_input_may_be_read_only(self) -> None:
        x = data(self.rank, 6)
        frozen = Array(x)
        frozen.changes["data"] = (frozen.address, True)
        y = Array(numpy.zeros_like(x))
        self.comm.all_reduce(frozen, y)
        self.same(y, self.comm.all_reduce(x))

    @unittest.skipUnless(compiled, "DLPack needs the compiled module, which this run goes without")
    def test_what_is_refused_by_dlpack(self) -> None:
        x = data(self.rank, 6)
        exporters = [
            (gyre.InvalidArgument, "Exporter is not in one piece", Exporter(x, strides=(2,))),
            (gyre.InvalidArgument, "read-only", Exporter(x, flags=1)),
            (gyre.InvalidArgument, "read-only", Exporter(x, flags=2)),  # a copy: what is written to it is lost
            (gyre.InvalidArgument, "version 2 of DLPack", Exporter(x, version=(2, 0))),
            (gyre.InvalidArgument, "no type for the elements of the Exporter", Exporter(x, code=9)),
            (gyre.Unsupported, "DLPack's kind 10", Exporter(x, kind=10)),
        ]
        for kind, sentence, exporter in exporters:
            self.refused(kind, sentence, exporter)
            self.assertEqual(exporter.deleted, len(exporter.exported), "each capsule's deleter is called once")
        self.assertEqual(len(exporters[-1][2].exported), 0, "asked for memory that cannot be reached")

    def test_a_refusal_is_final(self) -> None:
        """The other protocol would export memory that is not the array's elements."""
        x = data(self.rank, 6, "complex64")
        self.refused(gyre.InvalidArgument, "conjugate bit" if compiled else "PyTorch negates", Conjugated(x))

    @unittest.skipUnless(compiled, "DLPack needs the compiled module, which this run goes without")
    def test_deleters(self) -> None:
        """Called once: when the call has returned, or when the request is complete."""
        x = data(self.rank, 6)
        y = Exporter(x)
        self.comm.all_reduce(y)
        self.assertEqual((len(y.exported), y.deleted), (1, 1))
        request = self.comm.all_reduce_start(y)
        self.assertEqual((len(y.exported), y.deleted), (2, 1))
        request.wait()
        self.assertEqual((len(y.exported), y.deleted), (2, 2))
        managed = Exporter(x, kind=13)
        self.comm.all_reduce(managed)
        self.same(managed, self.comm.all_reduce(x))
        self.assertEqual(managed.deleted, 1)

    def test_requests_hold_arrays(self) -> None:
        x = data(self.rank, 1000)
        seen = []
        requests = []
        for _ in range(4):
            y = Array(x)
            seen.append(weakref.ref(y))
            requests.append(self.comm.all_reduce_start(y))
        del y
        gc.collect()
        self.assertTrue(all(ref() is not None for ref in seen))
        gyre.wait_all(requests)


class Tensor(Exporter):
    """As PyTorch's: its interface knows no bfloat16, and view(type) looks at the same memory."""

    __module__ = "torch"
    dtype = ""

    @property
    def __cuda_array_interface__(self) -> Dict[str, Any]:
        raise KeyError(self.dtype)

    def view(self, typestr: str) -> Array:
        other = Array(self.like, typestr=typestr)
        other.changes["data"] = (self.address, False)
        return other


class Conjugated(Array):
    """As PyTorch's x.conj(), whose memory is that of x."""

    def is_conj(self) -> bool:
        return True

    def __dlpack_device__(self) -> Tuple[int, int]:
        return (2, 0)

    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("Can't export tensors with the conjugate bit set")


class Incomplete:
    __cuda_array_interface__ = {"shape": (4,), "data": (0, False), "version": 3}


class TorchStream:
    def __init__(self, stream: Stream) -> None:
        self.cuda_stream = stream.handle


class CupyStream:
    def __init__(self, stream: Stream) -> None:
        self.ptr = stream.handle


class CoreStream:
    version = 0

    def __init__(self, stream: Stream) -> None:
        self.handle = stream.handle

    def __cuda_stream__(self) -> Tuple[int, int]:
        return (self.version, self.handle)


class OldCoreStream:
    def __init__(self, stream: Stream) -> None:
        self.__cuda_stream__ = (0, stream.handle)


class OnStreams(GpuTest):
    def test_every_call(self) -> None:
        stream = Stream()
        for name, build in self.cases():
            wanted = self.wanted(name, build)
            for kind, make in MAKERS.items():
                with self.subTest(name, kind=kind):
                    arguments, target = build(make)
                    result = getattr(self.comm, name)(*arguments, stream=stream.handle)
                    if target is not None:
                        self.assertIs(result, target if name not in ("reduce", "gatherv") or self.rank == self.size - 1 else None)
                        stream.synchronize()
                        self.same(target, wanted)
        self.comm.barrier(stream=stream.handle)
        stream.synchronize()
        self.comm.cuda_status()

    def test_messages(self) -> None:
        n, rank, stream = self.size, self.rank, Stream()
        x, y = Array(data(rank, 50)), Array(numpy.zeros(50, "float32"))
        with gyre.group():
            self.comm.send(x, (rank + 1) % n, stream=stream.handle)
            self.assertIs(self.comm.recv(y, (rank - 1) % n, stream=stream.handle), y)
        stream.synchronize()
        self.same(y, data((rank - 1) % n, 50))

    def test_returns_at_once(self) -> None:
        """The stream is stopped before the input is there, and the call returns."""
        stream = Stream()
        x = data(self.rank, 1000)
        wanted = self.comm.all_reduce(x.copy())
        y = Array(numpy.zeros_like(x))
        stream.stop()
        y.put(x, stream)
        self.comm.all_reduce(y, stream=stream.handle)
        self.assertFalse(stream.is_done())
        stream.go()
        stream.synchronize()
        self.same(y, wanted)

    def test_streams_of_other_libraries(self) -> None:
        x = data(self.rank, 10)
        wanted = self.comm.all_reduce(x.copy())
        kinds: Tuple[Callable[[Stream], Any], ...] = (TorchStream, CupyStream, CoreStream, OldCoreStream)
        for kind in kinds:
            stream = Stream()
            y = Array(x)
            self.comm.all_reduce(y, stream=kind(stream))
            stream.synchronize()
            self.same(y, wanted)
        for handle in (0, 1, 2):  # default streams; get() waits for the thread's, and that for the legacy one
            y = Array(x)
            self.comm.all_reduce(y, stream=handle)
            self.same(y, wanted)

    def test_what_is_no_stream(self) -> None:
        x = Array(data(self.rank, 10))
        for stream in ("0", -1, 1 << 64, True, 1.0, object()):
            with self.assertRaisesRegex(gyre.InvalidArgument, "is no stream"):
                self.comm.all_reduce(x, stream=stream)
        newer = CoreStream(Stream())
        newer.version = 1
        with self.assertRaisesRegex(gyre.Unsupported, "version 1 of __cuda_stream__"):
            self.comm.all_reduce(x, stream=newer)
        for form in ("_start", "_init"):
            with self.assertRaisesRegex(gyre.InvalidArgument, "a request has no stream"):
                getattr(self.comm, f"all_reduce{form}")(x, stream=0)

    def test_the_streams_of_arrays(self) -> None:
        """What an array's own stream writes is there before the call reads it."""
        x = data(self.rank, 1000)
        wanted = self.comm.all_reduce(x.copy())
        for make in BOTH:
            producer, stream = Stream(), Stream()
            producer.stop()
            y: Any = make(x, producer)
            self.comm.all_reduce(y, stream=stream.handle)
            self.assertFalse(stream.is_done())
            producer.go()
            stream.synchronize()
            self.same(y, wanted)
        if compiled:
            self.assertEqual(y.streams, [stream.handle])

    def test_objects_are_held_until_the_stream_has_passed(self) -> None:
        stream = Stream()
        x = data(self.rank, 1000)
        wanted = self.comm.all_reduce(x.copy())
        target = Array(numpy.zeros_like(x))
        source = Array(x)
        ordering = CoreStream(stream)
        seen: List[Any] = [weakref.ref(source), weakref.ref(ordering)]
        stream.stop()
        self.comm.all_reduce(source, target, stream=ordering)
        del source, ordering
        gc.collect()
        self.comm.cuda_status()
        self.assertTrue(all(ref() is not None for ref in seen))
        stream.go()
        stream.synchronize()
        self.same(target, wanted)
        self.comm.cuda_status()  # collects
        gc.collect()
        self.assertTrue(all(ref() is None for ref in seen))

    def test_host_memory_is_held_too(self) -> None:
        stream = Stream()
        x = bytearray(data(self.rank, 10).tobytes())
        stream.stop()
        self.comm.all_reduce(x, dtype="float32", stream=stream.handle)
        with self.assertRaises(BufferError):
            x.extend(b"resized")
        stream.go()
        stream.synchronize()
        self.comm.cuda_status()
        x.extend(b"resized")
        self.assertEqual(x[:40], self.comm.all_reduce(data(self.rank, 10)).tobytes())

    def test_groups(self) -> None:
        n, streams = 5, [Stream(), Stream()]
        inputs = [data(self.rank + i, 100) for i in range(n)]
        wanted = [self.comm.all_reduce(x.copy()) for x in inputs]
        arrays = [Array(x, streams[i % 2]) for i, x in enumerate(inputs)]
        plain = numpy.ones(3)
        with gyre.group():
            for i, y in enumerate(arrays):
                self.comm.all_reduce(y, stream=streams[i % 2].handle)
            self.comm.all_reduce(plain)
        self.assertTrue((plain == self.size).all())
        for stream in streams:
            stream.synchronize()
        for y, it in zip(arrays, wanted):
            self.same(y, it)
        targets = [Array(numpy.zeros_like(x)) for x in inputs]
        seen = []
        with gyre.group():
            for x, target in zip(inputs, targets):
                source = Array(x)
                seen.append(weakref.ref(source))
                self.comm.all_reduce(source, target)  # without a stream
        del source
        for target, it in zip(targets, wanted):
            self.same(target, it)
        gc.collect()
        self.assertTrue(all(ref() is None for ref in seen))

    def test_a_group_holds_what_its_streams_use(self) -> None:
        """Beyond its end."""
        stream = Stream()
        x = data(self.rank, 1000)
        wanted = self.comm.all_reduce(x.copy())
        source, target = Array(x), Array(numpy.zeros_like(x))
        seen = weakref.ref(source)
        stream.stop()
        with gyre.group():
            self.comm.all_reduce(source, target, stream=stream.handle)
            del source
        self.comm.cuda_status()
        gc.collect()
        self.assertIsNotNone(seen())
        stream.go()
        stream.synchronize()
        self.same(target, wanted)
        self.comm.cuda_status()
        gc.collect()
        self.assertIsNone(seen())

    @unittest.skipUnless(compiled, "DLPack needs the compiled module, which this run goes without")
    def test_deleters(self) -> None:
        stream = Stream()
        y = Exporter(data(self.rank, 10))
        stream.stop()
        self.comm.all_reduce(y, stream=stream.handle)
        self.comm.cuda_status()
        self.assertEqual((len(y.exported), y.deleted), (1, 0))
        stream.go()
        stream.synchronize()
        self.comm.cuda_status()
        self.assertEqual((len(y.exported), y.deleted), (1, 1))

    def test_operations_of_ones_own(self) -> None:
        stream = Stream()
        op = self.comm.op_create(numpy.add)
        x = data(self.rank, 100)
        y = Array(x)
        self.comm.all_reduce(y, op=op, stream=stream.handle)
        stream.synchronize()
        self.same(y, self.comm.all_reduce(x, op=op))


class Mixed(GpuTest):
    """Odd ranks have no GPU."""

    def test_ranks_without_a_gpu(self) -> None:
        comm = world().duplicate()
        odd = self.rank % 2 == 1
        comm.cuda_attach(gyre.CUDA_NONE if odd else gyre.CUDA_CURRENT)
        self.assertEqual(comm.cuda_device, None if odd else self.comm.cuda_device)
        self.assertEqual(comm.get("device"), "none" if odd else str(self.comm.cuda_device))
        x = data(self.rank, 100)
        wanted = self.comm.all_reduce(x.copy())
        y: Any = x.copy() if odd else Array(x)
        comm.all_reduce(y)
        stream = Stream()
        z: Any = x.copy() if odd else Array(x)
        comm.all_reduce(z, stream=0 if odd else stream.handle)  # without a GPU the call is complete
        stream.synchronize()
        for got in (y, z):
            self.assertEqual((got if odd else got.get()).tobytes(), wanted.tobytes())
        if odd:
            with self.assertRaisesRegex(gyre.Unsupported, "this rank is attached to none"):
                comm.all_reduce(Array(x))
            with self.assertRaisesRegex(gyre.InvalidArgument, "it has no streams"):
                comm.all_reduce(x, stream=stream.handle)
        comm.close()

    def test_the_device_of_the_current_context(self) -> None:
        assert self.comm.cuda_device is not None
        other = (self.comm.cuda_device + 1) % gyre.cuda_available()
        for given in (None, gyre.CUDA_DEFAULT, gyre.CUDA_CURRENT):
            comm = world().duplicate()
            enter(other)
            comm.cuda_attach(given)
            leave()
            self.assertEqual(comm.cuda_device, other)
            comm.close()

    def test_arrays_of_another_device(self) -> None:
        """Of any device of this process."""
        devices = gyre.cuda_available()
        assert self.comm.cuda_device is not None
        enter((self.comm.cuda_device + 1) % devices)
        x = data(self.rank, 100)
        y = Array(x)
        leave()
        stream = Stream()
        self.comm.all_reduce(y)
        self.comm.all_reduce(y, stream=stream.handle)
        stream.synchronize()
        self.same(y, self.comm.all_reduce(self.comm.all_reduce(x)))

    def test_closing_while_a_stream_waits(self) -> None:
        comm = world().duplicate()
        comm.cuda_attach(self.comm.cuda_device)
        stream = Stream()
        y = Array(data(self.rank, 100))
        stream.stop()
        comm.all_reduce(y, stream=stream.handle)
        address = y.address
        del y
        comm.close()
        self.assertIsNotNone(_driver.device_of(address), "memory that a stream still writes to was freed")
        stream.go()
        stream.synchronize()
        _driver.collect()
        self.comm.barrier()


if __name__ == "__main__":
    unittest.main()
