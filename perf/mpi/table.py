#!/usr/bin/env python3
"""Tables of the lines of imb.sh: the time of the MPI library alone over the time with gyre, of medians over the
launches.

    perf/mpi/table.py [FILE...]

A time of 0.00 us, less than IMB prints, counts as 0.005. The geometric mean is over all sizes, 0 bytes included.
Exit status 1: a goal is missed."""
import collections
import fileinput
import statistics
import sys

GOALS = {"openmpi": {"Allreduce": 3.0}, "mpich": {"Allreduce": 4.5}}  # of geometric means; the other calls:
GOAL = {"openmpi": 1.5, "mpich": 2.0}
LEAST = 0.97  # of every size
NAMES = {"openmpi": "Open MPI", "mpich": "MPICH"}


def read_times():
    """(library, call, bytes) -> how -> the launches' microseconds."""
    times = collections.defaultdict(lambda: collections.defaultdict(list))
    for line in fileinput.input():
        library, how, _launch, call, size, us = line.split()
        times[library, call, int(size)][how].append(max(float(us), 0.005))
    return times


def medians_of(times):
    both = {key: by_how for key, by_how in times.items() if len(by_how) == 2}
    return {key: {how: statistics.median(values) for how, values in by_how.items()} for key, by_how in both.items()}


def print_means(library, calls, medians):
    """Returns whether a goal is missed."""
    missed = False
    print("| call | geometric mean | wanted | lowest size | wanted |\n|---|---|---|---|---|")
    for call in calls:
        quotients = {size: at["alone"] / at["gyre"] for (lib, name, size), at in medians.items() if (lib, name) == (library, call)}
        mean = statistics.geometric_mean(quotients.values())
        lowest = min(quotients, key=quotients.get)
        goal = GOALS[library].get(call, GOAL[library])
        missed = missed or mean < goal or quotients[lowest] < LEAST
        print(f"| {call} | {mean:.2f} | {goal} | {quotients[lowest]:.2f} at {lowest} | {LEAST} |")
    return missed


def print_sizes(library, calls, medians):
    print("\nEach size: the quotient, and microseconds of the MPI library alone and with gyre.\n")
    print("| bytes | " + " | ".join(calls) + " |")
    print("|---" * (len(calls) + 1) + "|")
    for size in sorted({key[2] for key in medians if key[0] == library}):
        cells = [medians.get((library, call, size)) for call in calls]
        texts = [f"{at['alone'] / at['gyre']:.2f} ({at['alone']:.2f}, {at['gyre']:.2f})" if at else "" for at in cells]
        print(f"| {size} | " + " | ".join(texts) + " |")


def main():
    times = read_times()
    medians = medians_of(times)
    missed = False
    for library in [name for name in NAMES if any(key[0] == name for key in medians)]:
        calls = list(dict.fromkeys(key[1] for key in medians if key[0] == library))
        launches = max(len(times[key][how]) for key in medians if key[0] == library for how in ("alone", "gyre"))
        print(f"\n## {NAMES[library]}, {launches} launches\n")
        missed = print_means(library, calls, medians) or missed
        print_sizes(library, calls, medians)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
