#!/usr/bin/env python3
"""container_test.py SOURCE: packaging/container/Containerfile, as far as it can be checked without building it.

Every instruction is known, the files that are copied exist, and the commands of RUN are a shell's. The packages that
are installed are those that the tree makes, the programs and settings exist, and no secret is in it. The steps
themselves are run by the stage `package`: it makes these packages and installs them in a bare root. Then each of
some deliberate mistakes must be found."""
import glob
import json
import os
import re
import subprocess
import sys

INSTRUCTIONS = {"FROM", "COPY", "WORKDIR", "RUN", "VOLUME", "EXPOSE", "USER", "ENTRYPOINT", "CMD", "ENV"}


def read(text: str) -> list[tuple[str, str]]:
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.M))
    steps = []
    for line in filter(None, map(str.strip, joined.splitlines())):
        word, _, rest = line.partition(" ")
        if word not in INSTRUCTIONS or not rest:
            raise ValueError(f"no instruction: {line}")
        steps.append((word, rest.strip()))
    return steps


def check(text: str, source: str) -> None:
    steps = read(text)
    words = [word for word, _ in steps]
    if words[0] != "FROM" or words.count("FROM") != 2:
        raise ValueError("there are not two stages")
    stage = re.search(r" AS (\w+)$", steps[0][1])
    if not stage:
        raise ValueError("the first stage has no name")
    with open(os.path.join(source, "CMakeLists.txt"), encoding="utf-8") as file:
        found = re.search(r"set\(GYRE_SOVERSION (\d+)\)", file.read())
    packages = {f"libgyre{found.group(1)}", f"libgyre-nn{found.group(1)}", "gyre-tools"} if found else set()
    for word, rest in steps:
        if word == "COPY" and "--from=" in rest:
            if f"--from={stage.group(1)} /src/build/package/packages/" not in rest:
                raise ValueError(f"nothing makes what is copied: {rest}")
        elif word == "COPY" and rest.split() != [".", "/src"]:
            raise ValueError(f"the whole tree is to be copied: {rest}")
        elif word == "RUN":
            if subprocess.run(["sh", "-nc", rest], capture_output=True, check=False).returncode:
                raise ValueError(f"no shell understands: {rest}")
            for script in re.findall(r"scripts/[\w-]+", rest):
                if not os.access(os.path.join(source, script), os.X_OK):
                    raise ValueError(f"there is no {script}")
            installed = set(re.findall(r"/packages/([\w-]+)_\*\.deb", rest))
            if installed and installed != packages:
                raise ValueError(f"the packages are {packages}, installed are {installed}")
        elif word in ("ENTRYPOINT", "CMD", "VOLUME"):
            values = json.loads(rest)
            program = os.path.basename(values[0]) if word == "ENTRYPOINT" else None
            if program and not glob.glob(os.path.join(source, "tools", "*", program + ".c")):
                raise ValueError(f"there is no program {program}")
        elif word == "USER" and rest in ("root", "0"):
            raise ValueError("it runs as root")
        elif word == "ENV" and "SECRET" in rest:
            raise ValueError("a secret in an image")
    if not {"USER", "ENTRYPOINT", "VOLUME"} <= set(words) or not any("apt-get install" in rest for _, rest in steps):
        raise ValueError("a user, a program, volumes or packages are missing")


MISTAKES = [("COPY . /src", "COPI . /src"), ("scripts/package", "scripts/pack"), ("libgyre1_", "libgyre2_"), ("USER gyre", "USER root"),
            ("--from=build", "--from=other"), ('["/usr/bin/gyre-run"]', '["/usr/bin/gyre-walk"]'), ("&& rm", "&& && rm"), ("VOLUME", "# VOLUME"),
            ("USER gyre", "ENV GYRE_SECRET=0123456789abcdef0123456789abcdef\nUSER gyre"), (" AS build", ""), ('["-n", "2"', '["-n", 2 "')]


def main() -> int:
    source = sys.argv[1]
    with open(os.path.join(source, "packaging/container/Containerfile"), encoding="utf-8") as file:
        text = file.read()
    check(text, source)
    missed = []
    for right, wrong in MISTAKES:
        broken = text.replace(right, wrong)
        try:
            check(broken, source)
            missed.append(wrong)
        except ValueError:
            pass
        if broken == text:
            missed.append(f"{right} is not there")
    if missed:
        print("mistakes that were not found:", missed, file=sys.stderr)
    print(f"the recipe is right, {len(MISTAKES) - len(missed)} of {len(MISTAKES)} mistakes are found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
