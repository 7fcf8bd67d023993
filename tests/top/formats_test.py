#!/usr/bin/env python3
"""gyre-top --json, --prometheus and --trace of a job whose rank 2 is stopped: each says so, in the form that readers
expect; files are replaced whole; the port answers on loopback, and no client holds it up.

Usage: formats_test.py GYRE_RUN GYRE_TOP RANKS"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

RUN, TOP, RANKS = sys.argv[1:4]
SAMPLE = re.compile(r'([a-z_]+)\{((?:[a-z]+="[^"\\\n]*",?)+)\} (\S+)')
STATES = {"moving", "waiting", "outside", "away", "stopped", "failed", "gone", "unseen", "elsewhere"}


def check(good, *what):
    if not good:
        sys.exit("FAILED: " + " ".join(str(w) for w in what))


def top(*arguments, status=0):
    done = subprocess.run([TOP, *arguments], capture_output=True, text=True, timeout=60)
    check(done.returncode == status, arguments, "status", done.returncode, done.stderr)
    return done.stdout


def samples(text):
    """{(metric, rank, state): value}; every line is a sample or a comment, and every metric has its type before it."""
    found, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            types[line.split()[2]] = line.split()[3]
            continue
        if line.startswith("# HELP "):
            continue
        match = SAMPLE.fullmatch(line)
        check(match, "no sample:", line)
        name, labels = match[1], dict(re.findall(r'([a-z]+)="([^"]*)"', match[2]))
        check(name in types, name, "has no type")
        check((types[name] == "counter") == name.endswith("_total"), name, types[name])
        key = (name, labels.get("rank"), labels.get("state"))
        check(key not in found, "twice:", line)
        found[key] = float(match[3])
    return found


def until(attempt):
    """Calls until it returns something; how long a state takes to be seen is the machine's business."""
    for _ in range(60):
        result = attempt()
        if result:
            return result
        time.sleep(0.5)
    sys.exit(f"FAILED: {attempt.__name__} has not come")


def check_json(pids):
    def stuck():
        document = json.loads(top("--once", "--json", "--pid", str(pids[0])))
        check(len(document["jobs"]) == 1 and document["other_versions"] == 0, document)
        ranks = document["jobs"][0]["ranks"]
        check([r["process"] for r in ranks] == pids and document["jobs"][0]["size"] == 4, document)
        return ranks if ranks[2]["state"] == "stopped" and ranks[2]["holds_up"] == 3 else None
    ranks = until(stuck)
    for r in (0, 1, 3):
        check(ranks[r]["state"] == "waiting" and ranks[r]["seconds"] >= 1 and 2 in ranks[r]["waits_for"], ranks[r])
        check(ranks[r]["operation"].startswith("all_reduce #6 (float32 x 4000000, sum, "), ranks[r])
        check(ranks[r]["communicator"] == "gradients", ranks[r])
    check(ranks[2]["longest_wait"] >= 1 and ranks[0]["holds_up"] == 0, ranks)
    line = subprocess.Popen([TOP, "--json"], stdout=subprocess.PIPE, text=True)
    try:
        for _ in range(2):
            check("jobs" in json.loads(line.stdout.readline()), "a line for each picture")
    finally:
        line.kill()
        line.wait()


def check_samples(found):
    for r in "0123":
        states = {key[2]: value for key, value in found.items() if key[:2] == ("gyre_rank_state", r)}
        check(set(states) == STATES and sum(states.values()) == 1, states)
        check(states["stopped" if r == "2" else "waiting"] == 1, r, states)
        check(found["gyre_operations_done_total", r, None] == 5, found)
        check(found["gyre_operations_started_total", r, None] == (5 if r == "2" else 6), found)
        check(found["gyre_operations_failed_total", r, None] == 0 and found["gyre_bytes_total", r, None] > 0, found)
        check(found["gyre_holds_up_ranks", r, None] == (3 if r == "2" else 0), found)
        check((found["gyre_waiting_seconds", r, None] >= 1) == (r != "2"), found)
    check(found["gyre_job_ranks", None, None] == 4 == found["gyre_job_ranks_seen", None, None], found)
    check(found["gyre_job_circle", None, None] == 0, found)


