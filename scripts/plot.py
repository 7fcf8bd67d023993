#!/usr/bin/env python3
"""Pictures of a training run, drawn by gnuplot.

plot.py final METRICS KEY              prints one value of the final event
plot.py loss PNG METRICS...            training loss over steps, one curve per file
plot.py timeline PNG TRACE             the last training step of a Chrome trace: a row per rank and per bucket"""
import json
import os
import subprocess
import sys

PNG = "set terminal pngcairo size {},{} font 'DejaVu Sans,11' noenhanced\nset output '{}'\n"


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


def loss(picture, paths):
    blocks, curves = [], []
    for path in paths:
        points = [(e["step"], e["loss"]) for e in events(path) if e.get("event") != "final" and "loss" in e and "step" in e]
        if not points:
            sys.exit(f"plot.py: {path} has no losses")
        name = "$d%d" % len(blocks)
        blocks.append(name + " << EOD\n" + "\n".join(f"{s} {l}" for s, l in points) + "\nEOD\n")
        title = os.path.basename(path).rsplit(".", 1)[0]
        curves.append(f"{name} with linespoints pointsize 0.5 title '{title}'")
    gnuplot("".join(blocks) + PNG.format(900, 500, picture) + "set title 'gyre-train: training loss'\nset xlabel 'step'\n"
            "set ylabel 'loss'\nset logscale y\nset grid\nplot " + ", ".join(curves) + "\n")


def last_step(spans, pid):
    """Start and end of rank pid's last complete step: from its first forward to the first one after its backward. Updates may
    stand between two parts of the next step's forward."""
    mine = sorted((s for s in spans if s["pid"] == pid and s["cat"] == "compute"), key=lambda s: s["ts"])
    start, seen, found, end = None, set(), None, 0
    for span in mine:
        kind = span["name"].split()[0]
        if kind == "forward" and (start is None or "backward" in seen):
            found = (start, end) if start is not None else found
            start, seen = span["ts"], set()
        seen.add(kind)
        end = span["ts"] + span["dur"]
        if start is not None and kind == "update" and "backward" in seen:
            found = (start, end)
    return found


def timeline(picture, path):
    with open(path) as file:
        trace = json.load(file)
    spans = [e for e in (trace["traceEvents"] if isinstance(trace, dict) else trace) if e.get("ph") == "X"]
    window = last_step(spans, 0)
    if window is None:
        sys.exit(f"plot.py: {path} holds no complete step")
    start, end = window
    colours = {"forward": "#4c72b0", "backward": "#55a868", "wait": "#cccccc", "update": "#8172b2", "all_reduce": "#dd8452"}
    inside = [s for s in spans if s["ts"] < end and s["ts"] + s["dur"] > start]
    rows = sorted({(s["pid"], s["tid"]) for s in inside}, reverse=True)
    script, tics = "", []
    for y, (pid, tid) in enumerate(rows):
        tics.append(f"'rank {pid} ' {y}" if tid == 0 else f"'bucket {tid - 1} ' {y}")
    for number, span in enumerate(inside, 1):
        y = rows.index((span["pid"], span["tid"]))
        left, right = max(span["ts"], start) - start, min(span["ts"] + span["dur"], end) - start
        script += (f"set object {number} rectangle from {left},{y - 0.4} to {right},{y + 0.4} "
                   f"fillcolor rgb '{colours.get(span['name'].split()[0], '#000000')}' fillstyle solid 1.0 noborder\n")
    keys = ", ".join(f"NaN with boxes fillstyle solid 1.0 linecolor rgb '{c}' title '{k}'" for k, c in colours.items())
    gnuplot(PNG.format(1100, 160 + 26 * len(rows), picture) + script +
            "set title 'one step: compute and communication'\nset xlabel 'microseconds'\nset key outside right\n"
            f"set ytics ({', '.join(tics)})\nset xrange [0:{end - start}]\nset yrange [-0.8:{len(rows) - 0.2}]\nplot {keys}\n")


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    verb, first, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    if verb == "final":
        final(first, rest[0])
    elif verb == "loss":
        loss(first, rest)
    elif verb == "timeline":
        timeline(first, rest[0])
    else:
        sys.exit(__doc__)


main()
