#!/usr/bin/env python3
"""One rank of PyTorch with DistributedDataParallel over Gloo, training what gyre-train trains: the weights of a
checkpoint, the same samples in the same order, the same model, optimiser and rate. Rank 0 prints one JSON object:
samples per second of training, and the loss of each epoch, which must be gyre's.

    RANK=… WORLD_SIZE=… MASTER_ADDR=… MASTER_PORT=… torch_ddp.py NAME CHECKPOINT TEXT digits.csv.gz

NAME is a model of models.json. Needs Debian's python3-torch, or another; perf/train/run starts it."""
from __future__ import annotations

import csv
import gzip
import json
import math
import struct
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn

HERE = Path(__file__).resolve().parent
MASK = (1 << 64) - 1


class SplitMix:
    """splitmix64, as nn/base/random.h has it."""

    def __init__(self, state: int) -> None:
        self.state = state & MASK

    def next(self) -> int:
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, bound: int) -> int:
        refuse = ((1 << 64) - bound) % bound
        value = self.next()
        while value < refuse:
            value = self.next()
        return value % bound

    def shuffle(self, items: list[int]) -> list[int]:
        for i in range(len(items), 1, -1):
            j = self.below(i)
            items[i - 1], items[j] = items[j], items[i - 1]
        return items


def order(seed: int, epoch: int, count: int) -> list[int]:
    return SplitMix(SplitMix(seed).next() ^ epoch).shuffle(list(range(count)))


def digits(path: str) -> tuple[torch.Tensor, torch.Tensor]:
    """The training samples of gyre's fixed stratified split."""
    with gzip.open(path, "rt") as file:
        rows = [[float(cell) for cell in row] for row in csv.reader(file) if row[0].replace(".", "").isdigit()]
    train: list[int] = []
    for label in range(10):
        members = SplitMix(0x67797265 + label).shuffle([i for i, row in enumerate(rows) if int(row[-1]) == label])
        train += members[(len(members) * 2 + 5) // 10 :]
    train.sort()
    x = torch.tensor([[v / 16 for v in rows[i][:-1]] for i in train])
    return x, torch.tensor([int(rows[i][-1]) for i in train])


def text(path: str, steps: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    data = Path(path).read_bytes()
    classes = {byte: i for i, byte in enumerate(sorted(set(data)))}
    symbols = torch.tensor([classes[byte] for byte in data])
    samples = (len(data) - 1) // steps
    train = samples - (samples + 9) // 10
    x = symbols[: samples * steps].view(samples, steps)[:train]
    y = symbols[1 : samples * steps + 1].view(samples, steps)[:train]
    return x, y, len(classes)


class Mlp(nn.Module):
    def __init__(self, sizes: list[int], code: int = -1) -> None:
        super().__init__()
        self.code = code
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(sizes, sizes[1:]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i, layer in enumerate(self.layers):
            x = layer(x)
            if i + 1 < len(self.layers) and i != self.code:
                x = F.relu(x)
        return x

    def targets(self) -> list[tuple[str, nn.Parameter]]:
        return [(f"{i}.{k}", getattr(layer, k)) for i, layer in enumerate(self.layers) for k in ("weight", "bias")]


class Lstm(nn.Module):
    def __init__(self, classes: int, width: int, hidden: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(classes, width)
        self.lstm = nn.LSTM(width, hidden, batch_first=True)
        self.lstm.bias_hh_l0.requires_grad_(False).zero_()  # gyre's has one bias
        self.out = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.lstm(self.embed(x))[0])

    def targets(self) -> list[tuple[str, nn.Parameter]]:
        return [("0.weight", self.embed.weight), ("1.weight_input", self.lstm.weight_ih_l0),
                ("1.weight_hidden", self.lstm.weight_hh_l0), ("1.bias", self.lstm.bias_ih_l0),
                ("2.weight", self.out.weight), ("2.bias", self.out.bias)]


class Block(nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)
        scores = scores.masked_fill(torch.ones(t, t, dtype=torch.bool).triu(1), -math.inf)
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    def __init__(self, classes: int, steps: int, width: int, heads: int, blocks: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(classes, width)
        self.place = nn.Parameter(torch.zeros(steps, width))
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.embed(x) + self.place
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))

    def targets(self) -> list[tuple[str, nn.Parameter]]:
        found = [("0.weight", self.embed.weight), ("1.weight", self.place)]
        n = 2
        for block in self.blocks:
            for parts in (((block.norm1, ""),), ((block.qkv, ""), (block.out, "_out")), ((block.norm2, ""),), ((block.up, ""),), ((block.down, ""),)):
                for layer, end in parts:
                    found += [(f"{n}.weight{end}", layer.weight), (f"{n}.bias{end}", layer.bias)]
                n += 1
        for layer in (self.norm, self.out):
            found += [(f"{n}.weight", layer.weight), (f"{n}.bias", layer.bias)]
            n += 1
        return found


def load(path: str, targets: list[tuple[str, nn.Parameter]]) -> None:
    raw = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8 : 8 + length]), raw[8 + length :]
    names = {name for name in header if name[0].isdigit()}
    assert names == {name for name, _ in targets}, names ^ {name for name, _ in targets}
    for name, parameter in targets:
        begin, end = header[name]["data_offsets"]
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=torch.float32)
        with torch.no_grad():
            parameter.copy_(values.view(parameter.shape))