def check_file(folder, pid):
    path = folder / "gyre.prom"
    path.write_text("old")
    old = path.open()  # a reader of the old file
    top("--once", "--prometheus", str(path), "--pid", str(pid))
    check(old.read() == "old", "the old file was written to")
    check_samples(samples(path.read_text()))
    check([p.name for p in folder.iterdir()] == [path.name], "left behind:", list(folder.iterdir()))
    top("--once", "--prometheus", str(folder / "none" / "x.prom"), status=1)
    top("--once", "--prometheus", "9100", status=2)
    top("--json", "--trace", "x", status=2)
    top("--prometheus", "65536", status=2)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(port, path="/metrics"):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as reply:
            check(reply.headers["Content-Type"].startswith("text/plain; version=0.0.4"), reply.headers)
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""
    except urllib.error.URLError:
        return 0, ""


def check_port(pid):
    port = free_port()
    server = subprocess.Popen([TOP, "--prometheus", str(port), "--pid", str(pid)])
    try:
        def answered():
            status, text = fetch(port)
            check(status in (0, 200, 503), status)
            return text
        check_samples(samples(until(answered)))
        check(fetch(port, "/other")[0] == 404, "another path")
        for request in (b"GET / HT", b"x" * 10000, b"POST /metrics HTTP/1.1\r\n\r\n", b""):
            with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                if request:
                    client.sendall(request)
                started = time.monotonic()
                try:
                    while client.recv(4096):
                        pass
                except ConnectionResetError:
                    pass
                check(time.monotonic() - started < 20, "no end of", request[:20])
        check(fetch(port)[0] == 200, "after clients that misbehave")
        listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        places = re.findall(rf"(?m)^ *\d+: ([0-9A-F]+):{port:04X} \S+ 0A ", listening)
        check(places == ["0100007F"], "it listens at", places)
        top("--prometheus", str(port), status=1)  # the port is taken
        check(server.poll() is None, "the server has ended")
    finally:
        server.kill()
        server.wait()


def check_trace(folder, pids):
    path = folder / "trace.json"
    top("--trace", str(path), "--pid", str(pids[0]))
    document = json.loads(path.read_text())
    names = {e["pid"]: e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name"}
    check([re.sub(" of job.*", "", names[p]) for p in pids] == [f"rank {r}" for r in range(4)], names)
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in document["traceEvents"] if e["name"] == "thread_name"}
    events = [e for e in document["traceEvents"] if e["ph"] == "X"]
    for rank, pid in enumerate(pids):
        own = [e for e in events if e["pid"] == pid]
        running = [e for e in own if e["args"]["state"] == "running"]
        check(len(running) == (0 if rank == 2 else 1), rank, own)
        for e in running:
            check(e["name"] == "all_reduce" and "float32 x 4000000" in e["args"]["operation"] and e["dur"] > 1e6, e)
        for e in own:
            check(threads[pid, e["tid"]].startswith("gradients (communicator "), threads)
            check(e["ts"] > 0 and e["dur"] >= 0 and e["args"]["state"] in ("running", "done"), e)
    for track in {(e["pid"], e["tid"]) for e in events}:  # events of a track do not overlap
        spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events if (e["pid"], e["tid"]) == track)
        check(all(a[1] <= b[0] + 0.001 for a, b in zip(spans, spans[1:])), spans)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "pids").mkdir()
        (folder / "out").mkdir()
        environment = {**os.environ, "GYRE_LOG": "error", "GYRE_TIMEOUT": "300", "GYRE_STALL_TIMEOUT": "300"}
        job = subprocess.Popen([RUN, "-n", "4", RANKS, "stop", folder / "pids"], env=environment,
                               stderr=subprocess.DEVNULL)
        pids = []
        try:
            for rank in range(4):
                path = folder / "pids" / str(rank)
                for _ in range(1000):
                    if path.exists() and path.read_text().endswith("\n"):
                        break
                    time.sleep(0.1)
                pids.append(int(path.read_text()))
            check_json(pids)
            check_file(folder / "out", pids[0])
            check_port(pids[0])
            check_trace(folder, pids)
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
            job.terminate()
            job.wait(timeout=60)


main()
