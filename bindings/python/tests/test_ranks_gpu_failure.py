"""A GPU fails under a call on a stream: every rank is told which, and what the streams held is let go of."""
import gc
import time
import unittest
import weakref

import numpy

import gyre
from tests.gpu import Array, Exporter, Stream, enter
from tests.ranks import RankTest

COUNT = 1000


class Failure(RankTest):
    def wait_for_failure(self) -> str:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                self.comm.cuda_status()
            except gyre.SystemFailure as reason:
                return str(reason)
            time.sleep(0.001)
        raise AssertionError("no failure within 20 seconds")

    def test_an_array_that_says_too_much(self) -> None:
        """Rank 0's array is said to be longer than its memory, so its GPU reads beyond the allocation."""
        self.comm.cuda_attach()
        assert self.comm.cuda_device is not None
        enter(self.comm.cuda_device)
        stream = Stream()
        x = Array(numpy.ones(COUNT, "float32"))
        if self.rank == 0:
            x = Array(numpy.ones(COUNT // 2, "float32"), shape=(COUNT,))
        target = Exporter(numpy.zeros(COUNT, "float32")) if gyre._compiled.compiled else Array(numpy.zeros(COUNT, "float32"))
        seen = weakref.ref(x)
        try:
            self.comm.all_reduce(x, target, stream=stream.handle)
        except gyre.SystemFailure:  # known before the call has returned
            pass
        del x
        sentence = self.wait_for_failure()
        self.assertIn("rank 0: GPU 0 has failed", sentence)
        with self.assertRaises(gyre.SystemFailure):
            self.comm.all_reduce(target, stream=stream.handle)
        deadline = time.monotonic() + 20
        while seen() is not None and time.monotonic() < deadline:
            with self.assertRaises(gyre.SystemFailure):
                self.comm.cuda_status()
            gc.collect()
            time.sleep(0.01)
        self.assertIsNone(seen(), "an array is held although its GPU has failed")
        if isinstance(target, Exporter):
            del sentence
            gc.collect()
            self.assertEqual(target.deleted, len(target.exported))


if __name__ == "__main__":
    unittest.main()
