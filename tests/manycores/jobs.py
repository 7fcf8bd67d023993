#!/usr/bin/env python3
"""Runs the jobs of a stage of scripts/manycores side by side, each on cores of its own, and writes one JSON line per
job."""
import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

CORES = sorted(os.sched_getaffinity(0))
EXACT_SECONDS, PROGRAM_SECONDS, KILL_SECONDS = 100, 20, 60
KILLS = 200
SECRET = "0123456789abcdef0123456789abcdef"


@dataclass
class Job:
    name: str
    ranks: int
    words: list
    seconds: int                                  # its limit
    environment: dict = field(default_factory=dict)

    def cores(self):
        return min(self.ranks, len(CORES))


def exact(ranks_list, program):
    """Every collective and algorithm, in every placement and type, and sizes around every threshold."""
    jobs = []
    for ranks in ranks_list:
        run = [program("gyre-run"), "-l", "-n", str(ranks)]
        for transport, reach in (("shm", "shm"), ("tcp", "links")):
            where = {"GYRE_TRANSPORT": transport}
            jobs.append(Job(f"sweep.{transport}.{ranks}", ranks, [*run, program("sweep_test"), reach], EXACT_SECONDS, where))
            jobs.append(Job(f"thresholds.{transport}.{ranks}", ranks, [*run, program("thresholds_test"), str(4 << 20)], EXACT_SECONDS,
                            {**where, "GYRE_VERIFY": "1"}))
        split = [*run, "--", "sh", "-c", 'GYRE_HOST_ID=h$((RANK % 2)) exec "$@"', "sh"]
        jobs.append(Job(f"sweep.mixed.{ranks}", ranks, [*split, program("sweep_test"), "links", "all", "groups"], EXACT_SECONDS, {"GYRE_SECRET": SECRET}))
        jobs.append(Job(f"thresholds.mixed.{ranks}", ranks, [*split, program("thresholds_test"), str(1 << 20)], EXACT_SECONDS, {"GYRE_SECRET": SECRET}))
    return jobs


def programs(ranks_list, program):
    """Random programs of all calls: as many at once as there are cores for, with other seeds; two rounds fill a minute
    with 16 ranks."""
    jobs = []
    for ranks in ranks_list:
        for number in range(max(1, max(ranks_list) // ranks)):
            for transport in ("shm", "tcp"):
                seed = str(1 + 100 * ranks + 10 * number + int(time.time()) % 1000000 * 1000)
                jobs.append(Job(f"programs.{transport}.{ranks}.seed.{seed}", ranks, [program("gyre-run"), "-n", str(ranks), program("programs_test")],
                                PROGRAM_SECONDS, {"GYRE_TRANSPORT": f"self,{transport}", "GYRE_TEST_SEED": seed, "GYRE_VERIFY": "1",
                                                  "GYRE_TEST_SECONDS": str(PROGRAM_SECONDS // 2)}))
    return jobs


def kills(ranks_list, program):
    """Random deaths: the survivors name the dead rank and the operation within the promised time
    (tests/system/fault_test.c)."""
    each = -(-KILLS // (2 * len(ranks_list)))
    return [Job(f"kills.{transport}.{ranks}", ranks, [program("fault_test"), "kills", str(ranks)], KILL_SECONDS,
                {"GYRE_TRANSPORT": transport, "GYRE_TEST_KILLS": str(each)})
            for ranks in ranks_list for transport in ("shm", "tcp")]


def start(job, cores, output):
    environment = {**os.environ, "GYRE_LOG": "error", **job.environment}
    return subprocess.Popen(job.words, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                            start_new_session=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))


def end(process):
    """What a job that ran past its limit has left."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            return
        time.sleep(1)


class Runner:
    def __init__(self, output):
        self.output, self.free, self.running, self.failed = output, list(CORES), [], 0

    def report(self, job, process, begin, late, output):
        seconds = time.monotonic() - begin
        good = process.poll() == 0 and not late
        output.seek(max(0, output.seek(0, os.SEEK_END) - 4000))
        text = output.read().decode(errors="replace") + (f"ran past its limit of {job.seconds} s" if late else "")
        self.failed += not good
        record = {"job": job.name, "ranks": job.ranks, "passed": good, "seconds": round(seconds, 1), "output": text}
        self.output.write(json.dumps(record) + "\n")
        self.output.flush()
        print(f"{'passed' if good else 'FAILED'} {job.name}, {seconds:.1f} s" + ("" if good else f":\n{text}"), flush=True)

    def reap(self):
        for entry in list(self.running):
            job, process, cores, begin, output = entry
            late = time.monotonic() - begin > job.seconds
            if process.poll() is None and not late:
                continue
            if late:
                end(process)
            self.running.remove(entry)
            self.free += cores
            with output:
                self.report(job, process, begin, late, output)

    def run(self, jobs):
        """The job that needs most cores first; a smaller one fills what is free."""
        waiting = sorted(jobs, key=lambda job: -job.ranks)
        while waiting or self.running:
            for job in [job for job in waiting if job.cores() <= len(self.free)]:
                if job.cores() > len(self.free):
                    continue
                cores, self.free = self.free[:job.cores()], self.free[job.cores():]
                waiting.remove(job)
                output = tempfile.TemporaryFile()
                self.running.append((job, start(job, cores, output), cores, time.monotonic(), output))
            time.sleep(0.02)
            self.reap()


def main():
    stages = {"exact": exact, "programs": programs, "kills": kills}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", choices=stages)
    parser.add_argument("--ranks", required=True, help="by comma")
    parser.add_argument("--bin", required=True, help="the folder of the programs")
    parser.add_argument("--output", required=True, help="JSON lines")
    options = parser.parse_args()
    ranks_list = [int(word) for word in options.ranks.split(",")]
    jobs = stages[options.stage](ranks_list, lambda name: os.path.abspath(os.path.join(options.bin, name)))
    with open(options.output, "w", encoding="utf-8") as output:
        runner = Runner(output)
        runner.run(jobs)
    print(f"{len(jobs) - runner.failed} passed, {runner.failed} failed")
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