def main() -> None:
    name, checkpoint, text_path, digits_path = sys.argv[1:5]
    spec = json.loads((HERE / "models.json").read_text())
    how, seed = spec["models"][name], spec["seed"]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    model: nn.Module
    if how["data"] == "digits":
        x, y = digits(digits_path)
        hidden = how["hidden"]
        model = Mlp([64, *hidden, 10]) if name == "mlp" else Mlp([64, *hidden, *hidden[-2::-1], 64], len(hidden) - 1)
    else:
        x, y, classes = text(text_path, how["context"])
        model = Lstm(classes, how["width"], how["hidden"][0]) if name == "lstm" else \
            Transformer(classes, how["context"], how["width"], how["heads"], how["blocks"])
    load(checkpoint, model.targets())
    ddp = nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=how["lr"])
    count, batch, busy, losses, seconds, step = len(x), how["batch"], 0.0, [], [], 0
    total = how["epochs"] * -(-count // batch)
    for epoch in range(how["epochs"]):
        rows, cost = order(seed, epoch, count), torch.zeros(1, dtype=torch.float64)
        start = time.perf_counter()
        for first in range(0, count, batch):
            piece = rows[first : first + batch]
            share, rest = divmod(len(piece), ranks)
            begin = rank * share + min(rank, rest)
            mine = torch.tensor(piece[begin : begin + share + (rank < rest)])
            for group in optimizer.param_groups:  # gyre's cosine
                group["lr"] = how["lr"] * 0.5 * (1 + math.cos(math.pi * step / total))
            out = ddp(x[mine])
            if name == "autoencoder":
                total_cost, per_row = (out - x[mine]).square().mean(1).sum(), 1
            else:
                total_cost, per_row = F.cross_entropy(out.flatten(0, -2), y[mine].flatten(), reduction="sum"), y[0].numel()
            optimizer.zero_grad()
            (total_cost * ranks / (len(piece) * per_row)).backward()  # DDP takes the mean over ranks
            optimizer.step()
            cost += total_cost.detach().double()
            step += 1
        busy += time.perf_counter() - start
        seconds.append(busy)
        dist.all_reduce(cost)
        losses.append(float(cost) / (count * per_row))
    if rank == 0:
        print(json.dumps({"torch": torch.__version__, "samples_per_second": count * how["epochs"] / busy, "losses": losses, "seconds": seconds}))


main()
