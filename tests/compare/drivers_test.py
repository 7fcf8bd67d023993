#!/usr/bin/env python3
"""Every driver of perf/compare compiles, for the peers that are installed. The project's build has only gyre's own, and
perf/compare/run builds the others. Exit status 77: no peer is installed.

    drivers_test.py SOURCE_FOLDER"""
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
ROOT = Path(sys.argv[1]).resolve()
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "perf" / "compare"))
import libraries  # noqa: E402


def run(compiler: tuple[str, ...], *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*compiler, "-D_GNU_SOURCE", f"-I{ROOT / 'perf' / 'compare'}", *more], capture_output=True,
                          text=True, timeout=60, check=False)


def is_installed(compiler: tuple[str, ...], source: Path) -> bool:
    """The compiler is there, and it finds every header."""
    try:
        return run(compiler, "-E", "-o", "/dev/null", str(source)).returncode == 0
    except FileNotFoundError:
        return False


def main() -> int:
    tried, wrong = [], []
    for library in libraries.LIBRARIES:
        if not library.source or not library.compiler:
            continue
        source = ROOT / library.source
        if not is_installed(library.compiler, source):
            continue
        tried.append(library.name)
        done = run(library.compiler, "-fsyntax-only", "-Wall", "-Wextra", "-Werror", str(source))
        if done.returncode:
            wrong.append(library.name)
            print(done.stderr)
    print(f"compiled: {', '.join(tried) or 'none'}; wrong: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0 if tried else SKIPPED


if __name__ == "__main__":
    sys.exit(main())
