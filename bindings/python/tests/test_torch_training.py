"""Training by torch's own means over gyre: the losses are those with Gloo. Every rank runs this, under gyre-run."""
import unittest
from typing import List

import torch
import torch.distributed as dist

import gyre.torch
from tests.torch_group import meeting
from tests.torch_means import MEANS

ROUNDED = {"bf16 hook": 5e-3, "fp16 hook": 1e-3, "PowerSGD hook": 5e-3}  # the order of the sum is not Gloo's


class Training(unittest.TestCase):
    """All means with a backend, then all with the other one, in the same processes."""

    def losses(self, backend: str) -> List[List[float]]:
        dist.init_process_group(backend, store=dist.PrefixStore(backend, self.store), rank=self.rank, world_size=self.size)
        try:
            return [MEANS[name]() for name in self.names]
        finally:
            dist.destroy_process_group()

    def test_losses(self) -> None:
        torch.set_num_threads(1)
        self.store, self.rank, self.size = meeting()
        self.names = [name for name in MEANS if name != "hybrid FSDP2" or self.size % 2 == 0]
        for name, given, wanted in zip(self.names, self.losses("gyre"), self.losses("gloo")):
            with self.subTest(name):
                self.assertGreater(len(wanted), 1)
                self.assertEqual(len(given), len(wanted))
                for one, other in zip(given, wanted):
                    self.assertAlmostEqual(one, other, delta=ROUNDED.get(name, 1e-5))


assert gyre.torch
if __name__ == "__main__":
    unittest.main()
