"""examples/ray_actors.py with Ray: an actor that is killed is named and replaced, and the result is the same."""
import re
import tempfile
import unittest

from .examples import EXAMPLES, Program

FIRST, STEPS, RANKS = 50, 150, 3


class Ray(unittest.TestCase):
    def actors(self, *options: str) -> str:
        with tempfile.TemporaryDirectory(prefix="ray") as folder:  # short: Ray puts sockets there
            program = Program([str(EXAMPLES / "ray_actors.py"), *options], RAY_TMPDIR=folder, RAY_USAGE_STATS_ENABLED="0", RAY_DEDUP_LOGS="0",
                              GYRE_MEET_TIMEOUT="60")
            try:
                self.assertEqual(program.wait(), 0, program.errors)
            finally:
                program.end()
        return program.output

    def result(self, output: str) -> str:
        found = re.search(rf"^{RANKS} actors end with 1 result: ([0-9a-f]+)$", output, re.M)
        assert found, output
        return found[1]

    def test_lost_actor(self) -> None:
        output = self.actors()
        lost = re.findall(r"^actor \d: step (\d+): .*rank 1 died", output, re.M)
        self.assertEqual(len(lost), RANKS - 1, output)
        for step in map(int, lost):
            self.assertTrue(FIRST <= step < STEPS, output)
        self.assertEqual(output.count(f"step {STEPS}: done"), RANKS, output)
        undisturbed = self.actors("--undisturbed")
        self.assertNotIn("died", undisturbed)
        self.assertEqual(self.result(output), self.result(undisturbed))


if __name__ == "__main__":
    unittest.main()
