#!/usr/bin/env python3
"""The table of perf/rdma.sh: medians over the rounds of the figures that it has kept, and the ratios of the medians.

    perf/rdma_table.py FILE ...     lines "WHO latency|bandwidth|all_reduce BYTES FIGURE"
"""
import collections
import statistics
import sys

CONTENDERS = ("own", "device_tools", "openmpi", "tcp")
UNITS = {"latency": "us", "bandwidth": "MB/s", "all_reduce": "us"}


def read(files: list[str]) -> dict[tuple[str, str, int], list[float]]:
    """Figures by contender, kind and bytes."""
    figures: dict[tuple[str, str, int], list[float]] = collections.defaultdict(list)
    for name in files:
        with open(name, encoding="utf-8") as file:
            for words in map(str.split, file):
                if len(words) == 4 and words[0] in CONTENDERS and words[1] in UNITS:
                    figures[words[0], words[1], int(words[2])].append(float(words[3]))
    return figures


def ratio(what: str, mine: float | None, other: float | None) -> str:
    """How many times as good gyre is."""
    if not mine or not other:
        return "-"
    return f"{mine / other if what == 'bandwidth' else other / mine:.2f}"


def main() -> None:
    figures = read(sys.argv[1:])
    medians = {key: statistics.median(values) for key, values in figures.items()}
    print(f"{'what':<10} {'':<5}{'bytes':>8}{'gyre':>11}{'device':>11}{'Open MPI':>11}{'TCP':>11}    gyre is so many times as good as: device, Open MPI, TCP; rounds")
    for what, unit in UNITS.items():
        for size in sorted({key[2] for key in medians if key[1] == what}):
            row = [medians.get((who, what, size)) for who in CONTENDERS]
            shown = "".join(f"{'-' if value is None else f'{value:.2f}':>11}" for value in row)
            ratios = "  ".join(f"{ratio(what, row[0], other):>5}" for other in row[1:])
            print(f"{what:<10} {unit:<5}{size:>8}{shown}    {ratios}  {len(figures.get(('own', what, size), []))}")
    if not any(key[0] == "own" for key in medians):
        sys.exit("rdma_table.py: gyre gave no figure")


if __name__ == "__main__":
    main()
