"""The examples of other engines, as programs in processes of their own."""
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Dict, List, Optional

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
LIMIT_S = 180.0  # a loaded machine needs a minute to start Ray, or torch in three processes


def environment(**more: str) -> Dict[str, str]:
    """Without the variables of launchers and of gyre that a caller may have set."""
    dropped = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    kept = {name: value for name, value in os.environ.items() if name not in dropped}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}


class Program:
    """A command, which ends with all that it has started."""

    def __init__(self, command: List[str], **more: str) -> None:
        self.process = subprocess.Popen([sys.executable, *command], env=environment(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.output = self.errors = ""

    def wait(self, limit_s: float = LIMIT_S) -> int:
        self.output, self.errors = self.process.communicate(timeout=limit_s)
        return self.process.returncode

    def end(self) -> None:
        for process in [*children(self.process.pid), self.process.pid] if self.process.poll() is None else []:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.communicate()


def children(process: int) -> List[int]:
    """All processes below it."""
    found: List[int] = []
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            below = [int(child) for child in tasks.read_text().split()]
        except (FileNotFoundError, ProcessLookupError):
            continue
        for child in below:
            found += [child, *children(child)]
    return found


def rank_below(process: int, rank: int) -> Optional[int]:
    """The process of a rank that a launcher has started."""
    for child in children(process):
        try:
            variables = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"RANK=%d" % rank in variables:
            return child
    return None
