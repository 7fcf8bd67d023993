#!/usr/bin/env python3
"""Pictures of a training run, drawn by gnuplot.

plot.py final METRICS KEY              prints one value of the final event
plot.py loss PNG METRICS...            training loss and test accuracy over steps: the median over the files, in a
                                       band from the minimum to the maximum
plot.py timeline PNG TRACE [OVERLAP]   the step of median length of a Chrome trace: two rows per rank, compute and
                                       communication, shaded where both run. OVERLAP: the output of
                                       gyre-train --measure-overlap; the title shows its share"""
import json
import os
import re
import statistics
import subprocess
import sys

PNG = "set terminal pngcairo size {},{} font 'DejaVu Sans,11' noenhanced\nset output '{}'\n"
LOSS, ACCURACY = "#c44e52", "#4c72b0"
COLOURS = {"forward": "#4c72b0", "backward": "#55a868", "update": "#8172b2", "wait": "#e0e0e0",
           "communication": "#dd8452", "waits for a peer": "#f6d9c6"}
SHADE = "#fff2b0"
COMPUTES = ("forward", "backward", "update")


def gnuplot(script):
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def events(path):
    with open(path) as file:
        return [json.loads(line) for line in file if line.strip()]


def final(path, key):
    for event in reversed(events(path)):
        if event.get("event") == "final":
            value = event[key]
            print(f"{value:.6g}" if isinstance(value, float) else value)
            return
    sys.exit(f"plot.py: {path} has no final event")


def series(paths, key):
    """[(step, minimum, median, maximum)] of `key` over the files, for each step that all files have."""
    runs = [{e["step"]: e[key] for e in events(path) if e.get("event") == "epoch" and e.get(key) is not None}
            for path in paths]
    common = sorted(set.intersection(*(set(run) for run in runs)))
    found = []
    for step in common:
        values = [run[step] for run in runs]
        found.append((step, min(values), statistics.median(values), max(values)))
    return found


def block(name, rows):
    return f"${name} << EOD\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows) + "EOD\n"


def curves_of(name, axes, colour, several):
    band = [f"${name} using 1:2:4 axes {axes} with filledcurves linecolor rgb '{colour}'"] if several else []
    return band + [f"${name} using 1:3 axes {axes} with lines linewidth 2 linecolor rgb '{colour}'"]


