"""Requests: test, wait, await, persistent, several at once; operations of one's own; threads; communicators."""
import asyncio
import gc
import threading
import time
import unittest
from typing import Any, List, Optional

import numpy

import gyre
from tests.ranks import RankTest


class Requests(RankTest):
    def total(self) -> int:
        return sum(range(self.size))

    def test_test_and_wait(self) -> None:
        x = numpy.full(100_000, float(self.rank))
        request = self.comm.all_reduce_start(x)
        while not request.test():
            pass
        self.assertTrue(request.done)
        self.assertTrue((x == self.total()).all())
        self.assertTrue(request.wait() and request.test())
        self.assertIn("complete", repr(request))

    def test_wait_with_a_timeout(self) -> None:
        if self.size == 1:
            self.skipTest("nobody to wait for")
        request = None
        if self.rank > 0:
            request = self.comm.barrier_start()
            self.assertFalse(request.wait(0.01))
            self.assertFalse(request.done)
            self.comm.send(b"x", 0)
            self.assertTrue(request.wait(60))
        else:
            for peer in range(1, self.size):
                self.comm.recv(bytearray(1), peer)
            self.comm.barrier()

    def test_several(self) -> None:
        twin = self.comm.duplicate()
        xs = [numpy.full(1000, float(self.rank + number)) for number in range(6)]
        gyre.wait_all([(self.comm, twin)[number % 2].all_reduce_start(x) for number, x in enumerate(xs)])
        for number, x in enumerate(xs):
            self.assertTrue((x == self.total() + number * self.size).all())
        requests = [self.comm.all_reduce_start(x) for x in xs]
        found: List[int] = []
        while (index := gyre.wait_any(requests)) is not None:
            self.assertTrue(requests[index].done)
            found.append(index)
        self.assertEqual(sorted(found), list(range(6)))
        requests = [twin.all_reduce_start(x) for x in xs]
        found = []
        while indices := gyre.wait_some(requests):
            found += indices
        self.assertEqual(sorted(found), list(range(6)))
        self.assertIsNone(gyre.wait_any([]))
        gyre.wait_all([])
        twin.close()

    def test_persistent(self) -> None:
        x, y = numpy.zeros(1000), numpy.zeros(1000)
        request = self.comm.all_reduce_init(x, y)
        self.assertTrue(request.done and request.test())
        for turn in range(5):
            x[:] = self.rank + turn
            self.assertIs(request.start(), request)
            with self.assertRaisesRegex(gyre.InvalidArgument, "under way"):
                request.start()
            with self.assertRaisesRegex(gyre.InvalidArgument, "under way"):
                request.free()
            request.wait()
            self.assertTrue((y == self.total() + turn * self.size).all())
        request.free()
        request.free()
        with self.assertRaisesRegex(gyre.InvalidArgument, "freed"):
            request.start()

    def test_asyncio(self) -> None:
        """Two tasks on two communicators, started in different orders on different ranks, beside one that counts."""
        twin = self.comm.duplicate()
        turns = 0

        async def reduce(comm: gyre.Communicator, value: float) -> float:
            x = numpy.full(100_000, value)
            for _ in range(3):
                await comm.all_reduce_start(x, op="max")
            return float(x[0])

        async def persist() -> float:
            x = numpy.ones(10)
            with third.all_reduce_init(x) as request:
                for _ in range(3):
                    await request.start()
            return float(x[0])

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async def both() -> Any:
            counting = asyncio.create_task(count())
            jobs = [reduce(self.comm, self.rank), reduce(twin, -self.rank), persist()]
            if self.rank % 2:
                jobs.reverse()
            results = await asyncio.gather(*jobs)
            counting.cancel()
            return results

        third = self.comm.duplicate()
        results = asyncio.run(both())
        self.assertEqual(sorted(results), sorted([self.size - 1, 0, float(self.size**3)]))
        self.assertGreater(turns, 0)
        third.close()
        twin.close()

    def test_a_cancelled_await(self) -> None:
        async def run() -> None:
            x = numpy.ones(100)
            request = self.comm.all_reduce_start(x)
            task = asyncio.ensure_future(wrap(request))
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await request
            self.assertTrue((x == self.size).all())

        async def wrap(request: gyre.Request) -> None:
            await request

        asyncio.run(run())

    def reduced(self, times: int) -> bool:
        """True if any rank has called the operation, where there is something to reduce. Leaves of a tree do not."""
        calls = numpy.array([float(times)])
        self.comm.all_reduce(calls)
        return bool(calls[0] > 0) == (self.size > 1)

    def test_operation_of_ones_own(self) -> None:
        """hypot by NumPy; one by hand; one that does not commute."""
        x = numpy.full(1000, 3.0)
        hypot = self.comm.op_create(numpy.hypot)
        self.assertIn("hypot", repr(hypot))
        self.comm.all_reduce(x, op=hypot)
        self.assertTrue(numpy.allclose(x, 3.0 * self.size**0.5))

        kinds = set()

        def by_hand(left: memoryview, right: memoryview, result: memoryview) -> None:
            kinds.add((type(left), left.readonly, result.readonly, left.format))
            for i in range(len(result)):
                result[i] = max(left[i], right[i]) + 1

        y = numpy.full(10, self.rank, "int32")
        self.comm.all_reduce(y, op=self.comm.op_create(by_hand, numpy=False))
        self.assertLessEqual(kinds, {(memoryview, True, False, "i")})
        self.assertTrue(self.reduced(len(kinds)))
        self.assertTrue(all(y == y[0]))

        def compose(left: Any, right: Any, result: Any) -> None:
            """Maps x -> a*x + b modulo 65536, a in the upper half of an element; first left, then right."""
            self.assertFalse(left.flags.writeable or right.flags.writeable)
            a, b, c, d = left >> 16, left & 0xFFFF, right >> 16, right & 0xFFFF
            result[:] = ((c * a) & 0xFFFF) << 16 | ((c * b + d) & 0xFFFF)

        def frozen(array: Any) -> Any:
            array.flags.writeable = False
            return array

        wanted = mine = (numpy.arange(1000) + 3) << 16 | 7
        for rank in range(1, self.size):
            following = numpy.empty_like(mine)
            compose(frozen(wanted), frozen(mine + rank), following)
            wanted = following
        z = mine + self.rank
        self.comm.all_reduce(z, op=self.comm.op_create(compose, commutative=False))
        numpy.testing.assert_array_equal(z, wanted)

    def test_operations_survive_their_names(self) -> None:
        op = self.comm.op_create(lambda left, right, result: numpy.add(left, right, result))
        number = op.number
        gc.collect()
        x = numpy.ones(10)
        self.comm.all_reduce(x, op=op)
        self.assertTrue((x == self.size).all())
        self.assertGreater(number, 8)

    def test_calls_inside_an_operation_are_refused(self) -> None:
        seen: List[str] = []

        def meddle(left: Any, right: Any, result: Any) -> None:
            numpy.add(left, right, result)
            try:
                self.comm.barrier()
            except gyre.InvalidArgument as reason:
                seen.append(str(reason))

        x = numpy.ones(10)
        self.comm.all_reduce(x, op=self.comm.op_create(meddle))
        self.assertTrue((x == self.size).all())
        self.assertTrue(all("must not call gyre" in text for text in seen))
        self.assertTrue(self.reduced(len(seen)))

    def test_communicators(self) -> None:
        half = self.comm.split(self.rank % 2, -self.rank)
        assert half is not None
        x = numpy.full(1, float(self.rank))
        half.all_reduce(x)
        self.assertEqual(x[0], sum(range(self.rank % 2, self.size, 2)))
        members = [rank for rank in range(self.size) if rank % 2 == self.rank % 2]
        self.assertEqual(half.rank, len(members) - 1 - members.index(self.rank))
        half.close()
        half.close()
        self.assertTrue(half.closed)
        self.assertIn("closed", repr(half))
        with self.assertRaisesRegex(gyre.InvalidArgument, "closed"):
            half.barrier()
        self.assertIsNone(self.comm.split(-1))
        reverse = self.comm.sub(range(self.size - 1, -1, -1))
        assert reverse is not None
        with reverse:
            self.assertEqual(reverse.rank, self.size - 1 - self.rank)
        only = self.comm.sub([0])
        self.assertEqual(only is not None, self.rank == 0)
        if only is not None:
            only.close()
        wrong = "twice" if self.size > 1 else "a list of 2 ranks"
        with self.assertRaisesRegex(gyre.InvalidArgument, wrong):
            self.comm.sub([0, 0])
        self.assertIn(wrong, self.comm.last_error)

    def test_an_unclosed_communicator(self) -> None:
        twin: Optional[gyre.Communicator] = self.comm.duplicate()
        with self.assertWarnsRegex(ResourceWarning, "unclosed <gyre communicator"):
            twin = None
            gc.collect()
        self.assertIsNone(twin)
        self.comm.barrier()

    def test_threads_with_communicators_of_their_own(self) -> None:
        comms = [self.comm.duplicate() for _ in range(3)]
        failures: List[BaseException] = []

        def work(comm: gyre.Communicator, number: int) -> None:
            try:
                for turn in range(20):
                    x = numpy.full(5000, self.rank + number + turn, "int64")
                    comm.all_reduce(x)
                    self.assertTrue((x == self.total() + (number + turn) * self.size).all())
            except BaseException as reason:
                failures.append(reason)

        threads = [threading.Thread(target=work, args=(comm, number)) for number, comm in enumerate(comms)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(failures, [])
        for comm in comms:
            comm.close()

    def test_two_threads_on_one_communicator(self) -> None:
        """The second gets an error, not a crash; and the interpreter runs while the first is inside."""
        if self.size == 1:
            self.skipTest("nobody to wait for")
        twin = self.comm.duplicate()
        if self.rank > 0:
            thread = threading.Thread(target=twin.barrier)
            thread.start()
            refused = False
            deadline = time.monotonic() + 60
            while not refused and time.monotonic() < deadline:
                try:
                    twin.progress()
                    time.sleep(0.001)
                except gyre.InvalidArgument as reason:
                    refused = "another thread" in str(reason)
            self.assertTrue(refused)
            self.comm.send(b"x", 0)
            thread.join(60)
            self.assertFalse(thread.is_alive())
        else:
            for peer in range(1, self.size):
                self.comm.recv(bytearray(1), peer)
            twin.barrier()
        twin.close()


if __name__ == "__main__":
    unittest.main()
