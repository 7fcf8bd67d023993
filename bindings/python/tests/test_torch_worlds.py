"""How groups of gyre.torch begin and end: stores, launchers, limits of time, aborts."""
import os
import re
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Dict, List

LIMIT_S = 100


def run(case: str, ranks: int, **variables: str) -> List[str]:
    """What each rank printed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "tests.torch_world", case, f"{folder}/store"]
        started = [subprocess.Popen(command, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(ranks), **variables},
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(ranks)]
        try:
            outputs = [process.communicate(timeout=LIMIT_S)[0] for process in started]
        finally:
            for process in started:
                process.kill()
                process.communicate()
        for process, output in zip(started, outputs):
            if process.returncode:
                raise AssertionError(f"{case}: exit status {process.returncode}: {output}")
        return outputs


def free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class Worlds(unittest.TestCase):
    def test_environment(self) -> None:
        run("environment", 2, MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port())

    def torchrun(self, case: str, *options: str) -> str:
        variables: Dict[str, str] = {**os.environ}
        for name in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            variables.pop(name, None)
        done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *options, "-m", "tests.torch_world",
                               case], env=variables, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_torchrun(self) -> None:
        self.torchrun("environment")

    def test_entry_point(self) -> None:
        """What an installed package tells torch; without an import of gyre.torch."""
        with tempfile.TemporaryDirectory() as folder:
            metadata = Path(folder) / "gyre-0.dist-info"
            metadata.mkdir()
            (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: gyre\nVersion: 0\n")
            project = (Path(__file__).resolve().parents[1] / "pyproject.toml").read_text()
            group, entry = re.findall(r'\[project\.entry-points\."(.*)"\]\n(.*)\n', project)[0]
            (metadata / "entry_points.txt").write_text(f"[{group}]\n{entry}\n".replace('"', ""))
            program = "\n".join(["import sys, torch.distributed as dist", "assert 'gyre' not in sys.modules",
                                 "if not hasattr(dist.Backend, '_ensure_backend_registered'): sys.exit('skipped')",
                                 "dist.init_process_group(sys.argv[1], store=dist.HashStore(), rank=0, world_size=1)", "dist.barrier()"])
            path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
            for name in ("gyre", "cpu:gyre"):
                done = subprocess.run([sys.executable, "-c", program, name], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
                                      timeout=LIMIT_S)
                if done.stderr == "skipped\n":
                    self.skipTest("this torch has no entry points for backends")
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_restart(self) -> None:
        output = self.torchrun("restarted", "--max-restarts=1")
        for rank in range(2):
            self.assertIn(f"attempt 1: rank {rank} of 2 is done", output)
        self.assertNotIn("attempt 0", output)

    def test_death(self) -> None:
        output = run("death", 3)
        ended = float(output[1].split()[1])
        for rank in (0, 2):
            found = re.search(rf"rank {rank} raised ([0-9.]+) gyre: .*rank 1 died", output[rank])
            assert found, output[rank]
            self.assertLess(float(found[1]) - ended, 1.0)

    def test_spawn(self) -> None:
        run("spawn", 1)

    def test_threads(self) -> None:
        run("threads", 1)

    def test_timeout(self) -> None:
        output = run("timeout", 2)[0]
        self.assertRegex(output, "rank 0 raised: gyre: all_reduce #1 of rank 0 did not end within 0.2 s")
        self.assertRegex(output, "rank 0 raised: gyre: barrier: .*rank 1")

    def test_missing_rank(self) -> None:
        self.assertRegex(run("missing", 1)[0], "rank 0 raised: .*rank 1 did not come within 2 s")

    def test_abort(self) -> None:
        output = run("aborted", 2)
        self.assertRegex(output[1], "rank 1 raised: gyre: all_reduce: rank 0 aborted")
        for rank in range(2):
            self.assertNotIn("taken away", output[rank])
            if "hook" in output[0]:  # torch 2.15
                self.assertIn(f"the hook of rank {rank}", output[rank])


if __name__ == "__main__":
    unittest.main()
