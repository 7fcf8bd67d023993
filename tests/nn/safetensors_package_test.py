#!/usr/bin/env python3
"""The package safetensors opens checkpoints of gyre-train: of each model on one rank, and of strategies whose state
is in the file on two. Names, types, shapes, metadata and every value are what checkpoint_reader.py finds by the
format's description alone.

    safetensors_package_test.py GYRE-RUN GYRE-TRAIN

The package is not in Debian 12: pip install --no-deps --target build/python safetensors, and
PYTHONPATH=build/python."""
from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import checkpoint_reader
import safetensors

MODELS = {
    "mlp": [],
    "autoencoder": ["--model", "autoencoder", "--dtype", "float64"],
    "lstm": ["--model", "lstm", "--data", "text:TEXT", "--context", "16"],
    "transformer": ["--model", "transformer", "--data", "text:TEXT", "--context", "16", "--optimizer", "momentum"],
    "recommender": ["--model", "recommender", "--data", "sessions"],
}
SHAPES_OF_MLP = {"0.weight": [128, 64], "0.bias": [128], "1.weight": [10, 128], "1.bias": [10]}
STRATEGIES = ["zero", "compressed:by=topk", "average:every=4,delay=2", "admm", "async:wait=yes"]


def compare(path: str) -> int:
    """What the package reads is what the reader by the description reads."""
    values, shapes, metadata = checkpoint_reader.read(path)
    with safetensors.safe_open(path, framework="numpy") as file:
        assert file.metadata() == metadata, (file.metadata(), metadata)
        assert sorted(file.keys()) == sorted(values), (file.keys(), sorted(values))
        for name in file.keys():
            array = file.get_tensor(name)
            assert list(array.shape) == shapes[name], (name, array.shape, shapes[name])
            assert array.ravel().tolist() == values[name], name
    return len(values)


def main() -> None:
    run, train = sys.argv[1:3]
    with tempfile.TemporaryDirectory() as folder:
        text, path = os.path.join(folder, "text"), os.path.join(folder, "checkpoint")
        with open(text, "w", encoding="ascii") as file:
            file.write("the quick brown fox jumps over the lazy dog. " * 60)
        for name, options in MODELS.items():
            words = [train, "--quiet", "--steps", "3", "--checkpoint", path, *(word.replace("TEXT", text) for word in options)]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=60)
            print(f"{name}: {compare(path)} tensors")
            if name == "mlp":
                with safetensors.safe_open(path, framework="numpy") as opened:
                    assert {key: list(opened.get_tensor(key).shape) for key in SHAPES_OF_MLP} == SHAPES_OF_MLP
        for strategy in STRATEGIES:
            words = [run, "-n", "2", train, "--quiet", "--steps", "9", "--hidden", "16", "--strategy", strategy, "--checkpoint", path]
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL, timeout=60)
            print(f"{strategy}: {compare(path)} tensors")


if __name__ == "__main__":
    main()
