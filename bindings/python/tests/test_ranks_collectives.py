"""Every call in every form, on exact data, against sums done by hand."""
import functools
import unittest
from typing import Any, Callable, Dict, List, Tuple

import numpy

import gyre
from tests.ranks import FORMS, RankTest

TYPES = ("int8", "uint8", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64")
COUNTS = (0, 1, 7, 1000, 70_000)
OPERATIONS: Dict[str, Callable[..., Any]] = {
    "sum": numpy.add,
    "product": numpy.multiply,
    "min": numpy.minimum,
    "max": numpy.maximum,
    "bit_and": numpy.bitwise_and,
    "bit_or": numpy.bitwise_or,
    "bit_xor": numpy.bitwise_xor,
}


def data(rank: int, count: int, dtype: str = "float32") -> Any:
    """Small whole numbers, different on every rank: any order of summation gives the same bits."""
    return ((numpy.arange(count) * 7 + rank * 3 + 1) % 5 + 1).astype(dtype)


class Collectives(RankTest):
    def reduced(self, count: int, dtype: str = "float32", op: Callable[..., Any] = numpy.add) -> Any:
        return functools.reduce(op, [data(rank, count, dtype) for rank in range(self.size)])

    def whole(self, count: int) -> Any:
        return numpy.concatenate([data(rank, count) for rank in range(self.size)])

    def same(self, got: Any, wanted: Any) -> None:
        numpy.testing.assert_array_equal(got, wanted)

    def test_booleans(self) -> None:
        mine = [(numpy.arange(1000) * 7 + rank * 3) % 5 < 2 for rank in range(self.size)]
        meanings: Tuple[Tuple[Tuple[str, ...], Callable[..., Any]], ...] = (
            (("sum", "max", "bit_or", "bor"), numpy.logical_or),
            (("product", "min", "bit_and", "prod"), numpy.logical_and),
            (("bit_xor",), numpy.logical_xor),
        )
        for names, function in meanings:
            for name in names:
                got = numpy.zeros(1000, "bool")
                self.comm.all_reduce(mine[self.rank], got, name)
                self.same(got, functools.reduce(function, mine))
        for name in ("average", "avg"):
            with self.assertRaisesRegex(gyre.InvalidArgument, "no meaning for booleans"):
                self.comm.all_reduce(mine[self.rank].copy(), op=name)
        with self.assertRaisesRegex(gyre.InvalidArgument, "input holds bool, output uint8"):
            self.comm.all_reduce(mine[self.rank], numpy.zeros(1000, "uint8"))
        self.assertEqual((gyre.DType.BOOL.size, gyre.DType.BOOL.name), (1, "BOOL"))

    def test_bytes_as_booleans(self) -> None:
        """Any non-zero byte is true, and a result is 0 or 1, of one rank too."""
        mine = [bytes((i * 37 + rank * 91) % 256 * (i % 3 > rank % 2) for i in range(1000)) for rank in range(self.size)]
        for name, function in (("sum", any), ("product", all), ("bit_xor", lambda values: sum(values) % 2)):
            wanted = bytes(int(function([row[i] != 0 for row in mine])) for i in range(1000))
            for form in FORMS:
                got = bytearray(b"\x55" * 1000)
                self.call(form, "all_reduce", mine[self.rank], got, name, dtype="bool")
                self.assertEqual(got, wanted)
        copied = bytearray(mine[self.rank])
        self.comm.broadcast(copied, dtype="bool")
        self.assertEqual(copied, mine[0])
        op = self.comm.op_create_premul_sum(self.rank == 0, "bool")
        got = bytearray(1000)
        self.comm.all_reduce(mine[self.rank], got, op, dtype="bool")
        self.assertEqual(got, bytes(int(value != 0) for value in mine[0]))

    def test_complex_numbers(self) -> None:
        for dtype in ("complex64", "complex128"):
            mine = [data(rank, 1000, dtype) + 1j * data(rank + 3, 1000, dtype) for rank in range(self.size)]
            wanted = functools.reduce(numpy.add, mine)
            got = numpy.zeros(1000, dtype)
            self.comm.all_reduce(mine[self.rank], got)
            self.same(got, wanted)
            self.comm.all_reduce(mine[self.rank], got, "avg")
            self.same(got.real, wanted.real / numpy.dtype(dtype).type(self.size).real)
            self.same(got.imag, wanted.imag / numpy.dtype(dtype).type(self.size).real)
            whole = numpy.zeros(1000 * self.size, dtype)
            self.comm.all_gather(mine[self.rank], whole)
            self.same(whole, numpy.concatenate(mine))
            for op in ("product", "min", "max"):
                with self.assertRaisesRegex(gyre.InvalidArgument, "no meaning for complex numbers"):
                    self.comm.all_reduce(mine[self.rank].copy(), op=op)
            if self.size > 1:
                with self.assertRaisesRegex(gyre.InvalidArgument, "cannot share evenly"):
                    self.comm.reduce_scatter(numpy.zeros(self.size + 1, dtype))

    def test_all_reduce_of_every_type_and_operation(self) -> None:
        for dtype in TYPES:
            for name, op in OPERATIONS.items():
                if name.startswith("bit") and dtype.startswith("float"):
                    continue
                with self.subTest(dtype=dtype, op=name), numpy.errstate(over="ignore"):
                    x, y = data(self.rank, 100, dtype), numpy.zeros(100, dtype)
                    self.comm.all_reduce(x, y, name)
                    self.same(x, data(self.rank, 100, dtype))
                    self.same(y, self.reduced(100, dtype, op).astype(dtype))

    def test_all_reduce(self) -> None:
        for form in FORMS:
            for count in COUNTS:
                x, y = data(self.rank, count), numpy.zeros(count, "float32")
                self.call(form, "all_reduce", x, y)
                self.same(y, self.reduced(count))
                self.call(form, "all_reduce", x, op=gyre.Op.MAX)
                self.same(x, self.reduced(count, op=numpy.maximum))

    def test_average(self) -> None:
        x = numpy.full(10, float(self.rank * self.size))
        self.comm.all_reduce(x, op="average")
        self.same(x, sum(range(self.size)))

    def test_premul_sum(self) -> None:
        for scalar in (self.rank + 2, numpy.float64(self.rank + 2), numpy.full(1, self.rank + 2.0)):
            op = self.comm.op_create_premul_sum(scalar, "float64")
            x = numpy.ones(10)
            self.comm.all_reduce(x, op=op)
            self.same(x, sum(rank + 2 for rank in range(self.size)))
        with self.assertRaisesRegex(gyre.InvalidArgument, "buffer of 2 bytes"):
            self.comm.op_create_premul_sum(1.5, "bfloat16")
        with self.assertRaisesRegex(gyre.InvalidArgument, "no int8"):
            self.comm.op_create_premul_sum(1.5, "int8")

    def test_reduce(self) -> None:
        for form in FORMS:
            for root in range(self.size):
                x, y = data(self.rank, 1000), numpy.zeros(1000, "float32")
                self.call(form, "reduce", x, y if self.rank == root else None, root=root)
                self.same(x, data(self.rank, 1000))
                self.same(y, self.reduced(1000) if self.rank == root else 0)
                self.call(form, "reduce", x, root=root)
                self.same(x, self.reduced(1000) if self.rank == root else data(self.rank, 1000))

    def test_reduce_scatter(self) -> None:
        for form in FORMS:
            for count in COUNTS:
                mine = slice(self.rank * count, (self.rank + 1) * count)
                x, y = data(self.rank, count * self.size), numpy.zeros(count, "float32")
                self.call(form, "reduce_scatter", x, y)
                self.same(y, self.reduced(count * self.size)[mine])
                self.call(form, "reduce_scatter", x)
                self.same(x[mine], self.reduced(count * self.size)[mine])

    def test_broadcast(self) -> None:
        for form in FORMS:
            for root in range(self.size):
                x = data(self.rank, 1000)
                self.call(form, "broadcast", x, root=root)
                self.same(x, data(root, 1000))
                x, y = data(self.rank, 1000), numpy.zeros(1000, "float32")
                self.call(form, "broadcast", x if self.rank == root else None, y, root)
                self.same(y, data(root, 1000))
        x = data(self.rank, 100)
        x.flags.writeable = self.rank != 0
        self.comm.broadcast(x)
        self.same(x, data(0, 100))

    def test_gathers(self) -> None:
        for form in FORMS:
            for count in COUNTS:
                x, y = data(self.rank, count), numpy.zeros(count * self.size, "float32")
                self.call(form, "all_gather", x, y)
                self.same(y, self.whole(count))
                y[:] = 0
                y[self.rank * count : (self.rank + 1) * count] = x
                self.call(form, "all_gather", None, y)
                self.same(y, self.whole(count))
                for root in range(self.size):
                    z = numpy.zeros(count * self.size, "float32")
                    self.call(form, "gather", x, z if self.rank == root else None, root=root)
                    self.same(z, self.whole(count) if self.rank == root else 0)

    def test_gather_in_place(self) -> None:
        y = numpy.zeros(10 * self.size, "float32")
        y[self.rank * 10 : (self.rank + 1) * 10] = data(self.rank, 10)
        if self.rank == 0:
            self.comm.gather(None, y)
            self.same(y, self.whole(10))
        else:
            self.comm.gather(data(self.rank, 10))

    def test_scatter(self) -> None:
        for form in FORMS:
            for root in range(self.size):
                whole = data(root, 100 * self.size)
                mine = whole[self.rank * 100 : (self.rank + 1) * 100].copy()
                y = numpy.zeros(100, "float32")
                self.call(form, "scatter", whole if self.rank == root else None, y, root)
                self.same(y, mine)
                y[:] = 0
                if self.rank == root:
                    self.call(form, "scatter", whole, root=root)
                else:
                    self.call(form, "scatter", None, y, root=root)
                    self.same(y, mine)

    def test_all_to_all(self) -> None:
        def block(sender: int, receiver: int) -> Any:
            return data(sender * self.size + receiver, 50)

        for form in FORMS:
            x = numpy.concatenate([block(self.rank, other) for other in range(self.size)])
            wanted = numpy.concatenate([block(other, self.rank) for other in range(self.size)])
            y = numpy.zeros_like(x)
            self.call(form, "all_to_all", x, y)
            self.same(y, wanted)
            self.call(form, "all_to_all", x)
            self.same(x, wanted)

    def test_barrier(self) -> None:
        for form in FORMS:
            self.call(form, "barrier")

    # ---- different sizes ----

    def counts(self) -> List[int]:
        return [rank * 3 + 2 for rank in range(self.size)]

    def parts(self) -> List[Any]:
        return [data(rank, count) for rank, count in enumerate(self.counts())]

    def test_gathers_of_different_sizes(self) -> None:
        counts, mine = self.counts(), self.parts()[self.rank]
        places = [sum(counts[:rank]) + 5 * rank for rank in range(self.size)]
        spread = numpy.zeros(places[-1] + counts[-1], "float32")
        for place, part in zip(places, self.parts()):
            spread[place : place + len(part)] = part
        for form in FORMS:
            y = numpy.zeros(sum(counts), "float32")
            self.call(form, "all_gatherv", mine, y, counts)
            self.same(y, numpy.concatenate(self.parts()))
            y = numpy.zeros_like(spread)
            self.call(form, "all_gatherv", mine, y, counts, places)
            self.same(y, spread)
            y = numpy.zeros_like(spread)
            y[places[self.rank] : places[self.rank] + len(mine)] = mine
            self.call(form, "all_gatherv", None, y, counts, places)
            self.same(y, spread)
            for root in range(self.size):
                y = numpy.zeros_like(spread)
                self.call(form, "gatherv", mine, y if self.rank == root else None, counts, places, root)
                self.same(y, spread if self.rank == root else 0)
                y = numpy.zeros(counts[self.rank], "float32")
                self.call(form, "scatterv", spread if self.rank == root else None, y, counts, places, root)
                self.same(y, mine)

    def test_reduce_scatter_of_different_sizes(self) -> None:
        counts = self.counts()
        total, before = sum(counts), sum(counts[: self.rank])
        mine = slice(before, before + counts[self.rank])
        for form in FORMS:
            x, y = data(self.rank, total), numpy.zeros(counts[self.rank], "float32")
            self.call(form, "reduce_scatterv", x, y, counts)
            self.same(y, self.reduced(total)[mine])
            self.call(form, "reduce_scatterv", x, None, counts)
            self.same(x[mine], self.reduced(total)[mine])

    def test_all_to_all_of_different_sizes(self) -> None:
        def block(sender: int, receiver: int) -> Any:
            return data(sender + receiver, sender + 2 * receiver)

        others = range(self.size)
        x = numpy.concatenate([block(self.rank, other) for other in others])
        wanted = numpy.concatenate([block(other, self.rank) for other in others])
        sent = [len(block(self.rank, other)) for other in others]
        received = [len(block(other, self.rank)) for other in others]
        for form in FORMS:
            y = numpy.zeros_like(wanted)
            self.call(form, "all_to_allv", x, y, sent, received)
            self.same(y, wanted)
            y = numpy.zeros(len(wanted) + self.size, "float32")
            places = [sum(received[:other]) + other for other in others]
            self.call(form, "all_to_allv", x, y, sent, received, None, places)
            for other, place in zip(others, places):
                self.same(y[place : place + received[other]], block(other, self.rank))

    # ---- between two ranks ----

    def test_send_and_receive_in_a_ring(self) -> None:
        right, left = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        for count in COUNTS:
            x, y = data(self.rank, count), numpy.zeros(count, "float32")
            self.comm.sendrecv(x, right, y, left)
            self.same(y, data(left, count))
            for form in ("_start", "_init"):
                y[:] = 0
                send = getattr(self.comm, "send" + form)(x, right)
                recv = getattr(self.comm, "recv" + form)(y, left)
                if form == "_init":
                    send.start(), recv.start()
                gyre.wait_all([send, recv])
                self.same(y, data(left, count))

    def test_blocking_send_and_receive(self) -> None:
        if self.rank == 0:
            for peer in range(1, self.size):
                self.comm.send(data(peer, 1000), peer)
        else:
            y = numpy.zeros(1000, "float32")
            self.comm.recv(y, 0)
            self.same(y, data(self.rank, 1000))

    def test_groups(self) -> None:
        others = range(self.size)
        received = [numpy.zeros(100, "float32") for _ in others]
        x = numpy.ones(10)
        held = bytearray(8)
        with gyre.group():
            self.comm.send(held, self.rank)
            with self.assertRaises(BufferError):
                held.extend(b"resized")
            self.comm.recv(bytearray(8), self.rank)
            for other in others:
                self.comm.send(data(self.rank, 100), other)  # only the group keeps the buffers alive
            with gyre.group():
                for other in reversed(others):
                    self.comm.recv(received[other], other)
            self.comm.all_reduce(x)
        for other in others:
            self.same(received[other], data(other, 100))
        self.same(x, self.size)
        held.extend(b"resized")

    def test_gyre_has_what_a_user_of_the_header_finds(self) -> None:
        self.assertEqual(gyre.library_version().count("."), 2)
        self.assertIn("GYRE_TIMEOUT", gyre.config_describe())
        self.assertIn("shm", gyre.info())
        gyre.config_check()
        self.assertTrue(self.comm.algorithm("all_reduce", 1000, "float32"))
        with self.assertRaisesRegex(gyre.InvalidArgument, "not a collective"):
            self.comm.algorithm("all_induce", 1, "int8")
        self.assertIn("all_reduce", self.comm.dump())
        self.assertEqual(gyre.DType.FLOAT8_E4M3.size, 1)


if __name__ == "__main__":
    unittest.main()
