"""One-sided access."""
import unittest
from typing import Any, Callable, List
from unittest import mock

import numpy

import gyre
from gyre._library import lib
from tests.ranks import RankTest


class Windows(RankTest):
    def both_kinds(self, nbytes: int) -> "list[Any]":
        return [self.comm.mem_alloc(nbytes), numpy.zeros(nbytes, "uint8")]

    def test_put_get_accumulate(self) -> None:
        right = (self.rank + 1) % self.size
        for memory in self.both_kinds(8000):
            mine = numpy.frombuffer(memory.view if isinstance(memory, gyre.Memory) else memory, "float64")
            with self.comm.window_create(memory) as window:
                window.put(numpy.full(10, float(self.rank)), right, 80)
                window.signal(right, 3)
                window.wait(1, 3)
                self.assertTrue((mine[10:20] == (self.rank - 1) % self.size).all())
                self.assertFalse(mine[:10].any() or mine[20:].any())
                self.comm.barrier()
                for target in range(self.size):
                    window.accumulate(numpy.full(5, self.rank + 1.0), target, "sum", 800)
                window.flush()
                self.comm.barrier()
                self.assertTrue((mine[100:105] == sum(range(1, self.size + 1))).all())
                x = numpy.zeros(10)
                window.get(x, right, 80)
                self.assertTrue((x == self.rank).all())
                self.comm.barrier()
            self.assertTrue(window.closed)
            del mine
        del memory

    def test_misuse(self) -> None:
        window = self.comm.window_create(bytearray(100))
        calls: List[Callable[[], None]] = [
            lambda: window.put(b"x", self.size),
            lambda: window.put(b"x", -1),
            lambda: window.put(b"x", 0, 100),
            lambda: window.put(b"x", 0, -1),
            lambda: window.get(b"x", 0),
            lambda: window.signal(0, 32),
            lambda: window.wait(-1),
            lambda: window.accumulate(bytearray(8), 0, "some"),
        ]
        for call in calls:
            with self.assertRaises(gyre.InvalidArgument):
                call()
        window.close()
        window.close()
        with self.assertRaisesRegex(gyre.InvalidArgument, "closed"):
            window.flush()

    def test_a_window_holds_its_memory(self) -> None:
        memory = bytearray(100)
        twin = self.comm.duplicate()
        window = twin.window_create(memory)
        with self.assertRaises(BufferError):
            memory.extend(b"more")
        self.comm.barrier()
        twin.close()
        self.assertTrue(window.closed)
        memory.extend(b"more")

    def test_a_close_that_is_refused(self) -> None:
        """It is there as before: so are its memory and its peers' way to it."""
        memory = bytearray(100)
        window = self.comm.window_create(memory)
        with gyre.group():
            with self.assertRaisesRegex(gyre.InvalidArgument, "group"):
                window.close()
        refusal = mock.patch.object(lib, "gyre_window_destroy", lambda handle: gyre.Status.UNSUPPORTED)
        with refusal, self.assertRaises(gyre.Unsupported):
            window.close()
        self.assertFalse(window.closed)
        with self.assertRaises(BufferError):
            memory.extend(b"more")
        window.put(b"there", (self.rank + 1) % self.size, 10)
        window.flush()
        self.comm.barrier()
        self.assertEqual(memory[10:15], b"there")
        window.close()
        self.assertTrue(window.closed)
        memory.extend(b"more")

    def test_a_close_that_fails(self) -> None:
        """It is gone, with an error: what a target has refused, say."""
        memory = bytearray(100)
        window = self.comm.window_create(memory)
        destroy = lib.gyre_window_destroy

        def fail(handle: Any) -> int:
            self.assertEqual(destroy(handle), gyre.Status.SUCCESS)
            return int(gyre.Status.INVALID_ARGUMENT)

        with mock.patch.object(lib, "gyre_window_destroy", fail):
            with self.assertRaises(gyre.InvalidArgument):
                window.close()
        self.assertTrue(window.closed)
        window.close()
        memory.extend(b"more")

    def test_registrations_end_with_their_communicator(self) -> None:
        """And not with their world: libgyre must have forgotten the memory when it is the caller's again."""
        memory = bytearray(8192)
        twin = self.comm.duplicate()
        twin.mem_register(memory)
        self.comm.barrier()
        twin.close()
        with memoryview(memory)[:4096] as part, self.comm.mem_register(part):
            pass
        memory.extend(b"more")


if __name__ == "__main__":
    unittest.main()
