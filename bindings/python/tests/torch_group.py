"""For tests of gyre.torch that every rank runs: the default group, and what each rank contributes."""
import os
import unittest
from typing import Any, List, Tuple

import torch
import torch.distributed as dist

import gyre.torch

TIMEOUT_S = 60


def rank_values(rank: int, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Small numbers, of which every sum is exact in every type."""
    return ((torch.arange(count) + rank) % 3).to(dtype)


def meeting() -> Tuple[dist.Store, int, int]:
    """The store at MASTER_ADDR and MASTER_PORT, the rank, their number."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    return dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, rank == 0), rank, size


class GroupTest(unittest.TestCase):
    """Every rank runs the same tests in the same order, in the group of all ranks (RANK, WORLD_SIZE, MASTER_ADDR,
    MASTER_PORT)."""

    rank: int
    size: int

    @classmethod
    def setUpClass(cls) -> None:
        if not dist.is_initialized():
            torch.set_num_threads(1)
            dist.init_process_group("gyre")
        cls.rank, cls.size = dist.get_rank(), dist.get_world_size()

    def setUp(self) -> None:
        dist.barrier()

    def everyone(self, count: int, dtype: torch.dtype = torch.float32) -> List[torch.Tensor]:
        return [rank_values(rank, count, dtype) for rank in range(self.size)]

    def mine(self, count: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return rank_values(self.rank, count, dtype)

    def assertSame(self, given: Any, wanted: Any) -> None:
        self.assertEqual(len(given), len(wanted))
        for one, other in zip(given, wanted):
            self.assertTrue(torch.equal(one, other), f"{one} is not {other}")


assert gyre.torch