def loss(picture, paths):
    losses = series(paths, "loss")
    accuracies = [(step, *(100 * value for value in values)) for step, *values in series(paths, "accuracy")]
    if not losses:
        sys.exit(f"plot.py: {', '.join(paths)}: no step of which all files have a loss")
    several = len(paths) > 1
    title = f"median of {len(paths)} seeds, band from minimum to maximum" if several else os.path.basename(paths[0])
    third = losses[len(losses) // 3]
    script = block("loss", losses) + PNG.format(900, 500, picture) + (
        f"set title 'gyre-train: {title}'\nset xlabel 'step'\nset xrange [0:*]\nset grid\nunset key\nset logscale y\n"
        f"set ylabel 'training loss' textcolor rgb '{LOSS}'\nset ytics nomirror textcolor rgb '{LOSS}'\n"
        "set style fill transparent solid 0.25 noborder\n"
        f"set label 'training loss' at {third[0]}, first {third[3]} offset 1,0.8 textcolor rgb '{LOSS}' front\n")
    curves = curves_of("loss", "x1y1", LOSS, several)
    if accuracies:
        half, last = accuracies[len(accuracies) // 2], accuracies[-1]
        lowest = max(0, 5 * int(min(row[1] for row in accuracies) / 5))
        script += block("accuracy", accuracies) + (
            f"set y2label 'test accuracy (%)' textcolor rgb '{ACCURACY}'\nset y2tics textcolor rgb '{ACCURACY}'\n"
            f"set y2range [{lowest}:100]\nset label 'test accuracy, {last[2]:.2f} % at the end' "
            f"at {half[0]}, second {half[1]} offset 0,-1.3 textcolor rgb '{ACCURACY}' front\n")
        curves += curves_of("accuracy", "x1y2", ACCURACY, several)
    gnuplot(script + "plot " + ", ".join(curves) + "\n")


# ---- intervals: sorted lists of (start, end) that do not touch ----

def union(intervals):
    found = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > start:
            found.append((start, end))
    return found


def both(one, other):
    return union((max(a, c), min(b, d)) for a, b in one for c, d in other if max(a, c) < min(b, d))


def length(intervals):
    return sum(end - start for start, end in intervals)


def steps(spans, pid):
    """[(start, end)] of rank pid's steps: from the first forward to the first one of the next step. The last step ends
    with its last update."""
    mine = sorted((s for s in spans if s["pid"] == pid and s["cat"] == "compute"), key=lambda s: s["ts"])
    start, seen, found, updated = None, set(), [], None
    for span in mine:
        kind = span["name"].split()[0]
        if kind == "forward" and (start is None or "backward" in seen):
            if start is not None:
                found.append((start, span["ts"]))
            start, seen, updated = span["ts"], set(), None
        seen.add(kind)
        if kind == "update" and "backward" in seen:
            updated = span["ts"] + span["dur"]
    if start is not None and updated is not None:
        found.append((start, updated))
    return found


def median_step(spans, pid):
    """The step of median length. The first step, which is longer than the others, does not count if there are more."""
    found = steps(spans, pid)
    found = found[1:] if len(found) > 2 else found
    return sorted(found, key=lambda step: step[1] - step[0])[(len(found) - 1) // 2] if found else None


def transfers(spans):
    """pid -> [(posted, began, ended)] of each all_reduce. A rank posts a bucket and sees the result at a later poll,
    perhaps long after it arrived. The transfer cannot begin before the last rank has posted, and the result is complete
    when the first rank sees it. So it lasts from the last post to the first sight, over ranks that share a clock.
    The n-th all_reduce of a bucket from the end is the same one on every rank."""
    queues = {}
    for span in sorted((s for s in spans if s["cat"] == "communication"), key=lambda s: s["ts"]):
        posted_and_seen = (span["ts"], span["ts"] + span["dur"])
        queues.setdefault(span["tid"], {}).setdefault(span["pid"], []).append(posted_and_seen)
    ranks, found = {s["pid"] for s in spans}, {}
    for by_rank in queues.values():
        for pid, queue in by_rank.items():
            for back, (posted, seen) in enumerate(reversed(queue), 1):
                same = [by_rank[other][-back] for other in ranks if len(by_rank.get(other, ())) >= back]
                began, ended = max(one[0] for one in same), min(one[1] for one in same)
                if len(same) < len(ranks) or ended < began:  # some trace begins later, or the clocks differ
                    began, ended = posted, seen
                found.setdefault(pid, []).append((posted, began, ended))
    return found


def activity(spans, window):
    """pid -> {"computes", "transfers", "waits", "both": intervals within the window}."""
    inside, found = [window], {}
    moves = transfers(spans)
    for pid in sorted({s["pid"] for s in spans}):
        mine = [s for s in spans if s["pid"] == pid and s["name"].split()[0] in COMPUTES]
        computes = both(union((s["ts"], s["ts"] + s["dur"]) for s in mine), inside)
        moving = both(union((began, ended) for _, began, ended in moves.get(pid, ())), inside)
        posted = both(union((one, began) for one, began, _ in moves.get(pid, ())), inside)
        found[pid] = {"computes": computes, "transfers": moving, "waits": posted, "both": both(computes, moving)}
    return found


def overlapped(ranks):
    """The share of the transfers' time during which the same rank computes, over all ranks; None without transfers."""
    whole = sum(length(rank["transfers"]) for rank in ranks.values())
    return sum(length(rank["both"]) for rank in ranks.values()) / whole if whole else None


def measured(path):
    """"54 % of the communication is hidden (quartiles 32 to 65 %)" from gyre-train's output; empty if it has none."""
    with open(path) as file:
        found = re.search(r"^overlap: (\S+ % of the communication is hidden \([^)]*\))", file.read(), re.M)
    return found.group(1) if found else ""


def rows_of(ranks, spans, window):
    """(rectangles, tics): per rank a row of computation above a row of communication. A rectangle is (left, right, low,
    high, colour)."""
    start, end = window
    found, tics = [], []
    for place, (pid, rank) in enumerate(ranks.items()):
        top = 2.6 * (len(ranks) - place)
        tics += [f"'rank {pid}, compute ' {top}", f"'communication ' {top - 1}"]
        found += [(left, right, top - 1.5, top + 0.5, SHADE) for left, right in rank["both"]]
        for span in spans:
            kind = span["name"].split()[0]
            left, right = max(span["ts"], start), min(span["ts"] + span["dur"], end)
            if span["pid"] == pid and kind in COLOURS and left < right:
                found.append((left, right, top - 0.35, top + 0.35, COLOURS[kind]))
        for what, colour in (("waits", COLOURS["waits for a peer"]), ("transfers", COLOURS["communication"])):
            found += [(left, right, top - 1.35, top - 0.65, colour) for left, right in rank[what]]
    return found, tics


def title_of(ranks, overlap):
    share = overlapped(ranks)
    shaded = ("no communication in this step" if share is None else
              f"shaded: compute and communication overlap, {100 * share:.0f} % of this step's communication")
    whole = measured(overlap) if overlap else ""
    return f"{whole}\\n{shaded}" if whole else shaded


def timeline(picture, path, overlap=None):
    with open(path) as file:
        trace = json.load(file)
    spans = [e for e in (trace["traceEvents"] if isinstance(trace, dict) else trace) if e.get("ph") == "X"]
    window = median_step(spans, 0)
    if window is None:
        sys.exit(f"plot.py: {path} holds no complete step")
    start, end = window
    ranks = activity(spans, window)
    rectangles, tics = rows_of(ranks, spans, window)
    script = PNG.format(1100, 170 + 75 * len(ranks), picture)
    for number, (left, right, low, high, colour) in enumerate(rectangles, 1):
        left, right = (left - start) / 1e3, (right - start) / 1e3
        script += (f"set object {number} rectangle from {left:.6f},{low} to {right:.6f},{high} "
                   f"fillcolor rgb '{colour}' fillstyle solid 1.0 noborder{' back' if colour == SHADE else ''}\n")
    keys = ", ".join(f"NaN with boxes fillstyle solid 1.0 linecolor rgb '{colour}' title '{name}'"
                     for name, colour in {**COLOURS, "overlap": SHADE}.items())
    gnuplot(script + f"set title \"{title_of(ranks, overlap)}\"\nset key outside right\n"
            f"set xlabel 'milliseconds of the step of median length ({(end - start) / 1e3:.3g} ms)'\n"
            f"set ytics ({', '.join(tics)}) scale 0\nset xrange [0:{(end - start) / 1e3:.6f}]\n"
            f"set yrange [0.9:{2.6 * len(ranks) + 0.7}]\nplot {keys}\n")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    verb, first, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    if verb == "final":
        final(first, rest[0])
    elif verb == "loss":
        loss(first, rest)
    elif verb == "timeline":
        timeline(first, *rest[:2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
