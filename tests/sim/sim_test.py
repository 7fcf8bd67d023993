#!/usr/bin/env python3
"""gyre-sim against what is known: transfers that can be worked out by hand, its closed form against its simulation, and
refusals.

sim_test.py GYRE_SIM"""
import json
import math
import subprocess
import sys

SIM = sys.argv[1]
CLUSTER = ["bandwidth=1G", "latency=10u", "send_overhead=2u", "receive_overhead=3u", "copy=4G", "reduce=8G", "burst=0"]
ENGINES = ("simgrid", "formula")


def run(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([SIM, *arguments], capture_output=True, text=True, timeout=200)


def predict(collective: str, size: int, hosts: int, engine: str, settings: list[str] | None = None) -> dict[str, float]:
    given = [word for setting in CLUSTER + (settings or []) for word in ("--set", setting)]
    done = run([collective, *given, "--hosts", str(hosts), "-b", str(size), "-e", str(size), "--engine", engine,
                "--json", "/dev/stderr"])
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stderr.splitlines()]
    assert all(row["hosts"] == hosts and row["engine"] == engine for row in rows), rows
    assert sum(row["best"] for row in rows) == 1
    return {row["algorithm"]: row["time_us"] for row in rows}


def near(value: float, expected: float, tolerance: float, what: str) -> None:
    assert abs(value - expected) <= tolerance * expected, f"{what}: {value} instead of {expected}"


def by_hand() -> None:
    """One small message; one message of 8,000 bytes; with burst and inside a host."""
    near(predict("broadcast", 4, 2, "simgrid")["ring"], 15, 0.001, "one small message")
    near(predict("broadcast", 8000, 2, "simgrid")["ring"], 15 + 8 + 2 * 2, 0.001, "8,000 bytes")
    near(predict("broadcast", 8000, 2, "simgrid", ["burst=8000"])["ring"], 15 + 2 * 2, 0.001, "8,000 bytes in a burst")
    near(predict("broadcast", 8000, 1, "simgrid", ["ranks_per_host=2", "local_latency=1u"])["ring"], 5 + 1 + 2 * 2, 0.001,
         "8,000 bytes inside a host")
    # log2 8 rounds: the own half is added to each that comes
    near(predict("all_reduce", 4000, 8, "simgrid")["recursive_doubling"], 3 * (15 + 4 + 2 * 1 + 0.5), 0.03, "three rounds")
    # the link of a ring never rests: 2·(N−1)/N of the vector at 1 GB/s
    near(predict("all_reduce", 64 << 20, 4, "simgrid")["ring"], 1.5 * (64 << 20) / 1e3, 0.02, "a ring of 64 MiB")
    near(predict("all_reduce", 64 << 20, 4, "simgrid", ["burst=131072"])["ring"], 1.5 * (64 << 20) / 1e3, 0.02,
         "a burst is for free once, not again and again")


def forms() -> None:
    logs = []
    for collective in ("all_reduce", "reduce_scatter", "all_gather", "broadcast"):
        for hosts in (4, 13, 32):
            for size in (65536, 1 << 20, 16 << 20):
                simulated, closed = (predict(collective, size, hosts, engine) for engine in ENGINES)
                assert closed, collective
                for algorithm, time in closed.items():
                    log = abs(math.log(time / simulated[algorithm]))
                    assert log < math.log(1.3), (collective, hosts, size, algorithm, time, simulated[algorithm])
                    logs.append(log)
    mean = math.exp(sum(logs) / len(logs)) - 1
    print(f"closed form against simulation: {len(logs)} cases, geometric mean error {100 * mean:.1f} %, worst "
          f"{100 * (math.exp(max(logs)) - 1):.0f} %")
    assert mean < 0.06


def several_per_host() -> None:
    """Trees in which a lane goes round several peers: what one grants in advance must last until the lane is back."""
    for hosts, local in ((2, 3), (4, 4)):
        for time in predict("broadcast", 1 << 20, hosts, "simgrid", [f"ranks_per_host={local}", "local_latency=1u"]).values():
            assert 0 < time < math.inf, (hosts, local, time)


def refusals() -> None:
    for arguments, words in (([], "which collective"), (["all_reduce", "--set", "speed=3"], 'no "speed"'),
                             (["all_reduce", "--set", "latency=fast"], "no number"), (["all_reduce", "--hosts", "4,0"], "--hosts: hosts"),
                             (["all_reduce", "--cluster", "/nowhere"], "cannot be read: No such file"),
                             (["broadcast", "--hosts", "4,2", "-r", "2"], "no rank 2"),
                             (["all_reduce", "--hosts", "2.5"], "no whole number"),
                             (["all_reduce", "--set", "ranks_per_host=1024", "--hosts", "1k"], "are more than 1000000"),
                             (["all_reduce", "--algorithm", "square"], 'no algorithm "square"'),
                             (["all_to_all", "--hosts", "100000", "-e", "8"], "no closed form")):
        done = run(arguments)
        assert done.returncode == 2 and words in done.stderr, (arguments, done.returncode, done.stderr)
        assert words in ("no algorithm \"square\"", "no closed form") or done.stdout == "", "output beside a refusal: " + done.stdout


def full_disk() -> None:
    """A table that is cut short is no success."""
    with open("/dev/full", "w") as full:
        for more, name in (([], "the output"), (["--json", "/dev/full"], "/dev/full")):
            done = subprocess.run([SIM, "all_reduce", "--hosts", "2", "-b", "8", "-e", "8", *more], stderr=subprocess.PIPE, text=True,
                                  stdout=subprocess.DEVNULL if more else full, timeout=200)
            assert done.returncode == 1 and f"gyre-sim: cannot write {name}" in done.stderr, (done.returncode, done.stderr)


by_hand()
forms()
several_per_host()
refusals()
full_disk()
