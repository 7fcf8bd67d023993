#!/usr/bin/env python3
"""Draws what perf/train/run has measured: perf/train/pictures.py [FOLDER]

FOLDER (default perf/results/train) has the results; of those that are there these are drawn, into the same folder:

    ddp.png         training loss against seconds, gyre and PyTorch with DDP, for each model
    speeds.png      samples per second: one rank and two; two of gyre and two of PyTorch
    slow.png        accuracy and loss against seconds over slow links: sync and averaging
    clock.png       four stages of a pipeline by the simulated clock
    straggler.png   steps against seconds of two ranks, one of which is ten times slower

perf/train/run draws the timelines itself, from traces that it does not keep. Without gnuplot there are no pictures."""
from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

Result = dict[str, Any]
CURVE = 5  # epochs, at least
STRATEGIES = {"sync": "sync", "stale:steps=4": "stale, 4 steps", "async": "async"}


def draw(picture: Path, size: str, script: str) -> None:
    head = f"set terminal pngcairo size {size} font 'DejaVu Sans,11' noenhanced\nset output '{picture}'\nset grid\n"
    subprocess.run(["gnuplot"], input=head + script, text=True, check=True, timeout=60)


def block(name: str, rows: list[tuple[Any, ...]]) -> str:
    return f"${name} << EOD\n" + "".join(" ".join(map(str, row)) + "\n" for row in rows) + "EOD\n"


def draw_ddp(result: Result, folder: Path) -> None:
    """One panel a model; models with fewer than CURVE epochs make no curve and are left to speeds.png."""
    models = [name for name, one in result.items() if len(one.get("losses", {}).get("gyre", [])) >= CURVE and "seconds" in one]
    if not models:
        return
    script = ""
    for number, name in enumerate(models):
        for who in ("gyre", "torch"):
            script += block(f"{who}{number}", list(zip(result[name]["seconds"][who], result[name]["losses"][who])))
    script += f"set multiplot layout {(len(models) + 1) // 2},2 title 'training loss of two ranks: gyre, and PyTorch " + result[models[0]]["version"] + " with DDP over Gloo, the same weights and samples'\n"
    script += "set xlabel 'seconds of training'\nset ylabel 'loss'\nset xrange [0:*]\nset offsets 0, 0, graph 0.1, 0\n"
    for number, name in enumerate(models):
        script += f"set {'logscale' if name in ('mlp', 'autoencoder') else 'nologscale'} y\nset title '{name}'\n"
        script += f"plot $gyre{number} with linespoints title 'gyre', $torch{number} with linespoints title 'PyTorch'\n"
    draw(folder / "ddp.png", f"1100,{90 + 330 * ((len(models) + 1) // 2)}", script + "unset multiplot\n")


def draw_speeds(scaling: Result, ddp: Result, folder: Path) -> None:
    script = block("scale", [(name, statistics.median(one["one"]), statistics.median(one["two"])) for name, one in scaling.items()])
    script += block("beside", [(name, statistics.median(one["gyre"]), statistics.median(one["torch"])) for name, one in ddp.items() if "-torch-" not in name])
    script += "set multiplot layout 1,2\nset ylabel 'samples per second'\nset style data histogram\nset style fill solid\nset logscale y\nset yrange [100:200000]\n"
    script += "set title 'gyre: one rank and two ranks, same global batch'\nplot $scale using 2:xtic(1) title 'one rank', '' using 3 title 'two ranks'\n"
    script += "set title 'two ranks: gyre and PyTorch'\nplot $beside using 2:xtic(1) title 'gyre', '' using 3 title 'PyTorch with DDP over Gloo'\n"
    draw(folder / "speeds.png", "1200,480", script + "unset multiplot\n")


def draw_slow(result: Result, folder: Path) -> None:
    runs = {name: one["epochs"] for name, one in result.items() if isinstance(one, dict) and "epochs" in one}
    if not runs:
        return
    script = "".join(block(f"run{number}", [tuple(epoch) for epoch in epochs]) for number, epochs in enumerate(runs.values()))
    title = f"slow links: communication takes {result['communication_to_compute']:.1f} times as long as computation"
    script += f"set multiplot layout 1,2 title '{title}'\nset xlabel 'seconds of training'\nset logscale x\nset key bottom right\n"
    for column, what in ((3, "test accuracy"), (2, "training loss")):
        script += f"set ylabel '{what}'\n" + ("set logscale y\nset key bottom left\n" if column == 2 else "")
        script += "plot " + ", ".join(f"$run{number} using 1:{column} with linespoints title '{name}'" for number, name in enumerate(runs)) + "\n"
    draw(folder / "slow.png", "1200,480", script + "unset multiplot\n")


def draw_clock(result: Result, folder: Path) -> None:
    if "spans" not in result:
        return
    script, number, stages = "", 0, result["spans"]
    for stage, spans in enumerate(stages):
        for kind, micro, start, end in spans:
            number += 1
            low, high, middle = len(stages) - stage - 1.4, len(stages) - stage - 0.6, 500 * (start + end)
            colour = "#4c72b0" if kind == "f" else "#55a868"
            script += f"set object {number} rectangle from {1000 * start},{low} to {1000 * end},{high} fillcolor rgb '{colour}' fillstyle solid 1.0 border rgb 'white'\n"
            script += f"set label {number} '{micro}' at {middle},{len(stages) - stage - 1} center textcolor rgb 'white' front\n"
    tics = ", ".join(f"'stage {stage}' {len(stages) - stage - 1}" for stage in range(len(stages)))
    script += f"set title 'a 1F1B step on the simulated clock: {result['share']:.2f} of the formula'\nset xlabel 'milliseconds'\n"
    script += f"set ytics ({tics})\nset key outside right\nset xrange [0:{1000 * result['simulated']}]\nset yrange [-0.8:{len(stages) - 0.2}]\n"
    draw(folder / "clock.png", "1100,320", script + "plot NaN with boxes fillstyle solid 1.0 linecolor rgb '#4c72b0' title 'forward', "
         "NaN with boxes fillstyle solid 1.0 linecolor rgb '#55a868' title 'backward'\n")


def draw_straggler(result: Result, folder: Path) -> None:
    runs = [name for name in STRATEGIES if name in result]
    script, curves = "", []
    for number, name in enumerate(runs):
        for rank, who in ((0, "fast rank"), (1, "slow rank")):
            script += block(f"run{number}{rank}", list(zip(result[name]["begun"][rank], range(len(result[name]["begun"][rank])))))
            curves.append(f"$run{number}{rank} with lines linewidth 2 linecolor {number + 1} dashtype {rank + 1} title '{STRATEGIES[name]}: {who}'")
    draw(folder / "straggler.png", "900,480", script + "set title 'two ranks, one of which computes ten times as slowly'\n"
         "set xlabel 'seconds'\nset ylabel 'steps begun'\nset key outside right\nplot " + ", ".join(curves) + "\n")


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "results" / "train"
    found: dict[str, Result] = {path.stem: json.loads(path.read_text())["result"] for path in folder.glob("*.json")}
    try:
        for what, function in (("ddp", draw_ddp), ("slow", draw_slow), ("clock", draw_clock), ("straggler", draw_straggler)):
            if what in found:
                function(found[what], folder)
        if "scaling" in found and "ddp" in found:
            draw_speeds(found["scaling"], found["ddp"], folder)
    except FileNotFoundError:
        print("pictures.py: no pictures without gnuplot", file=sys.stderr)


main()
