#!/usr/bin/env python3
"""scripts/language finds each fault that SAMPLES plants, on its line and nothing else, and none in the tree.

Usage: language_test.py ROOT"""

import subprocess
import sys
import tempfile
from pathlib import Path

LONG = " ".join(["word"] * 36) + "."  # a sentence
WIDE = "x" * 119
# (file, text, line and beginning of the fault; none where there is no fault)
SAMPLES = [
    ("a.c", '/* Fine. */\nchar *s = "nobody // who";\n', None),
    ("a.c", "int x;\n/* Sent to nobody. */\n", "2: 'nobody'"),
    ("a.c", "/* One.\n *\n * The door of it. */\n", "3: 'door'"),
    ("a.c", "/* The frame SEAT, and \"a seat\" and `door`, and its indoor test. */\n", None),
    ("a.h", "/* Is it there? */\nbool there(void);\n", "1: a question"),
    ("a.h", "/* True if it is there. */\nbool there(void);\n", None),
    ("a.c", f"int x; /* {LONG} */\n".replace("word word word", "word word\nword"), "1: a sentence of 36 words"),
    ("a.c", f"/* {LONG[5:]} */\n", "1: a comment line"),
    ("a.c", f"/* a {WIDE} */\n", "1: a comment line of 127 columns"),
    ("a.c", f'char *{WIDE}x = "y";\n', None),
    ("a.cpp", f"// One\n// who\nint x = '\"'; // fine\n", "2: 'who'"),
    ("a.cu", 'R"(/* who */)";\n// somebody\n', "2: 'somebody'"),
    ("a.h", f"/* name   meaning\n * one    {LONG[:80]}\n *    {LONG[80:]}\n */\n", None),
    ("a.py", '"""A module."""\nwho = "# who"  # fine\n', None),
    ("a.py", '"""A module."""\n\n\ndef f():\n    """One.\n\n    Who?"""\n', "7: 'Who'"),
    ("a.py", "x = 1  # everybody\n", "1: 'everybody'"),
    ("a.sh", "#!/bin/bash\necho $# 'a # who' \"# who\" x#who\n", None),
    ("a.sh", "#!/bin/bash\ntrue # whoever\n", "2: 'whoever'"),
    ("a.sh", f"# {LONG[:90]}\n# {LONG[90:]}\n", "1: a sentence of 36 words"),
    ("run", "#!/bin/bash\n# One.\n# Whom.\n", "3: 'Whom'"),
    ("CMakeLists.txt", "project(x) # who\n", "1: 'who'"),
    ("a.md", f"Fine, who reads.\n\n{LONG}\n", " a sentence of 36 words"),
    ("a.md", "A council.\n", " 'council'"),
    ("a.md", "A `council`.\n\n| council |\n", " 'council'"),
    ("a.md", "A `council`.\n\n```\ncouncil\n```\n", None),
]


def language(root: Path, *files: Path) -> tuple[int, list[str]]:
    done = subprocess.run([root / "scripts/language", *files], capture_output=True, text=True, timeout=50)
    return done.returncode, (done.stdout + done.stderr).splitlines()


def faults_of_sample(root: Path, folder: Path, name: str, text: str, fault: str | None) -> list[str]:
    path = folder / name
    path.write_text(text)
    status, lines = language(root, path)
    wanted = [f"{path}:{fault}"] if fault else []
    right = len(lines) == len(wanted) + 1 and all(line.startswith(want) for line, want in zip(lines, wanted))
    if right and status == len(wanted):
        return []
    return [f"{text!r}: status {status}, wanted {fault}:", *lines]


def main() -> int:
    root = Path(sys.argv[1]).resolve()
    found: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, text, fault in SAMPLES:
            found += faults_of_sample(root, Path(folder), name, text, fault)
    status, lines = language(root)
    print("\n".join(lines))
    if status or not lines or int(lines[-1].split()[0]) < 700:
        found.append("the tree has faults, or few of its files were read")
    print("\n".join(found) or f"{len(SAMPLES)} samples")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
