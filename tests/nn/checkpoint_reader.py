#!/usr/bin/env python3
"""Opens a checkpoint of gyre-train by the published description of safetensors alone, and computes with it what the
model answers: an MLP of one hidden layer of ReLUs, on the built-in digits. The answers must be those of
gyre-train --predict.

    checkpoint_reader.py CHECKPOINT PREDICTIONS digits.csv.gz

The format: 8 bytes, little-endian: N; N bytes of JSON, which maps each name to its type, shape and place; the
data. Places are in order, without holes, and end with the file. Shares no code with nn/io/safetensors.c, and
needs no package."""
from __future__ import annotations

import csv
import gzip
import json
import math
import struct
import sys

SIZES = {"F32": ("f", 4), "F64": ("d", 8)}


def read(path: str) -> tuple[dict[str, list[float]], dict[str, list[int]], dict[str, str]]:
    with open(path, "rb") as file:
        raw = file.read()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    metadata = header.pop("__metadata__")
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in metadata.items()), "metadata is text"
    data, values, shapes, end = raw[8 + length :], {}, {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        letter, size = SIZES[entry["dtype"]]
        begin, stop = entry["data_offsets"]
        assert begin == end, f"{name} begins at {begin}, not {end}"
        count = math.prod(entry["shape"])
        assert stop - begin == count * size, f"{name} has {stop - begin} bytes"
        values[name] = list(struct.unpack(f"<{count}{letter}", data[begin:stop]))
        shapes[name] = entry["shape"]
        end = stop
    assert end == len(data), f"{len(data) - end} bytes after the last tensor"
    return values, shapes, metadata


def dense(weight: list[float], bias: list[float], x: list[float]) -> list[float]:
    width = len(x)
    return [sum(w * v for w, v in zip(weight[row * width : (row + 1) * width], x)) + b for row, b in enumerate(bias)]


def main() -> None:
    values, shapes, metadata = read(sys.argv[1])
    assert metadata["format"] == "gyre-nn 1" and int(metadata["step"]) > 0, metadata
    assert shapes["0.weight"][1] == 64 and shapes["1.weight"][0] == 10, shapes
    with gzip.open(sys.argv[3], "rt") as file:
        digits = [[float(cell) for cell in row] for row in csv.reader(file) if row[0].replace(".", "").isdigit()]
    checked = 0
    with open(sys.argv[2], newline="") as file:
        for line in list(csv.DictReader(file))[:100]:
            x = [pixel / 16 for pixel in digits[int(line["sample"])][:-1]]
            assert int(digits[int(line["sample"])][-1]) == int(line["label"])
            hidden = [max(0.0, v) for v in dense(values["0.weight"], values["0.bias"], x)]
            outputs = dense(values["1.weight"], values["1.bias"], hidden)
            best = max(range(10), key=lambda c: outputs[c])
            share = 1 / sum(math.exp(v - outputs[best]) for v in outputs)
            assert best == int(line["answer"]), (line, outputs)
            assert abs(share - float(line["probability"])) < 1e-4, (line, share)
            checked += 1
    assert checked == 100
    print(f"{len(values)} tensors; {checked} answers are those of gyre-train")


if __name__ == "__main__":
    main()
