"""One-sided access."""
import unittest
from typing import Any, Callable, List

import numpy

import gyre
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


if __name__ == "__main__":
    unittest.main()
