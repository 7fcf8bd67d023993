#!/usr/bin/env python3
"""The clock of perf/train/run, which simulates a pipeline with more stages than there are cores, does in each stage
what the strategy does, in its order: pipeline_order_test.py GYRE_RUN NN_PIPELINE_ORDER PERF_TRAIN_RUN"""
import importlib.machinery
import importlib.util
import subprocess
import sys

CASES = [(2, 1), (2, 6), (3, 5), (4, 2), (4, 3), (4, 4), (4, 9)]  # stages, micro-batches


def load(path):
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("train_run", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("train_run", loader))
    sys.modules["train_run"] = module
    loader.exec_module(module)
    return module


def main():
    gyre_run, program, path = sys.argv[1:]
    simulate, problems = load(path).simulate, 0
    for stages, micro in CASES:
        done = subprocess.run([gyre_run, "-n", str(stages), program, str(micro)], capture_output=True, text=True, timeout=60)
        simulated = ["".join(kind for kind, *_ in stage) for stage in simulate([1.0] * stages, micro)]
        if done.returncode != 0 or done.stdout.split() != simulated:
            problems += 1
            print(f"{stages} stages, {micro} micro-batches: the strategy does {done.stdout.split()}, the clock {simulated} {done.stderr}")
    print(f"{len(CASES) - problems} of {len(CASES)} pipelines as the clock has them")
    return 1 if problems else 0


sys.exit(main())
