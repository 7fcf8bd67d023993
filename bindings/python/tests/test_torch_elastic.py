"""examples/torch_elastic.py under torchrun: a process or a whole agent is killed in the middle of training, and the job
goes on from the checkpoint to the loss of a run that was not disturbed."""
import math
import os
import re
import signal
import socket
import tempfile
import time
import unittest
from pathlib import Path
from typing import Callable, List, Tuple

from .examples import EXAMPLES, LIMIT_S, Program, rank_below

STEPS = 3000


def torchrun(checkpoint: Path, *options: str) -> Program:
    return Program(["-m", "torch.distributed.run", *options, str(EXAMPLES / "torch_elastic.py"), str(checkpoint), f"--steps={STEPS}"])


def alone(checkpoint: Path) -> Program:
    return torchrun(checkpoint, "--standalone", "--nproc-per-node=2", "--max-restarts=3")


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not holds():
        assert time.monotonic() < deadline, f"not so within {LIMIT_S} s"
        time.sleep(0.01)


class Elastic(unittest.TestCase):
    loss = math.nan

    @classmethod
    def setUpClass(cls) -> None:
        """The run that is not disturbed."""
        with tempfile.TemporaryDirectory() as folder:
            program = alone(Path(folder) / "run.pt")
            try:
                program.wait()
            finally:
                program.end()
        found = re.search(rf"^step {STEPS}: loss (\S+)$", program.output, re.M)
        assert program.process.returncode == 0 and found and "from step 0" in program.output, program.output + program.errors
        cls.loss = float(found[1])
        assert 0 < cls.loss < 0.1, cls.loss

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.checkpoint = Path(folder.name) / "run.pt"

    def started(self, program: Program) -> Program:
        self.addCleanup(program.end)
        return program

    def kill(self, program: Program, rank: int) -> int:
        """After the next checkpoint; the process that was killed."""
        before = self.written()
        wait_until(lambda: self.written() > before)
        process = rank_below(program.process.pid, rank)
        assert process is not None, "the job had ended before a rank was killed"
        os.kill(process, signal.SIGKILL)
        return process

    def written(self) -> int:
        """When the checkpoint was."""
        return self.checkpoint.stat().st_mtime_ns if self.checkpoint.exists() else 0

    def attempts(self, program: Program) -> List[Tuple[str, str, int]]:
        """Attempt, number of ranks, step from which it went on."""
        self.assertEqual(program.process.returncode, 0, program.output + program.errors)
        return [(attempt, ranks, int(step)) for attempt, ranks, step in
                re.findall(r"^attempt (\d+): (\d+) ranks go on from step (\d+)$", program.output, re.M)]

    def final_loss(self, program: Program) -> float:
        found = re.search(rf"^step {STEPS}: loss (\S+)$", program.output, re.M)
        assert found, program.output
        return float(found[1])

    def test_killed_ranks(self) -> None:
        """Rank 1, and in the second attempt rank 0, which writes the checkpoints."""
        program = self.started(alone(self.checkpoint))
        killed = self.kill(program, 1)
        wait_until(lambda: rank_below(program.process.pid, 1) not in (None, killed))
        self.kill(program, 0)
        program.wait()
        attempts = self.attempts(program)
        self.assertEqual([(attempt, ranks) for attempt, ranks, _ in attempts], [("0", "2"), ("1", "2"), ("2", "2")])
        steps = [step for _, _, step in attempts]
        self.assertTrue(0 == steps[0] < steps[1] < steps[2] < STEPS, steps)
        for rank in range(2):
            self.assertIn(f"rank {rank} died", program.errors)
        self.assertEqual(self.final_loss(program), self.loss)

    def agent(self, port: str, host: bool) -> Program:
        """One of up to two agents of a job, with a process each; `host`: the one that keeps the store."""
        conf = f"is_host={int(host)},last_call_timeout=15,keep_alive_interval=2,keep_alive_max_attempt=3"
        return self.started(torchrun(self.checkpoint, "--nnodes=1:2", "--nproc-per-node=1", "--max-restarts=3", "--rdzv-backend=c10d",
                                     f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=elastic", f"--rdzv-conf={conf}", "--local-addr=127.0.0.1"))

    def test_lost_agent(self) -> None:
        """The other agent goes on with one rank. The loss is the same up to rounding: sums have another order."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = str(probe.getsockname()[1])
        kept, lost = self.agent(port, True), self.agent(port, False)
        wait_until(self.checkpoint.exists)
        ranks = [rank for rank in range(2) if rank_below(lost.process.pid, rank)]
        self.assertEqual(len(ranks), 1, "the agents did not meet before the first checkpoint")
        lost.end()
        kept.wait()
        attempts = self.attempts(kept)
        (attempt, size, step) = attempts[-1]
        self.assertEqual((attempt, size), ("1", "1"), attempts)
        self.assertTrue(0 < step < STEPS, attempts)
        self.assertIn(f"rank {ranks[0]} died", kept.errors)
        self.assertTrue(math.isclose(self.final_loss(kept), self.loss, rel_tol=1e-3), f"{self.final_loss(kept)} is not {self.loss}")


if __name__ == "__main__":
    unittest.main()
