#!/usr/bin/env python3
"""The share of a core that plain TCP takes: scripts/hosts 2 RATE DELAY perf/train/taken_by_tcp.py FILE

One process in each of two hosts counts in a loop, with nothing else to do and then while iperf3 sends both ways as fast as
the links carry, on the same core. Who counts less has lost it to TCP, shapers and the switch between processes. Each appends
its share, 0 to 1, to FILE."""
from __future__ import annotations

import os
import subprocess
import sys
import time

SECONDS = 2.0
PORT = "5299"


def count(seconds: float) -> float:
    """Turns of a loop per second."""
    turns, start = 0, time.monotonic()
    while time.monotonic() < start + seconds:
        turns += 1
    return turns / (time.monotonic() - start)


def main() -> None:
    words = ["iperf3", "--port", PORT]
    if int(os.environ["RANK"]) == 0:
        peer = subprocess.Popen([*words, "--server", "--one-off"], stdout=subprocess.DEVNULL)
        alone = count(SECONDS)
    else:
        alone = count(SECONDS)
        time.sleep(0.5)  # the server is there
        peer = subprocess.Popen([*words, "--client", os.environ["MASTER_ADDR"], "--bidir", "--time", str(3 * SECONDS)],
                                stdout=subprocess.DEVNULL)
    time.sleep(1.5)  # both are sending
    beside = count(SECONDS)
    if peer.wait(timeout=30) != 0:
        sys.exit("taken_by_tcp: iperf3 failed")
    with open(sys.argv[1], "a", encoding="utf-8") as file:
        file.write(f"{1 - beside / alone:.4f}\n")


main()
