"""Attributes, topology, counters, trace, log, registered memory."""
import time
import unittest
from typing import List, Tuple

import numpy

import gyre
from tests.ranks import RankTest


class Observe(RankTest):
    def test_attributes(self) -> None:
        twin = self.comm.duplicate()
        twin.set("name", "grädients")
        self.assertEqual(twin.get("name"), "grädients")
        twin.set("order", "canonical")
        self.assertEqual((twin.get("order"), self.comm.get("order")), ("canonical", "shape"))
        twin.set("timeout", "60")
        self.assertEqual(float(twin.get("timeout")), 60)
        with self.assertRaises(gyre.InvalidArgument):
            twin.get("colour")
        with self.assertRaises(gyre.InvalidArgument):
            twin.set("timeout", "soon")
        twin.close()

    def test_algorithm(self) -> None:
        twin = self.comm.duplicate()
        twin.set("algorithm", "all_reduce:ring")
        self.assertEqual(twin.algorithm("all_reduce", 1000, "float32"), "ring")
        twin.set("order", "canonical")
        forced = f"all_reduce:ring, cannot do all_reduce on {self.size} ranks with order canonical"
        with self.assertRaisesRegex(gyre.Unsupported, forced):
            twin.algorithm("all_reduce", 1000, "float32")
        with self.assertRaises(gyre.Unsupported):
            twin.all_reduce(numpy.ones(1000, "float32"))
        self.assertTrue(twin.algorithm("all_gather", 1000, "float32"))
        with self.assertRaisesRegex(gyre.InvalidArgument, "'all_to_none' is not a collective; there are all_reduce, "):
            twin.algorithm("all_to_none", 1000, "float32")
        twin.close()

    def test_topology(self) -> None:
        mine = self.comm.topology()
        self.assertEqual((mine.world_rank, mine.host, mine.hosts), (self.rank, 0, 1))
        self.assertEqual((mine.local, mine.locals, mine.same_host, mine.transport), (self.rank, self.size, True, "self"))
        self.assertEqual(len({self.comm.topology(rank).process for rank in range(self.size)}), self.size)
        with self.assertRaises(gyre.InvalidArgument):
            self.comm.topology(self.size)

    def test_counters(self) -> None:
        before = self.comm.counters()
        self.comm.all_reduce(numpy.ones(1000))
        after = self.comm.counters()
        self.assertEqual((after.started, after.done), (before.started + 1, before.done + 1))
        self.assertEqual((after.failed, after.bytes - before.bytes), (0, 8000))

    def test_trace(self) -> None:
        events: List[gyre.TraceEvent] = []
        twin = self.comm.duplicate()
        twin.trace(events.append)
        began = time.monotonic_ns()
        twin.all_reduce(numpy.ones(1000, "float32"), op="max")
        ended = time.monotonic_ns()
        twin.trace(None)
        twin.barrier()
        self.assertEqual([event.ended for event in events], [False, True])
        first, last = events
        self.assertEqual((first.collective, first.count, first.dtype, first.op), ("all_reduce", 1000, gyre.DType.FLOAT32, gyre.Op.MAX))
        self.assertEqual((first.status, last.status), (gyre.Status.IN_PROGRESS, gyre.Status.SUCCESS))
        self.assertTrue(began <= first.time <= last.time <= ended)
        self.assertEqual(first.sequence, last.sequence)
        twin.close()

    def test_log(self) -> None:
        lines: List[Tuple[int, str]] = []
        gyre.log_set(lambda level, line: lines.append((level, line)))
        try:
            gyre.create(rank=0, world_size=1, address="nonsense://").close()
        except gyre.Error as error:
            self.assertTrue(lines and lines[0][0] == 0 and str(error) in lines[0][1], (lines, error))
        else:
            self.fail("no error")
        finally:
            gyre.log_set(None)

    def test_registered_memory(self) -> None:
        memory = bytearray(1000)
        with self.comm.mem_register(memory) as registered:
            with self.assertRaises(BufferError):
                memory.extend(b"more")
            self.comm.all_reduce(memory)
        registered.close()
        memory.extend(b"more")
        twin = self.comm.duplicate()
        twin.mem_register(memory)
        twin.close()
        memory.extend(b"more")


if __name__ == "__main__":
    unittest.main()
