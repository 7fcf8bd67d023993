#!/usr/bin/env python3
"""scripts/plot.py: medians and ranges over runs, the step of median length, and the share of communication that compute
overlaps, worked out by hand; and both pictures, where there is gnuplot.

Usage: plot_test.py ROOT"""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))
import plot  # noqa: E402

PNG = b"\x89PNG"


def span(rank: int, name: str, start: float, end: float, thread: int = 0) -> dict[str, Any]:
    kind = "communication" if thread else "compute"
    return {"ph": "X", "pid": rank, "tid": thread, "cat": kind, "name": name, "ts": start, "dur": end - start}


def trace() -> list[dict[str, Any]]:
    """Two ranks, steps of 100, 60 and 80. In the third rank 1 posts at 200 and rank 0 sees the sum at 220."""
    spans = []
    for rank in (0, 1):
        for start, length in ((0, 100), (100, 60), (160, 80)):
            half = start + length / 4
            spans += [span(rank, "forward", start, half), span(rank, "backward", half, start + 50),
                      span(rank, "update", start + length - 5, start + length)]
    return spans + [span(0, "all_reduce", 190, 220, 1), span(1, "all_reduce", 200, 230, 1)]


class Plot(unittest.TestCase):
    def test_intervals(self) -> None:
        self.assertEqual(plot.union([(4, 6), (0, 2), (1, 3)]), [(0, 3), (4, 6)])
        self.assertEqual(plot.both([(0, 3), (4, 6)], [(2, 5)]), [(2, 3), (4, 5)])
        self.assertEqual(plot.length([(0, 3), (4, 6)]), 5)

    def test_steps(self) -> None:
        self.assertEqual(plot.steps(trace(), 0), [(0, 100), (100, 160), (160, 240)])
        self.assertEqual(plot.median_step(trace(), 0), (100, 160))  # the lower one of the two behind the first

    def test_transfers_last_from_the_last_post_to_the_first_sight(self) -> None:
        self.assertEqual(plot.transfers(trace()), {0: [(190, 200, 220)], 1: [(200, 200, 220)]})

    def test_overlap(self) -> None:
        ranks = plot.activity(trace(), (160, 240))
        self.assertEqual(ranks[0]["waits"], [(190, 200)])
        self.assertEqual(ranks[1]["both"], [(200, 210)])  # backward ends at 210, the transfer at 220
        self.assertEqual(plot.overlapped(ranks), 0.5)
        self.assertIsNone(plot.overlapped(plot.activity(trace(), (0, 100))))

    def test_series_and_pictures(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder, files = Path(name), []
            for seed, factor in enumerate((1.0, 3.0, 2.0)):
                files.append(folder / f"seed-{seed}.jsonl")
                events = [{"event": "epoch", "step": s, "loss": factor / s, "accuracy": 0.9} for s in (1, 2)]
                files[-1].write_text("\n".join(map(json.dumps, [*events, {"event": "final", "accuracy": 0.9}])))
            self.assertEqual(plot.series(files, "loss"), [(1, 1.0, 2.0, 3.0), (2, 0.5, 1.0, 1.5)])
            said = folder / "overlap.txt"
            share = "54 % of the communication is hidden (quartiles 32 to 65 %)"
            said.write_text(f"x\noverlap: {share}, 47 % of what could be\n")
            self.assertEqual(plot.measured(said), share)
            if shutil.which("gnuplot"):
                (folder / "trace.json").write_text(json.dumps({"traceEvents": trace()}))
                self.draw(folder / "loss.png", "loss", *files)
                self.draw(folder / "timeline.png", "timeline", folder / "trace.json", said)

    def draw(self, picture: Path, verb: str, *files: Path) -> None:
        subprocess.run([sys.executable, ROOT / "scripts/plot.py", verb, picture, *files], check=True, timeout=60)
        self.assertEqual(picture.read_bytes()[:4], PNG)


if __name__ == "__main__":
    unittest.main()
