#!/usr/bin/env python3
"""The model cnn against PyTorch, in float64: its answers from a checkpoint, and one step of plain SGD on all training
samples, which gyre-train makes on two ranks. Every parameter and every running statistic is PyTorch's within 1e-9.

    cnn_torch_test.py GYRE-RUN GYRE-TRAIN digits.csv.gz"""
from __future__ import annotations

import csv
import gzip
import os
import subprocess
import sys
import tempfile

import checkpoint_reader
import torch
from torch import nn

RATE = 0.1
OPTIONS = ["--quiet", "--model", "cnn", "--channels", "4,6", "--hidden", "12", "--dtype", "float64", "--batch", "2000", "--epochs", "9",
           "--optimizer", "sgd", "--lr", str(RATE), "--schedule", "constant"]


class Flatten(nn.Module):
    """In the order of gyre: row, column, channel."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.permute(0, 2, 3, 1).reshape(x.shape[0], -1)


def build() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2),
        Flatten(), nn.Linear(24, 12), nn.ReLU(), nn.Linear(12, 10)).double()  # fmt: skip


def tensors(net: nn.Sequential) -> dict[str, torch.Tensor]:
    """Those of a checkpoint, by its names: the modules that have some are numbered."""
    found = {}
    owners = [module for module in net if list(module.parameters())]
    for number, module in enumerate(owners):
        for name in ("weight", "bias", "running_mean", "running_var"):
            value = getattr(module, name, None)
            if value is not None:
                found[f"{number}.{name}"] = value.data
    return found


def shaped(value: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """From [outputs × row·column·channel] to PyTorch's [outputs, channel, row, column]."""
    if like.dim() != 4:
        return value.reshape(like.shape)
    outputs, channels, height, width = like.shape
    return value.reshape(outputs, height, width, channels).permute(0, 3, 1, 2)


def read(path: str, net: nn.Sequential) -> dict[str, torch.Tensor]:
    values, _, _ = checkpoint_reader.read(path)
    mine = tensors(net)
    assert set(mine) == {name for name in values if name[0].isdigit()}, (sorted(mine), sorted(values))
    return {name: shaped(torch.tensor(values[name], dtype=torch.float64), like) for name, like in mine.items()}


def train(*words: str) -> None:
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=100)


def main() -> None:
    run, gyre_train, digits = sys.argv[1:4]
    with gzip.open(digits, "rt") as file:
        rows = [[float(cell) for cell in row] for row in csv.reader(file) if row[0].replace(".", "").isdigit()]
    x = torch.tensor([row[:-1] for row in rows], dtype=torch.float64).reshape(-1, 1, 8, 8) / 16
    labels = torch.tensor([int(row[-1]) for row in rows])
    with tempfile.TemporaryDirectory() as folder:
        first, second, answers = (os.path.join(folder, name) for name in ("first", "second", "answers"))
        train(gyre_train, *OPTIONS, "--steps", "3", "--checkpoint", first, "--predict", answers)
        train(run, "-n", "2", gyre_train, *OPTIONS, "--steps", "4", "--resume", first, "--checkpoint", second)
        net = build()
        for name, value in read(first, net).items():
            tensors(net)[name].copy_(value)
        with open(answers, newline="") as file:
            told = list(csv.DictReader(file))
        tested = [int(line["sample"]) for line in told]
        with torch.no_grad():
            shares = torch.softmax(net.eval()(x[tested]), 1)
        for line, share in zip(told, shares):
            assert abs(float(share[int(line["answer"])]) - float(line["probability"])) < 1e-5, line
        kept = torch.ones(len(rows), dtype=torch.bool)
        kept[tested] = False
        net.train()
        nn.functional.cross_entropy(net(x[kept]), labels[kept]).backward()
        torch.optim.SGD(net.parameters(), lr=RATE).step()
        largest = 0.0
        for name, value in read(second, net).items():
            apart = float((tensors(net)[name] - value).abs().max())
            assert apart < 1e-9, f"{name} differs by {apart}"
            largest = max(largest, apart)
    print(f"{len(told)} answers, and {len(tensors(net))} tensors within {largest:.3g}")


if __name__ == "__main__":
    main()
