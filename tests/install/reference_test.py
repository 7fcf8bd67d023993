#!/usr/bin/env python3
"""The reference as HTML (scripts/reference) has a page of every public function, and no link in it is dead.

Usage: reference_test.py ROOT FOLDER; exit status 77: there is no mandoc."""

import re
import subprocess
import sys
from pathlib import Path


def faults(root: Path, folder: Path) -> list[str]:
    functions = [name for list_ in ("exports.txt", "exports-nn.txt")
                 for name in re.findall(r"(?m)^(gyre_\w+)", (root / "tests/install" / list_).read_text())]
    found = [f"{name} has no page" for name in functions if not (folder / f"{name}.3.html").exists()]
    index = (folder / "index.html").read_text()
    found += [f"index.html lacks {name}" for name in functions if f'"{name}.3.html"' not in index]
    links = 0
    for page in sorted(folder.glob("*.html")):
        for target in re.findall(r'href="([^"#:]+)"', page.read_text()):
            links += 1
            if not (folder / target).exists():
                found.append(f"{page.name}: dead link {target}")
    if len(functions) < 200 or links < 5 * len(functions):
        found.append(f"only {len(functions)} functions and {links} links")
    print(f"{len(functions)} functions, {links} links")
    return found


def main() -> int:
    root, folder = Path(sys.argv[1]), Path(sys.argv[2])
    made = subprocess.run([root / "scripts/reference", "-o", folder], timeout=200)
    if made.returncode:
        return made.returncode
    found = faults(root, folder)
    print("\n".join(found[:40]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
