#!/usr/bin/env python3
"""The summary's arithmetic and the comparisons of `regressions`, on figures made by hand; then `run` itself on gyre
and the limits alone.

summary_test.py BUILD: the folder that has compare-gyre and the limits.
"""
import contextlib
import importlib.machinery
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

sys.dont_write_bytecode = True
COMPARE = Path(__file__).resolve().parent.parent.parent / "perf" / "compare"
sys.path.insert(0, str(COMPARE))
import launch           # noqa: E402
import libraries        # noqa: E402
import others           # noqa: E402
import record           # noqa: E402
import summary          # noqa: E402


def load_script(name):
    loader = importlib.machinery.SourceFileLoader(name, str(COMPARE / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


regressions = load_script("regressions")
BUILD = sys.argv.pop() if len(sys.argv) > 1 else None


def rows(library, medians, variant="", size=4, memory="private", ranks=2, wall=2.0, barrier=0.1, line=0.1):
    return [{"library": library, "collective": "all_reduce", "mode": "isolated", "ranks": ranks, "transport": "shm", "memory": memory,
             "bytes": size, "median_us": median, "wall_us": wall * median, "busbw_gbs": size / median / 1e3, "empty_us": 0.02,
             "barrier_us": barrier, "line_us": line, "cores": "", "variant": variant, "launch": number} for number, median in enumerate(medians)]


CASE = ("all_reduce", 2, "shm", "isolated", "")


class Summary(unittest.TestCase):
    def test_quantile(self):
        self.assertEqual(summary.quantile([4, 1, 3, 2], 0.5), 2.5)
        self.assertEqual(summary.quantile([5], 0.25), 5)

    def test_best_variant_is_taken_per_size(self):
        cases = summary.gather(rows("openmpi", [2, 2, 2]) + rows("openmpi", [1, 1, 9], "sm") + rows("openmpi", [3, 3, 3], "sm", 64) +
                               rows("openmpi", [2, 2, 2], "", 64))
        self.assertEqual((cases[CASE]["openmpi"][4]["variant"], cases[CASE]["openmpi"][4]["median"]), ("sm", 1))
        self.assertEqual(cases[CASE]["openmpi"][64]["variant"], "")

    def test_labels_stand_apart_in_order_and_near_their_lines(self):
        for places in ([0.5, 0.5, 0.5], [0.9, 0.1, 0.12, 0.11], [0.3], [0.0, 0.5, 1.0]):
            found = summary.apart(places, 0.05)
            order = sorted(range(len(places)), key=lambda i: (places[i], i))
            for below, above in zip(order, order[1:]):
                self.assertGreaterEqual(found[above] - found[below], 0.05 - 1e-9)
            self.assertLess(max(abs(a - b) for a, b in zip(found, places)), 0.05 * len(places))
        self.assertEqual(summary.apart([0.0, 0.5, 1.0], 0.05), [0.0, 0.5, 1.0])

    def test_sizes_are_written_as_people_say_them(self):
        self.assertEqual([text for _, text in summary.size_tics(4, 1 << 26)], ["32 B", "1 KiB", "32 KiB", "1 MiB", "32 MiB"])
        self.assertEqual([text for _, text in summary.size_tics(1 << 20, 1 << 22)], ["1 MiB", "4 MiB"])
        self.assertEqual(summary.bytes_text(1536), "1.5 KiB")

    @unittest.skipUnless(shutil.which("gnuplot"), "no gnuplot")
    def test_picture_names_every_line_at_its_end(self):
        scripts = []
        cases = summary.gather([row for size in (4, 64, 1 << 20) for row in rows("gyre", [1, 2, 3], size=size) + rows("openmpi", [2, 3, 4], size=size)])
        kept = summary.cases_of(summary.figures(cases))
        self.assertEqual(set(kept[CASE]), set(cases[CASE]))
        with tempfile.TemporaryDirectory() as folder:
            with mock.patch.object(summary.subprocess, "run", lambda *a, **k: scripts.append(k["input"])):
                summary.plot(CASE, kept[CASE], folder)
            path = summary.plot(CASE, kept[CASE], folder)
            self.assertEqual(path.read_bytes()[1:4], b"PNG")
        self.assertEqual([scripts[0].count(f'"{name}" at graph') for name in ("gyre", "Open MPI")], [2, 2])
        self.assertNotIn("set key", scripts[0])
        self.assertIn('"1 KiB" 1024', scripts[0])

    def test_ratio_is_to_the_best_peer_and_to_the_limit(self):
        cases = summary.gather(rows("gyre", [2, 2, 4]) + rows("mpich", [8, 8, 8]) + rows("openmpi", [4, 4, 4]) +
                               rows("limit_private", [1, 1, 1]))
        found = {ratio["against"]: ratio for ratio in summary.ratios(cases, ["openmpi", "mpich"])}
        self.assertEqual(sorted(found), ["limit_private", "openmpi"])
        self.assertEqual([found["openmpi"][part] for part in ("median", "low", "high")], [2, 1.5, 2])
        self.assertEqual(found["limit_private"]["median"], 0.5)

    def test_a_ratio_lies_within_its_spread(self):
        cases = summary.gather(rows("gyre", [1, 10, 100]) + rows("openmpi", [100, 10, 1]))
        ours, theirs = cases[CASE]["gyre"][4], cases[CASE]["openmpi"][4]
        ratio = summary.compare({**ours, "launches": {0: 4, 1: 1, 2: 1}}, {**theirs, "launches": {0: 8, 1: 2, 3: 50}})
        self.assertEqual((ratio["median"], ratio["low"], ratio["high"]), (8, 2, 8))

    def test_own_memory_is_a_line_of_its_own(self):
        cases = summary.gather(rows("gyre", [2]) + rows("gyre", [1], memory="own") + rows("openmpi", [4]) + rows("limit_shared", [1]))
        self.assertEqual(sorted(cases[CASE]), ["gyre", "gyre+mem", "limit_shared", "openmpi"])
        found = {(ratio["memory"], ratio["against"]): ratio["median"] for ratio in summary.ratios(cases, ["openmpi"])}
        self.assertEqual(found, {("private", "openmpi"): 2, ("own", "openmpi"): 4, ("own", "limit_shared"): 1})

    def test_cores_that_another_thread_uses_are_told(self):
        some = rows("gyre", [1] * 10)
        self.assertEqual(summary.shared_cores(some), [])        # of results without it
        paced = [{**row, "work_ns": 0.084} for row in some]
        self.assertEqual(summary.shared_cores(paced), [])
        for row in paced[:4]:
            row["work_ns"] = 0.12
        self.assertIn("in 4 of 10 rows one of them made less than 11.0", summary.shared_cores(paced)[0])

    def test_agreement(self):
        osu = [{**row, "mode": "osu"} for row in rows("mpich", [10, 10]) + rows("mpich", [20, 20], size=64)]
        cases = summary.gather(rows("mpich", [9.5, 9.5]) + rows("mpich", [10, 10], size=64) + osu)
        found = summary.agreement(cases, ["openmpi", "mpich"])
        self.assertEqual([(label, size, round(value, 3)) for _, label, size, value in found], [("mpich", 4, 0.95), ("mpich", 64, 0.5)])
        self.assertIn("0.50 to 0.95; beyond a tenth at 64: 0.50", summary.agreement_text(found))

    def test_table(self):
        measured = rows("gyre", [2, 2, 2], size=1 << 20) + rows("openmpi", [5, 5, 5], size=1 << 20)
        results = {"rows": measured, "peers": ["openmpi"], "failures": ["mpich died"], "versions": {"gyre": "0"},
                   "others": [[0.02, [0.02, "sshd 7"]], [0.61, [0.5, "mpich 5694"]]],
                   "about": {"what": "test", "date": "today", "machine": "m", "cores": 2},
                   "pieces": [{"gyre": "x", "load": "0", "date": "today", "command": "run it"}]}
        text = summary.report(results)
        self.assertIn("| 1 Mi | 2.00 (2.00–2.00) | 5.00 (5.00–5.00) | 2.50 (2.50–2.50) openmpi |", text)
        self.assertIn("mpich died", text)
        self.assertIn("during 1 of 2 launches other processes took more than 0.05 of a processor, at most 0.61, of which mpich 5694 took 0.50.", text)
        self.assertIn("`run it`", text)
        self.assertIn("Launches: gyre 3, openmpi 3.", text)
        self.assertNotIn(" wall 4.00", text)
        results["about"]["cores"] = 1
        self.assertIn("2.00 (2.00–2.00) wall 4.00", summary.report(results))

    def test_cores_that_have_been_moved(self):
        near = rows("gyre", [1, 2]) + rows("openmpi", [3, 4], barrier=0.12)
        far = rows("gyre", [10], barrier=0.33) + rows("openmpi", [15], barrier=0.36)
        # they share cores, and take turns in it
        four = rows("gyre", [7, 8], ranks=4, barrier=2) + rows("gyre", [9], ranks=4, barrier=9)
        cases = summary.gather(summary.placed(near + far + four, 2))
        self.assertEqual(sorted(cases), [(*CASE[:4], "far"), (*CASE[:4], "near"), ("all_reduce", 4, *CASE[2:])])
        found = {ratio["cores"]: (ratio["median"], regressions.key_of(ratio)) for ratio in summary.ratios(cases, ["openmpi"])}
        key = "all_reduce/2/shm/isolated/private/4/peers"
        self.assertEqual(found, {"near": (3.5 / 1.5, f"{key}/near"), "far": (1.5, f"{key}/far")})
        self.assertEqual(list(summary.gather(summary.placed(near, 2))), [CASE])
        self.assertEqual(list(summary.gather(summary.placed([{**row, "barrier_us": 0} for row in near] + far, 2))), [CASE])
        disturbed = rows("gyre", [3], barrier=0.9)      # one of few rows moves nothing, nor does one of two
        self.assertEqual(list(summary.gather(summary.placed(near + disturbed, 2))), [CASE])
        self.assertEqual(list(summary.gather(summary.placed(near[:1] + disturbed, 2))), [CASE])
        results = {"rows": near + far, "peers": ["openmpi"], "failures": [], "versions": {}, "pieces": [], "others": [],
                   "about": {"what": "test", "date": "today", "machine": "m", "cores": 2}}
        text = summary.report(results)
        self.assertIn("### all_reduce, 2 ranks, shm, cores far from each other", text)
        self.assertIn("0.11 µs (near, 4 times) or 0.34 µs (far, 2 times)", text)
        self.assertNotIn("each other", summary.report({**results, "rows": near}))

    def test_cores_that_ranks_share_and_that_have_been_moved(self):
        near = rows("gyre", [1, 2], ranks=4, barrier=9, line=0.09)
        far = rows("gyre", [10, 12], ranks=4, barrier=2, line=0.3)
        cases = summary.gather(summary.placed(near + far, 2))
        case = ("all_reduce", 4, *CASE[2:4])
        self.assertEqual({key: labels["gyre"][4]["median"] for key, labels in cases.items()}, {(*case, "near"): 1.5, (*case, "far"): 11})
        # by an older harness
        before = [{part: value for part, value in row.items() if part != "line_us"} for row in near + far]
        self.assertEqual(list(summary.gather(summary.placed(before, 2))), [(*case, "")])
        self.assertIn("a line's way from one to the other and back before each took 0.09 µs (near, 2 times) or 0.30 µs (far, 2 times)",
                      "".join(summary.places(summary.placed(near + far, 2), 2)))

    def test_a_variant_behind_everywhere(self):
        measured = (rows("gyre", [1]) + rows("openmpi", [10, 10, 10]) + rows("openmpi", [22, 22, 99], "sm") + rows("mpich", [30] * 3) +
                    rows("openmpi", [22, 22, 22], "sm", 64) + rows("openmpi", [40] * 3, "", 64) + rows("mpich", [90] * 3, "", 64) +
                    rows("limit_private", [1], "32k") + rows("limit_private", [3], "128k"))
        self.assertEqual(summary.behind(measured, (2, "shm"), ["openmpi", "mpich"], 2),
                         {("mpich", "", "isolated"), ("limit_private", "128k", "isolated")})
        self.assertEqual(summary.behind(measured, (4, "shm"), ["openmpi", "mpich"], 2), set())


class Kept(unittest.TestCase):
    def test_what_is_measured_is_not_measured_again(self):
        with tempfile.TemporaryDirectory() as folder:
            with record.Record(Path(folder), {"date": "a"}, ["mpich"], True) as first:
                first.add("gyre", 0, ["all_reduce", "barrier"], "gyre", "1", rows("gyre", [2]), (0.2, (0.1, "a 1")))
                first.add("gloo", 0, ["reduce_scatter"], "gloo", None, [], (0, (0, "")))
                with contextlib.redirect_stdout(io.StringIO()):
                    first.fail("died")
            with open(Path(folder, "launches.jsonl"), "a", encoding="utf-8") as file:
                file.write('{"launch": "gyre", "numb')     # the machine went down
            with record.Record(Path(folder), {"date": "b"}, ["mpich"], True) as second:
                self.assertTrue(second.has("gyre", 0, "barrier") and second.offered("gyre", 0))
                self.assertTrue(second.has("gloo", 0, "reduce_scatter") and not second.offered("gloo", 0))
                self.assertFalse(second.has("gyre", 1, "barrier") or second.has("gyre", 0, "reduce"))
                self.assertEqual((len(second.results["rows"]), second.results["failures"], second.results["versions"]),
                                 (1, [], {"gyre": "1"}))
                self.assertEqual([piece["date"] for piece in second.results["pieces"]], ["a", "b"])
                self.assertEqual(second.results["others"], [[0.2, [0.1, "a 1"]], [0, [0, ""]]])
            # during the first others computed
            with record.Record(Path(folder), {"date": "c"}, ["mpich"], True, again=True) as third:
                self.assertFalse(third.has("gyre", 0, "barrier"))
                self.assertTrue(third.has("gloo", 0, "reduce_scatter"))
            with record.Record(Path(folder), {"date": "d"}, ["mpich"], False) as fourth:
                self.assertEqual(fourth.results["rows"], [])
            before = Path(folder, "launches.before.jsonl").read_text(encoding="utf-8").splitlines()
            self.assertEqual(json.loads(before[-1]), {"piece": {"date": "c"}})


class Others(unittest.TestCase):
    def test_who_computes_meanwhile_is_named(self):
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
            try:
                begun, end = others.stat_of(process.pid), time.monotonic() + 60
                while others.stat_of(process.pid)[3] < begun[3] + 0.2 and time.monotonic() < end:
                    time.sleep(0.05)
                after = {who: what for who, what in others.look().items() if who[0] == process.pid}
            finally:
                process.kill()
        before = {who: begun[::3] for who in after}
        together, (share, name) = others.taken(before, after, 1)
        self.assertEqual((together, name), (share, f"{begun[0]} {process.pid}"))
        self.assertGreaterEqual(share, 0.2)

    def test_who_has_begun_counts_whole_and_who_has_ended_not(self):
        before, after = {(1, 10): ("a", 5.0), (2, 10): ("b", 9.0)}, {(1, 10): ("a", 6.0), (2, 30): ("c", 3.0)}
        self.assertEqual(others.taken(before, after, 2), (2.0, (1.5, "c 2")))
        self.assertEqual(others.taken(before, {}, 2), (0, (0, "")))

    def test_neither_this_process_nor_the_kernels(self):
        found = others.look()
        self.assertNotIn(os.getpid(), [pid for pid, _ in found])
        self.assertFalse([name for name, _ in found.values() if name.startswith(("kthreadd", "ksoftirqd"))])

    def test_what_the_table_says(self):
        self.assertIn("not looked at", others.text_of([]))
        self.assertIn("During none of 2 launches", others.text_of([[0.01, [0.01, "a 1"]]] * 2))


class Regressions(unittest.TestCase):
    def verdict(self, now, before, margin=0.05):
        def ratio(value):
            return {"median": value[0], "low": value[1], "high": value[2]}
        return [bool(keys) for keys in regressions.compare({"k": ratio(now)}, {"k": ratio(before)}, margin)[:2]]

    def test_worse_is_beyond_the_spread_and_the_margin(self):
        self.assertEqual(self.verdict((1.0, 0.9, 1.1), (2.0, 1.8, 2.2)), [True, False])
        self.assertEqual(self.verdict((1.0, 0.9, 1.9), (2.0, 1.8, 2.2)), [False, False])      # the quartiles overlap
        self.assertEqual(self.verdict((1.97, 1.97, 1.97), (2.0, 2.0, 2.0)), [False, False])   # within the margin
        self.assertEqual(self.verdict((2.0, 1.8, 2.2), (1.0, 0.9, 1.1)), [False, True])

    def run_main(self, *words):
        sys.argv = ["regressions", *words]
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()):
            return regressions.main(), out.getvalue()

    def write(self, path, values, cores="", processor=""):
        measured = [{**row, "cores": cores} for size, (ours, theirs) in values.items()
                    for row in rows("gyre", ours, size=size) + rows("openmpi", theirs, size=size)]
        ratios = summary.ratios(summary.gather(measured), ["openmpi"])
        about = {"processor": processor} if processor else {}
        path.write_text(json.dumps({"about": about, "failures": [], "ratios": ratios}), encoding="utf-8")

    def test_accepts_then_tells(self):
        with tempfile.TemporaryDirectory() as folder:
            good, bad, baseline = Path(folder, "good.json"), Path(folder, "bad.json"), Path(folder, "baseline")
            self.write(good, {4: ([1, 1], [2, 2]), 1 << 20: ([5, 5], [10, 10])})
            self.write(bad, {4: ([1, 1], [2, 2]), 1 << 20: ([9, 9], [10, 10])})
            self.assertEqual(self.run_main(str(good), "--baseline", str(baseline))[0], 2)     # nothing to compare with
            self.assertEqual(self.run_main(str(good), "--baseline", str(baseline), "--accept")[0], 0)
            self.assertEqual(self.run_main(str(good), "--baseline", str(baseline))[0], 0)
            code, text = self.run_main(str(bad), "--baseline", str(baseline))
            self.assertEqual(code, 1)
            self.assertIn("WORSE bandwidth all_reduce/2/shm/isolated/private/1048576/peers: 1.11", text)
            self.assertIn("latency: 1 compared, 0 worse", text)
            self.assertEqual(self.run_main(str(Path(folder, "none.json")), "--baseline", str(baseline))[0], 2)

    def test_each_processor_has_its_own(self):
        with tempfile.TemporaryDirectory() as folder:
            one, other, baseline = Path(folder, "one.json"), Path(folder, "other.json"), Path(folder, "baseline")
            self.write(one, {4: ([1, 1], [2, 2]), 1 << 20: ([5, 5], [10, 10])}, processor="A-1-1")
            self.write(other, {4: ([2, 2], [2, 2]), 1 << 20: ([9, 9], [10, 10])}, processor="B-2-2")
            self.assertEqual(self.run_main(str(one), "--baseline", str(baseline), "--accept")[0], 0)
            # slower, but of another kind
            self.assertEqual(self.run_main(str(other), "--baseline", str(baseline))[0], 2)
            self.assertEqual(self.run_main(str(other), "--baseline", str(baseline), "--accept")[0], 0)
            self.assertEqual(self.run_main(str(other), "--baseline", str(baseline))[0], 0)
            self.write(other, {4: ([4, 4], [2, 2])}, processor="A-1-1")
            self.assertEqual(self.run_main(str(other), "--baseline", str(baseline))[0], 1)

    def test_other_places_of_the_cores_are_not_compared(self):
        with tempfile.TemporaryDirectory() as folder:
            far, near, both, baseline = (Path(folder, name) for name in ("far.json", "near.json", "both.json", "baseline"))
            long = {1 << 20: ([5, 5], [10, 10])}
            self.write(far, {4: ([1, 1], [2, 2])}, "far")
            self.write(near, {4: ([9, 9], [2, 2])}, "near")
            self.write(both, long)
            for path in (far, both):
                self.assertEqual(self.run_main(str(path), "--baseline", str(baseline), "--accept")[0], 0)
            self.assertEqual(self.run_main(str(far), "--baseline", str(baseline))[0], 0)
            code, text = self.run_main(str(near), "--baseline", str(baseline))
            self.assertEqual(code, 2)
            self.assertIn("elsewhere latency all_reduce/2/shm/isolated/private/4/peers", text)
            # something else that is as good as before
            merged = [json.loads(path.read_text(encoding="utf-8")) for path in (near, both)]
            near.write_text(json.dumps({**merged[0], "ratios": merged[0]["ratios"] + merged[1]["ratios"]}), encoding="utf-8")
            self.assertEqual(self.run_main(str(near), "--baseline", str(baseline))[0], 2)
            # the old place beside the new one
            merged.append(json.loads(far.read_text(encoding="utf-8")))
            near.write_text(json.dumps({**merged[0], "ratios": merged[0]["ratios"] + merged[2]["ratios"]}), encoding="utf-8")
            self.assertEqual(self.run_main(str(near), "--baseline", str(baseline))[0], 0)


@unittest.skipUnless(BUILD, "no build folder given")
class Run(unittest.TestCase):
    def test_gyre_and_the_limits(self):
        with tempfile.TemporaryDirectory() as folder:
            words = [str(COMPARE / "run"), "--no-install", "--no-build", "--no-plot", "--build", BUILD, "--output", folder, "--libraries",
                     "gyre,limit_private,limit_shared", "--collectives", ",".join(load_script("run").COLLECTIVES), "--ranks", "2", "--min", "4", "--max", "1M",
                     "--factor", "64", "--launches", "2", "--budget", "2"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=200)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            results = json.loads(Path(folder, "results.json").read_text(encoding="utf-8"))
            seen = {(row["label"], row["collective"], row["transport"], row["bytes"]) for row in results["figures"]}
            for size in (4, 256, 16384):
                self.assertIn(("gyre", "all_reduce", "tcp", size), seen)
                self.assertIn(("limit_private", "all_reduce", "shm", size), seen)
            for name in load_script("run").COLLECTIVES:     # up to tiles that take turns in the limit's slots
                for label in ("gyre", "limit_private"):
                    self.assertIn((label, name, "shm", 0 if name == "barrier" else 1 << 20), seen)
            self.assertTrue(all(row["median"] > 0 for row in results["figures"]))
            # of near cores and of far ones together: on a busy machine one may seem the other
            launches = {}
            for row in results["figures"]:
                key = row["label"], row["collective"], row["transport"], row["bytes"]
                if row["label"].startswith("gyre"):     # it has one variant, so that no other's launches count for it
                    launches[key] = launches.get(key, 0) + len(row["medians"])
            self.assertEqual(set(launches.values()), {2})
            self.assertIn("### all_reduce, 2 ranks, shm", Path(folder, "table.md").read_text(encoding="utf-8"))

    def test_what_cannot_be_measured_is_said_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            for words, why in ((["--launches", "0"], "--launches and --budget must be at least 1"),
                               (["--budget", "0", "--quick"], "--launches and --budget must be at least 1"),
                               (["--build", folder, "--libraries", "gyre"], f"there is no {folder}/perf/compare/compare-gyre")):
                done = subprocess.run([str(COMPARE / "run"), "--no-install", "--no-build", "--output", f"{folder}/results", *words],
                                      capture_output=True, text=True, timeout=200)
                self.assertNotEqual(done.returncode, 0, words)
                self.assertIn(why, done.stderr)
                self.assertFalse(Path(folder, "results").exists(), words)

    def gyre(self, claimed, used, options=("--max", "4096")):
        library = next(row for row in libraries.LIBRARIES if row.name == "gyre")
        values = libraries.transport_environment
        launch.transport_environment = lambda of, transport: values(of, used)
        try:
            return launch.launch(library, "", BUILD, claimed, "private", 2, 2, ["--budget", "2", *options], 60)
        finally:
            launch.transport_environment = values

    def test_another_transport_than_claimed_is_found_out(self):
        with self.assertRaisesRegex(launch.Failed, "was to use TCP, but sent"):
            self.gyre("tcp", "shm")
        with self.assertRaisesRegex(launch.Failed, "was to use shm, but sent"):
            self.gyre("shm", "tcp", ("--min", "65536", "--max", "65536"))
        self.assertTrue(self.gyre("tcp", "tcp"))

    def test_what_is_not_offered_is_no_failure(self):
        library = next(row for row in libraries.LIBRARIES if row.name == "limit_shared")
        self.assertIsNone(launch.launch(library, "store", BUILD, "shm", "own", 2, 2, ["--collective", "barrier"], 60))


if __name__ == "__main__":
    os.environ.pop("COMPARE_TILE", None)
    unittest.main()
