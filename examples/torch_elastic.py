"""Training with torch's DistributedDataParallel over gyre that goes on when a process is lost:

    torchrun --standalone --nproc-per-node 2 --max-restarts 3 torch_elastic.py run.pt
    torchrun --nnodes 1:4 --nproc-per-node 1 --max-restarts 3 --rdzv-backend c10d --rdzv-endpoint HOST:29500 \\
        --rdzv-id 1 torch_elastic.py /shared/run.pt

A rank that dies is named by all other ranks within a second. They raise torch's DistBackendError, torchrun starts all
ranks again, fewer or more of them if --nnodes has a range, and they go on from the last checkpoint, run.pt.

A step has 64 samples, whatever the number of ranks. So the losses are those of a run that was not disturbed: bit for
bit with as many ranks as before, up to rounding with fewer or more."""
import argparse
import os
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.parallel import DistributedDataParallel

import gyre.torch  # registers the backend; torch 2.15 finds that of an installed package by itself

SAMPLES = 64


def loss_of(model: nn.Module, step: int) -> torch.Tensor:
    """Of this rank's share of the step's samples."""
    samples = torch.randn(SAMPLES, 32, generator=torch.Generator().manual_seed(step))
    mine = samples[dist.get_rank() :: dist.get_world_size()]
    loss: torch.Tensor = (model(mine) - mine.square().mean(1, keepdim=True)).square().mean()
    return loss


def save(path: str, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """The file is whole at any time: a process may be killed here, too."""
    torch.save({"step": step, "model": model.state_dict(), "optimizer": optimizer.state_dict()}, path + ".new")
    os.replace(path + ".new", path)


def load(path: str, model: nn.Module, optimizer: torch.optim.Optimizer) -> int:
    """Steps that the checkpoint has done; 0 without one. All ranks read it before one writes the next."""
    step = 0
    if os.path.exists(path):
        state: Any = torch.load(path, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step = state["step"]
    dist.barrier()
    return step


@record  # torchrun's report has the error message
def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("checkpoint")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--every", type=int, default=50, help="steps between checkpoints")
    arguments = parser.parse_args()
    dist.init_process_group("gyre")
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.Tanh(), nn.Linear(64, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
    begin = load(arguments.checkpoint, model.module, optimizer)
    if dist.get_rank() == 0:
        attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        print(f"attempt {attempt}: {dist.get_world_size()} ranks go on from step {begin}", flush=True)

    for step in range(begin, arguments.steps):
        optimizer.zero_grad()
        loss_of(model, step).backward()
        optimizer.step()
        if (step + 1) % arguments.every == 0 and dist.get_rank() == 0:
            save(arguments.checkpoint, step + 1, model.module, optimizer)
    with torch.no_grad():
        loss = loss_of(model, arguments.steps)
    dist.all_reduce(loss, op=dist.ReduceOp.AVG)
    if dist.get_rank() == 0:
        print(f"step {arguments.steps}: loss {loss.item()}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
