#!/usr/bin/python3
"""What the documents name must exist, and they must stay short.

In every .md file of the tree: links lead to a file, and to a heading of it; paths, functions, settings, tests, scripts,
stages of .ci/run and programs in backquotes and blocks of code exist. A table below a comment `<!-- COMMAND -->` is the
command's output (scripts/documents). Documents have a limit of bytes each (LIMITS), docs/evidence.md of lines and
characters. Their language is the matter of scripts/language.

The pages of docs/man that are written by hand have the options of the programs' --help; gyre-perf's also has its
algorithms.

Usage: documents_test.py ROOT BUILD"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST, MOST_LINES = 160, 110  # of docs/evidence.md: characters of a line, lines
KIB = 1024
# Bytes of all files that a pattern matches together, at most. Manual pages do not count.
LIMITS = {
    "README.md": 9 * KIB, "docs/design.md": 30 * KIB, "docs/extending.md": 8 * KIB, "docs/evidence.md": 16 * KIB,
    "docs/wire.md": 15 * KIB,
    "docs/security.md": 15 * KIB, "docs/tuning.md": 15 * KIB, "docs/training.md": 15 * KIB, "docs/deploy.md": 15 * KIB,
    "docs/measured/*": 40 * KIB, "docs/**/*.md": 180 * KIB, "perf/results/**/*": 3 * KIB * KIB,
}
FOREIGN = {"build", "out", "shared", "node_modules"}  # folders of the root that are not the tree's
GENERATED = {"results", "corpus"}
PARTS = set("src include nn tools perf bindings examples tests docs scripts cmake packaging".split())
SOURCES = set(" .c .h .py .sh .cpp .cmake .txt .yaml".split(" "))


def output_of(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=200, check=True).stdout


def documents(root: Path) -> list[Path]:
    tops = [p for p in root.iterdir() if p.name not in FOREIGN and not p.name.startswith(".")]
    return sorted(p for top in tops for p in ([top] if top.is_file() else top.rglob("*.md")) if p.suffix == ".md")


def anchors(text: str) -> set[str]:
    """The names that a forge gives to headings: lower case, no punctuation, hyphens for blanks."""
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"(?m)^#+ +(.+)$", text)}


def blocks(text: str) -> list[str]:
    return re.findall(r"(?ms)^```\w*\n(.*?)^```", text)


def without_blocks(text: str) -> str:
    return re.sub(r"(?ms)^```.*?^```", "", text)


class Tree:
    """What there is to be named."""

    def __init__(self, root: Path, build: Path) -> None:
        self.root = root
        listing = output_of("ctest", "--test-dir", build, "-N")
        self.tests = re.findall(r"(?m)^ *Test +#\d+: (\S+)", listing)
        self.suites = {re.split(r"[./]", t)[0] for t in self.tests}
        self.stages = set(re.findall(r"(?m)^stage_(\w+)\(\)", (root / ".ci/run").read_text()))
        sources = [
            p for part in sorted(PARTS - {"docs"}) for p in (root / part).rglob("*")
            if p.suffix in SOURCES and p.is_file() and p.stat().st_size < 2**19 and not GENERATED & set(p.parts)
        ] + [root / "CMakeLists.txt"]
        text = "\n".join(p.read_text(errors="ignore") for p in sources)
        self.files = {"/" + str(p.relative_to(root)) for part in PARTS for p in (root / part).rglob("*")}
        self.settings = set(re.findall(r"GYRE_[A-Z0-9_]+", text))
        self.words = set(re.findall(r"\bgyre[-_][a-z0-9_-]+|\bgy_[a-z0-9_]+", text))

    def names_test(self, pattern: str) -> bool:
        return any(re.search(pattern, name) for name in self.tests)

    def is_test(self, word: str) -> bool:
        """True if the word reads as a test: it begins with a suite's name and is no path or name of a file, and no
        module of Python."""
        if word.startswith("torch.distributed"):
            return False
        suite = re.match(r"\w+[./]", word)
        known = suite is not None and any(name.startswith(suite[0]) for name in self.tests)
        return known and not re.search(r"NAME|\.(c|h|py|sh|md|json|cpp)\b", word) and self.missing_path(word)

    def missing_path(self, word: str) -> bool:
        path = word.split(":")[0].rstrip("/,.")
        if re.search(r"/(DATE|[A-Z]+)(-\w+)?$", path):  # DATE-WHAT stands for a name
            return False
        path = re.split(r"/[^/]*NAME", path)[0]  # src/transport/NAME/NAME.c: the folder
        alternatives = [path]
        while any("{" in a for a in alternatives):  # {a,b} as a shell reads it
            alternatives = [a.replace(m.group(0), one, 1) for a in alternatives
                            if (m := re.search(r"\{([^{}]*)\}", a)) for one in m.group(1).split(",")]
        return not all(any(self.root.glob(a)) for a in alternatives)


def faults_of_command(tree: Tree, code: str) -> Iterator[str]:
    words = code.replace("\\|", "|").split()
    for before, word in zip(["", *words], words):
        if re.fullmatch(r"(?:\.ci|" + "|".join(PARTS) + r")/[\w./*{},-]*", word) and tree.missing_path(word):
            if "/" in word.rstrip("/") and not tree.names_test("^" + re.escape(word)) and "..." not in word:
                yield f"no file {word}"
        if re.fullmatch(r"gyre-[a-z]+", word) and word not in tree.words:
            yield f"no program {word}"
        if before == "-R" and not tree.names_test(word.strip("\"'")):
            yield f"no test matches {word}"
    if words and words[0] == ".ci/run":
        yield from (f".ci/run has no stage {w}" for w in words[1:] if w not in tree.stages)
    for setting in re.findall(r"\bGYRE_[A-Z0-9_]*[A-Z0-9]\b(?![*_])", code):
        if setting not in tree.settings:
            yield f"no setting or constant {setting}"
    for function in re.findall(r"\bgy(?:re)?_[a-z0-9_]*[a-z0-9]\b(?![*_])", code):
        if function not in tree.words:
            yield f"no function or type {function}"


def faults(tree: Tree, path: Path) -> Iterator[str]:
    text = path.read_text()
    plain = without_blocks(text)
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`\n]*`", "", plain)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        to = path.parent / file if file else path
        if not to.exists():
            yield f"dead link {target}"
        elif anchor and anchor not in anchors(to.read_text()):
            yield f"no heading for {target}"
    for code in re.findall(r"`([^`\s]+\.(?:c|h|inc|pml|map))`", plain):  # a file without its folder
        if not re.search(r"NAME|[*{]", code) and not any(file.endswith("/" + code) for file in tree.files):
            yield f"no file {code} anywhere"
    for code in re.findall(r"`(\w+[./][^`\s]+)`", plain):
        if tree.is_test(code.replace("\\|", "|")) and not tree.names_test("^" + code.replace("\\|", "|")):
            yield f"no test matches {code}"
    for code in re.findall(r"`([^`\n]+)`", plain) + [line for block in blocks(text) for line in block.splitlines()]:
        yield from faults_of_command(tree, code)


def faults_of_size(root: Path) -> Iterator[str]:
    for pattern, most in LIMITS.items():
        files = [path for path in root.glob(pattern) if path.is_file() and not path.match("launches*.jsonl")]
        size = sum(path.stat().st_size for path in files)
        if size == 0:
            yield f"{pattern}: no such file"
        if size > most:
            yield f"{pattern} has {size} bytes, more than {most}"


def faults_of_tables(root: Path) -> list[str]:
    found = subprocess.run([root / "scripts/documents", "--check"], capture_output=True, text=True, timeout=200)
    return (found.stdout + found.stderr).splitlines() or ["scripts/documents failed"] if found.returncode else []


def faults_of_evidence(tree: Tree, text: str) -> Iterator[str]:
    if len(text.splitlines()) > MOST_LINES:
        yield f"{len(text.splitlines())} lines, more than {MOST_LINES}"
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > LONGEST:
            yield f"line {number} has {len(line)} characters, more than {LONGEST}"
        if not line.startswith("|"):
            continue
        cells = re.split(r"(?<!\\)\|", line)[1:-1]
        if len(cells) != 4:
            yield f"line {number} has {len(cells)} columns instead of claim, command, figure, date"
            continue
        if not re.fullmatch(r" (date|\d{4}-\d\d-\d\d) |-+", cells[3]):
            yield f"line {number} has no date"
        for code in re.findall(r"`([^`]+)`", cells[1]):
            pattern = code.replace("\\|", "|").split(" ")[0]
            first = re.split(r"[./(]", pattern)[0]
            known = first not in PARTS and (first in tree.suites or first.startswith("fuzz_"))
            if known and not tree.names_test(pattern):
                yield f"line {number}: no test matches {pattern}"


def faults_of_pages(root: Path, build: Path) -> Iterator[str]:
    """The pages of programs are written by hand: they have the options that --help has, and no other."""
    for page in sorted((root / "docs/man").glob("gyre-*.1")):
        programs = [p for pattern in ("*", "*/*") for p in build.glob(f"{pattern}/{page.stem}") if p.is_file()]
        if not programs:
            yield f"{page.stem} has a manual page and is not built"
            continue
        said = output_of(programs[0], "--help")
        helped = set(re.findall(r"(?m)^ {2,6}(?:-[\w?], )?--([a-z-]+)", said)) - {"usage"}
        text = re.sub(r"\\f.", "", page.read_text()).replace("\\-", "-")
        entries = re.findall(r"(?m)^\.TP\n(.*)$", text)
        written = {name for entry in entries for name in re.findall(r"--([a-z-]+)", entry)}
        short = {"-" + letter for entry in entries for letter in re.findall(r"(?<![\w-])-(\w)\b", entry)}
        long_of = dict(re.findall(r"(?m)^ {2}(-\w), --([a-z-]+)", said))
        written |= {long_of[s] for s in short if s in long_of}
        yield from (f"{page.name} lacks --{name}" for name in sorted(helped - written))
        yield from (f"{page.name} has --{name}, which {page.stem} does not know" for name in sorted(written - helped))


def faults_of_algorithms(root: Path, build: Path) -> Iterator[str]:
    """gyre-perf.1 names the algorithms that --help has from the library's table."""
    helped = re.search(r"--algorithm=NAME(.*?)or by default", output_of(build / "perf/gyre-perf", "--help"), re.S)
    written = re.search(r"algorithm= NAME\nForce (.*)\.", (root / "docs/man/gyre-perf.1").read_text())
    names = [set(re.findall(r"\w+", match[1])) - {"or"} if match else set() for match in (helped, written)]
    if not names[0] or names[0] != names[1]:
        yield f"gyre-perf.1 and gyre-perf --help do not name the same algorithms: {sorted(names[0] ^ names[1])}"


def main() -> int:
    root, build = Path(sys.argv[1]), Path(sys.argv[2])
    tree = Tree(root, build)
    found = [f"{path.relative_to(root)}: {fault}" for path in documents(root) for fault in faults(tree, path)]
    found += [*faults_of_tables(root), *faults_of_size(root)]
    evidence = (root / "docs/evidence.md").read_text()
    found += [f"docs/evidence.md: {fault}" for fault in faults_of_evidence(tree, evidence)]
    pages = [*faults_of_pages(root, build), *faults_of_algorithms(root, build)]
    found += [f"docs/man: {fault}" for fault in pages]
    print("\n".join(found) or f"{len(documents(root))} documents name nothing that is not there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
