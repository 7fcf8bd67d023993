"""A program of a rank for test_torch_worlds: torch_world CASE, with RANK and WORLD_SIZE."""
import datetime
import os
import sys
import threading
import time
from typing import Any, List

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gyre.torch


def rank_and_size() -> Any:
    return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


def check_sum() -> None:
    x = torch.full((10,), float(dist.get_rank()))
    dist.all_reduce(x)
    assert (x == sum(range(dist.get_world_size()))).all(), x


def environment() -> None:
    """TCPStore by MASTER_ADDR and MASTER_PORT; under torchrun, whose agent keeps the store, a second group after the
    first."""
    for _ in range(2 if "TORCHELASTIC_RUN_ID" in os.environ else 1):
        dist.init_process_group("cpu:gyre")
        check_sum()
        dist.destroy_process_group()


def spawned(rank: int, size: int, store: str) -> None:
    dist.init_process_group("gyre", init_method=f"file://{store}", rank=rank, world_size=size)
    check_sum()
    dist.destroy_process_group()


def spawn() -> None:
    mp.spawn(spawned, (3, sys.argv[2]), nprocs=3)


def threads() -> None:
    """HashStore: ranks that are threads of one process, each with a backend of its own."""
    store, size = dist.HashStore(), 2
    results: List[Any] = [None] * size

    def rank(number: int) -> None:
        backend = gyre.torch._backend().create(store, number, size, datetime.timedelta(seconds=30))
        x = torch.ones(4)
        backend.allreduce([x], dist.AllreduceOptions()).wait()
        results[number] = x
        backend.shutdown()

    ranks = [threading.Thread(target=rank, args=(number,)) for number in range(size)]
    for one in ranks:
        one.start()
    for one in ranks:
        one.join()
    assert all((x == size).all() for x in results), results


def timeout() -> None:
    """A wait with a limit raises and leaves the operation under way; a monitored barrier names the late rank."""
    rank, size = rank_and_size()
    dist.init_process_group("gyre", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=size)
    x = torch.ones(2)
    if rank == 0:
        work = dist.all_reduce(x, async_op=True)
        try:
            work.wait(datetime.timedelta(milliseconds=200))
            raise SystemExit("the wait ended")
        except dist.DistBackendError as error:
            print(f"rank 0 raised: {error}", flush=True)
        work.wait()
    else:
        time.sleep(1)
        dist.all_reduce(x)
    assert (x == size).all(), x
    if rank == 0:
        try:
            dist.monitored_barrier(timeout=datetime.timedelta(milliseconds=300))
            raise SystemExit("the barrier ended")
        except dist.DistBackendError as error:
            print(f"rank 0 raised: {error}", flush=True)
    else:
        time.sleep(3)
    os._exit(0)


def missing() -> None:
    """A meeting that one rank does not come to."""
    rank, size = rank_and_size()
    try:
        dist.init_process_group("gyre", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=size + 1,
                                timeout=datetime.timedelta(seconds=2))
    except Exception as error:
        print(f"rank {rank} raised: {error}", flush=True)


def aborted() -> None:
    """An abort ends what the other ranks are in."""
    rank, size = rank_and_size()
    dist.init_process_group("gyre", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=size)
    group: Any = dist.distributed_c10d._get_default_group()
    if getattr(group, "supports_abort_hooks", False):
        group.register_abort_hook(1, lambda: print(f"the hook of rank {rank}", flush=True))
        group.register_abort_hook(2, lambda: print("a hook that was taken away", flush=True))
        group.unregister_abort_hook(2)
    if rank == 0:
        check_sum()
        group.abort()
    else:
        try:
            for _ in range(2):  # the first one may end before the abort
                dist.all_reduce(torch.ones(10))
            raise SystemExit("the all_reduce ended")
        except dist.DistBackendError as error:
            print(f"rank {rank} raised: {error}", flush=True)
    os._exit(0)


def network() -> Any:
    torch.manual_seed(1)
    return DistributedDataParallel(nn.Sequential(nn.Linear(16, 64), nn.Linear(64, 4)), bucket_cap_mb=0.001)


def death() -> None:
    """Rank 1 ends in the middle of training; the others say when and how they learn of it."""
    rank, size = rank_and_size()
    dist.init_process_group("gyre", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=size)
    trained = network()
    try:
        for step in range(1000):
            if step == 5 and rank == 1:
                print(f"ended {time.monotonic()}", flush=True)
                os._exit(0)
            trained(torch.ones(8, 16)).square().mean().backward()
    except dist.DistBackendError as error:
        print(f"rank {rank} raised {time.monotonic()} {error}", flush=True)
    os._exit(0)


def restarted() -> None:
    """Under torchrun --max-restarts: rank 1 of the first attempt fails in the middle of training, the second attempt
    ends well."""
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    dist.init_process_group("gyre")
    trained = network()
    for step in range(10):
        if step == 5 and attempt == 0 and dist.get_rank() == 1:
            os._exit(9)
        trained(torch.ones(8, 16)).square().mean().backward()
    check_sum()
    print(f"attempt {attempt}: rank {dist.get_rank()} of {dist.get_world_size()} is done", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]]()
