"""Whole worlds from bootstrap to end, a process per rank: deaths, errors, ways to bootstrap. The programs are those
of programs.py."""
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Dict, List, Optional

from gyre._compiled import compiled

LIMIT_S = 120.0
SECRET = "a-secret-of-the-tests-0123456789"


def environment(**more: str) -> Dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GYRE_") or name == "GYRE_LIBRARY"}
    return {**kept, "GYRE_LOG": "error", "PYTHONDONTWRITEBYTECODE": "1", **more}


class Worlds(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def start(self, program: str, **more: str) -> "subprocess.Popen[str]":
        command = [sys.executable, "-X", "dev", "-m", "tests.programs", program]
        process = subprocess.Popen(
            command, env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.addCleanup(self.end, process)
        return process

    def end(self, process: "subprocess.Popen[str]") -> None:
        if process.poll() is None:
            process.kill()
        process.communicate()

    def gather(self, processes: List["subprocess.Popen[str]"], killed: Optional[int] = None) -> List[str]:
        """What they print; each ends well, but for the one that is killed."""
        outputs = []
        deadline = time.monotonic() + LIMIT_S
        for rank, process in enumerate(processes):
            out, err = process.communicate(timeout=max(deadline - time.monotonic(), 1))
            wanted = -signal.SIGKILL if rank == killed else 0
            self.assertEqual(process.returncode, wanted, f"rank {rank}: {out}\n{err}")
            if rank != killed:
                self.assertTrue(out.endswith("ok\n"), out)
            outputs.append(out)
        return outputs

    def ranks(self, program: str, ranks: int, **more: str) -> "List[subprocess.Popen[str]]":
        place = f"file://{self.folder.name}/{program}-{more.get('GYRE_TRANSPORT', '')}"
        common = {"WORLD_SIZE": str(ranks), "GYRE_ADDRESS": place, "GYRE_SECRET": SECRET, **more}
        return [self.start(program, RANK=str(rank), **common) for rank in range(ranks)]

    def both(self, program: str, ranks: int = 2, killed: Optional[int] = None) -> None:
        """Over both transports, at the same time."""
        for processes in [self.ranks(program, ranks, GYRE_TRANSPORT=transport) for transport in ("shm", "tcp")]:
            self.gather(processes, killed)

    def test_death(self) -> None:
        self.both("death", 4, killed=3)

    def test_recovery(self) -> None:
        self.both("recover", 4, killed=3)

    def test_torchrun(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        processes = [
            self.start(
                "torchrun",
                RANK=str(rank),
                WORLD_SIZE="3",
                LOCAL_RANK=str(rank),
                LOCAL_WORLD_SIZE="3",
                MASTER_ADDR="127.0.0.1",
                MASTER_PORT=str(port),
            )
            for rank in range(3)
        ]
        self.gather(processes)

    def test_exchange(self) -> None:
        self.gather(
            [
                self.start("by_exchange", TEST_RANK=str(rank), TEST_SIZE="3", TEST_FOLDER=self.folder.name)
                for rank in range(3)
            ]
        )

    def test_operation_that_raises(self) -> None:
        outputs = self.gather(self.ranks("operation_raises", 2))
        self.assertTrue(any("cause" in out for out in outputs))

    def test_mismatch(self) -> None:
        self.both("mismatch")

    def test_fork(self) -> None:
        self.both("fork")

    def test_left_open(self) -> None:
        self.both("left_open")

    def test_memory_in_use(self) -> None:
        self.both("memory_in_use")

    def test_group_that_an_exception_leaves(self) -> None:
        self.both("group_raises")

    def test_close_under_way(self) -> None:
        self.both("close_under_way")

    def test_progress_thread(self) -> None:
        self.gather(self.ranks("progress_thread", 2, GYRE_PROGRESS_THREAD="1"))

    @unittest.skipUnless(compiled, "Ctrl-C ends waits by the compiled module")
    def test_interrupts(self) -> None:
        for way in ("blocking", "elsewhere", "request", "persistent", "any", "group", "split", "window"):
            with self.subTest(way):
                self.gather(self.ranks("interrupt", 2, TEST_WAY=way, TEST_COUNT="10"))
        for transport in ("shm", "tcp"):
            with self.subTest(transport):
                self.gather(self.ranks("interrupt", 2, TEST_WAY="blocking", TEST_COUNT="200000", GYRE_TRANSPORT=transport))

    def test_a_handler_of_ones_own(self) -> None:
        self.gather(self.ranks("own_handler", 2))

    def test_an_interrupted_meeting(self) -> None:
        place = {"WORLD_SIZE": "2", "GYRE_ADDRESS": f"file://{self.folder.name}/alone", "GYRE_SECRET": SECRET}
        self.gather([self.start("interrupted_meeting", RANK="0", **place)])

    def test_two_worlds(self) -> None:
        self.both("two_worlds")


class OneProcess(unittest.TestCase):
    """Needs no other rank: a line of Python in a process of its own, since settings are read when a world is made."""

    def run_code(self, code: str, **more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment(**more), capture_output=True, text=True, timeout=LIMIT_S
        )
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def sentence(self, kind: str, call: str, **more: str) -> str:
        return self.run_code(f"import gyre\ntry: {call}\nexcept gyre.{kind} as e: print(e, e.__cause__)\nelse: exit(1)", **more)

    def test_a_rank_that_is_missing(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            text = self.sentence(
                "MeetingFailed",
                f"gyre.create(rank=0, world_size=2, address='file://{folder}/meet', secret='{SECRET}')",
                GYRE_MEET_TIMEOUT="0.5",
            )
        self.assertIn("1", text)
        self.assertRegex(text, "rank")

    def test_configuration(self) -> None:
        self.assertIn("GYRE_TIMEOUT", self.sentence("BadConfiguration", "gyre.create(rank=0, world_size=1)", GYRE_TIMEOUT="x"))
        self.assertIn("GYRE_TIMEOUT", self.sentence("BadConfiguration", "gyre.config_check()", GYRE_TIMOUT="1"))
        self.assertIn("go together", self.sentence("InvalidArgument", "gyre.create(rank=0)"))

    def test_exchange_that_fails(self) -> None:
        create = "gyre.create(rank=0, world_size=2, exchange=lambda mine: {})"
        self.assertIn("division by zero", self.sentence("Error", create.format("1/0")))
        self.assertIn("bytes", self.sentence("Error", create.format("[mine]")))
        self.assertIn("pieces", self.sentence("Error", create.format("[mine, b'']")))
        self.assertIn("need", self.sentence("InvalidArgument", "gyre.create(exchange=lambda mine: mine)"))

    def test_library(self) -> None:
        code = "try: import gyre\nexcept ImportError as e: print(e)\nelse: exit(1)"
        self.assertIn("GYRE_LIBRARY names /nowhere", self.run_code(code, GYRE_LIBRARY="/nowhere/libgyre.so"))
        self.assertIn("has no function gyre_", self.run_code(code, GYRE_LIBRARY="libc.so.6"))

    def test_one_rank(self) -> None:
        code = "import gyre\nwith gyre.create(rank=0, world_size=1) as c:\n x=bytearray(b'a'); c.all_reduce(x); print(c, x)"
        self.assertIn("rank 0 of 1> bytearray(b'a')", self.run_code(code))


if __name__ == "__main__":
    unittest.main()
