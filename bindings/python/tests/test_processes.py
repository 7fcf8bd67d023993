"""examples/processes.py: what it prints, and what happens when a process is lost while the ranks meet."""
import tempfile
import unittest

from .examples import EXAMPLES, Program

LOST = """
import os, sys
sys.path.insert(0, {folder!r})
import processes

def work(rank, pipe):
    if rank == 1:
        os._exit(9)
    kept(rank, pipe)

kept = processes.work
if __name__ == "__main__":
    processes.work = work
    sys.exit(processes.main())
"""


class Processes(unittest.TestCase):
    def run_program(self, path: str) -> Program:
        program = Program([path])
        self.addCleanup(program.end)
        program.wait(60)
        return program

    def test_example(self) -> None:
        program = self.run_program(str(EXAMPLES / "processes.py"))
        self.assertEqual(program.process.returncode, 0, program.errors)
        self.assertEqual(sorted(program.output.splitlines()), [f"rank {rank} of 3: 3 6 9 12" for rank in range(3)])

    def test_lost_while_the_ranks_meet(self) -> None:
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(LOST.format(folder=str(EXAMPLES)))
            file.flush()
            program = self.run_program(file.name)
        self.assertEqual(program.process.returncode, 9, program.errors)
        self.assertEqual(program.errors.count("MeetingFailed:"), 2, program.errors)


if __name__ == "__main__":
    unittest.main()
