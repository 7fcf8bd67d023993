"""The console scripts of the wheel. Each replaces the interpreter by the program of that name in the package's
folder bin."""
import os
import sys
from pathlib import Path
from typing import NoReturn

FOLDER = Path(__file__).resolve().parent / "bin"


def _execute(name: str) -> NoReturn:
    program = FOLDER / name
    if not program.is_file():
        sys.exit(f"{name}: this package has no programs; the wheel has them, and so do cmake --install and the Debian packages")
    os.execv(program, [str(program), *sys.argv[1:]])


def run() -> NoReturn:
    _execute("gyre-run")


def perf() -> NoReturn:
    _execute("gyre-perf")


def info() -> NoReturn:
    _execute("gyre-info")


def top() -> NoReturn:
    _execute("gyre-top")


def train() -> NoReturn:
    _execute("gyre-train")
