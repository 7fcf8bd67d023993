"""One rank of one launch of perf/train/torch_backend: the backend "gyre" of torch.distributed beside Gloo, in the same
process.

    RANK=… WORLD_SIZE=… MASTER_ADDR=… MASTER_PORT=… torch_step.py CORE

Batches of calls by one backend and by the other one alternate; a figure is the median over the batches, in
microseconds. Rank 0 prints them as JSON. An idle backend costs the other one nothing: neither spins between calls."""
import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import gyre.torch

assert gyre.torch
SIZES = (4, 4 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20)
BATCHES = 15
BATCH_S = 0.05  # about so long a batch takes
WIDTH, LAYERS, SAMPLES = 1024, 4, 8
NONE = "alone"  # no backend: a single process


def batch_of(group, call, number):
    """Microseconds of a call."""
    dist.barrier(group)
    began = time.perf_counter_ns()
    for _ in range(number):
        call()
    return (time.perf_counter_ns() - began) / number / 1000


def agreed(group, number):
    told = torch.tensor([number])
    dist.broadcast(told, 0, group=group)
    return int(told)


def beside(groups, calls):
    """The median of each of the calls, which are one for each backend, in turns."""
    control = groups["gloo"]
    group_of = {name: groups.get(name, control) for name in calls}
    numbers = {}
    for name, call in calls.items():
        first = min(batch_of(group_of[name], call, 2) for _ in range(3))
        numbers[name] = agreed(control, min(max(int(BATCH_S * 1e6 / first), 2), 5000))
    times = {name: [] for name in calls}
    for turn in range(BATCHES):
        for name in list(calls) if turn % 2 == 0 else reversed(list(calls)):
            times[name].append(batch_of(group_of[name], calls[name], numbers[name]))
    return {name: round(statistics.median(values), 1) for name, values in times.items()}


def all_reduces(groups):
    figures = {}
    for size in SIZES:
        x = torch.zeros(size // 4)
        figures[f"all_reduce {size}"] = beside(groups, {name: lambda group=group: dist.all_reduce(x, group=group) for name, group in groups.items()})
        x.fill_(1)
        dist.all_reduce(x, group=groups["gyre"])
        if not (x == dist.get_world_size()).all():
            raise SystemExit("a wrong sum")
    return figures


def layers():
    torch.manual_seed(1)
    return nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])


def step_of(network):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    x = torch.randn(SAMPLES, WIDTH)

    def step():
        optimizer.zero_grad()
        network(x).square().mean().backward()
        optimizer.step()

    return step


def sharded(group):
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.fsdp import fully_shard

    mesh = DeviceMesh.from_group(group, "cpu")
    network = layers()
    for layer in network:
        fully_shard(layer, mesh=mesh)
    fully_shard(network, mesh=mesh)
    return network


def main():
    os.sched_setaffinity(0, {int(sys.argv[1])})
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    groups = {"gloo": dist.group.WORLD, "gyre": dist.new_group(backend="gyre")}
    figures = all_reduces(groups)
    steps = {name: step_of(DistributedDataParallel(layers(), process_group=group)) for name, group in groups.items()}
    figures["DDP step"] = beside(groups, {**steps, NONE: step_of(layers())})
    figures["FSDP2 step"] = beside(groups, {name: step_of(sharded(group)) for name, group in groups.items()})
    if dist.get_rank() == 0:
        print(json.dumps({"torch": torch.__version__, "figures": figures}), flush=True)
    dist.barrier()
    os._exit(0)


if __name__ == "__main__":
    main()
