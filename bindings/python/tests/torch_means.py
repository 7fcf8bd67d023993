"""How torch trains with several ranks: each function of MEANS trains the same small model by one of its means and
returns the losses of this rank."""
import contextlib
import tempfile
from typing import Any, Callable, Dict, List

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 5


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))


def batch(rank: int, step: int) -> Any:
    generator = torch.Generator().manual_seed(1000 * step + rank)
    return torch.randn(8, 16, generator=generator), torch.randn(8, 4, generator=generator)


def everyones(loss: torch.Tensor) -> float:
    """The mean over the ranks."""
    mean = loss.detach().clone()
    dist.all_reduce(mean)
    return float(mean / dist.get_world_size())


def train(network: Any, optimizer: Any, steps: int = STEPS, rank: int = -1) -> List[float]:
    losses = []
    for step in range(steps):
        x, y = batch(dist.get_rank() if rank < 0 else rank, step)
        optimizer.zero_grad()
        loss = (network(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(everyones(loss))
    return losses


def sgd(network: Any) -> Any:
    return torch.optim.SGD(network.parameters(), lr=0.05)


def parallel(**options: Any) -> Any:
    """DDP with several buckets."""
    return DistributedDataParallel(model(), **{"bucket_cap_mb": 0.01, **options})


def ddp(**options: Any) -> List[float]:
    network = parallel(**options)
    return train(network, sgd(network))


class Half(nn.Module):
    """A model of which some ranks do not use a layer."""

    def __init__(self) -> None:
        super().__init__()
        self.always, self.sometimes = model(), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        y = self.always(x)
        return self.sometimes(y) if dist.get_rank() % 2 else y


def unused() -> List[float]:
    network = DistributedDataParallel(Half(), find_unused_parameters=True, bucket_cap_mb=0.01)
    return train(network, sgd(network))


def no_sync() -> List[float]:
    network = parallel()
    optimizer, losses = sgd(network), []
    for step in range(2 * STEPS):
        x, y = batch(dist.get_rank(), step)
        with contextlib.nullcontext() if step % 2 else network.no_sync():
            loss = (network(x) - y).square().mean()
            loss.backward()
        if step % 2:
            optimizer.step()
            optimizer.zero_grad()
        losses.append(everyones(loss))
    return losses


def uneven() -> List[float]:
    """Ranks with different numbers of batches."""
    network = parallel()
    optimizer, losses = sgd(network), []
    with network.join():
        for step in range(STEPS + dist.get_rank()):
            x, y = batch(dist.get_rank(), step)
            optimizer.zero_grad()
            loss = (network(x) - y).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def hooked(name: str) -> List[float]:
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

    network = parallel()
    network.register_comm_hook(None, getattr(default_hooks, name))
    return train(network, sgd(network))


def power_sgd() -> List[float]:
    """In one bucket: this hook calls collectives in callbacks of futures, whose order among buckets is that of their
    ends."""
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook

    network = parallel(bucket_cap_mb=25)
    network.register_comm_hook(powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2), powerSGD_hook.powerSGD_hook)
    return train(network, sgd(network))


def zero() -> List[float]:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    network = parallel()
    optimizer = ZeroRedundancyOptimizer(network.parameters(), torch.optim.Adam, lr=0.01)
    losses = train(network, optimizer)
    optimizer.consolidate_state_dict()
    return losses


def sharded(mesh: Any = None) -> Any:
    from torch.distributed.fsdp import fully_shard

    made: Any = model()
    for layer in made:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, mesh=mesh)
    fully_shard(made, mesh=mesh)
    return made


def fsdp2() -> List[float]:
    network = sharded()
    return train(network, sgd(network))


def hybrid() -> List[float]:
    """FSDP2 within pairs of ranks, replicated over the pairs."""
    from torch.distributed.device_mesh import init_device_mesh

    network = sharded(init_device_mesh("cpu", (dist.get_world_size() // 2, 2), mesh_dim_names=("replicate", "shard")))
    return train(network, sgd(network))


def checkpoint() -> List[float]:
    """Saves shards, loads them into a model of other values and goes on."""
    from torch.distributed import checkpoint as dcp
    from torch.distributed.checkpoint.state_dict import get_model_state_dict, set_model_state_dict

    network = sharded()
    losses = train(network, sgd(network), 2)
    folder: List[Any] = [tempfile.mkdtemp() if dist.get_rank() == 0 else None]
    dist.broadcast_object_list(folder)
    dcp.save(get_model_state_dict(network), checkpoint_id=folder[0])
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    state = get_model_state_dict(network)
    dcp.load(state, checkpoint_id=folder[0])
    set_model_state_dict(network, state)
    return losses + train(network, sgd(network))


def tensor_parallel() -> List[float]:
    """DTensor: the layers' weights by columns and rows; every rank has the same batch."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    network = parallelize_module(model(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    return train(network, sgd(network), rank=0)


def distribute() -> List[float]:
    """DTensor by itself: redistribution of every kind, and a product of shards."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    generator = torch.Generator().manual_seed(3)
    a, b = torch.randn(12, 8, generator=generator), torch.randn(8, 12, generator=generator)
    rows, columns = distribute_tensor(a, mesh, [Shard(0)]), distribute_tensor(b, mesh, [Shard(0)])
    turned = rows.redistribute(mesh, [Shard(1)])
    partial = turned @ columns
    return [*(partial.redistribute(mesh, [Replicate()]).to_local() - a @ b).abs().flatten().tolist()[:4],
            partial.redistribute(mesh, [Shard(0)]).sum().full_tensor().item(), turned.full_tensor().sum().item()]


def pipeline() -> List[float]:
    """A stage of the model on each rank, four microbatches, one forward and one backward in turns."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    torch.manual_seed(1)
    rank, size = dist.get_rank(), dist.get_world_size()
    layers = [nn.Sequential(nn.Linear(16, 16), nn.Tanh()) for _ in range(size)]
    stage = PipelineStage(layers[rank], rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=4, loss_fn=lambda given, wanted: (given - wanted).square().mean())
    optimizer, found = sgd(layers[rank]), []
    for step in range(STEPS):
        x, y = batch(0, step)[0], batch(1, step)[0]
        optimizer.zero_grad()
        losses: List[Any] = []
        if rank == 0:
            schedule.step(x)
        elif rank == size - 1:
            schedule.step(target=y, losses=losses)
        else:
            schedule.step()
        optimizer.step()
        found.append(everyones(torch.stack(losses).mean() if losses else torch.zeros(())))
    return found


def sync_batch_norm() -> List[float]:
    """Buffers that DDP broadcasts."""
    torch.manual_seed(1)
    network = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4)))
    return train(network, sgd(network))


MEANS: Dict[str, Callable[[], List[float]]] = {
    "ddp": ddp,
    "static graph": lambda: ddp(static_graph=True),
    "gradients as views": lambda: ddp(gradient_as_bucket_view=True),
    "unused parameters": unused,
    "no_sync": no_sync,
    "uneven inputs": uneven,
    "buffers": sync_batch_norm,
    "bf16 hook": lambda: hooked("bf16_compress_hook"),
    "fp16 hook": lambda: hooked("fp16_compress_hook"),
    "PowerSGD hook": power_sgd,
    "ZeroRedundancyOptimizer": zero,
    "FSDP2": fsdp2,
    "hybrid FSDP2": hybrid,
    "checkpoint": checkpoint,
    "tensor parallel": tensor_parallel,
    "DTensor": distribute,
    "pipeline": pipeline,
}
