#!/usr/bin/env python3
"""The completions of bash and zsh, asked as the shells ask: the words that a line can go on with.

Usage: completions_test.py bash|zsh FOLDER-OF-COMPLETIONS PROGRAM...    Skipped (77) without that shell."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHELL, FOLDER, PROGRAMS = sys.argv[1], Path(sys.argv[2]), sys.argv[3:]
OPS = "sum product min max average bit_and bit_or bit_xor all".split()
failures = 0


def check(good, *what):
    global failures
    if not good:
        print("FAILED:", *what)
        failures += 1


def options_of(program):
    said = subprocess.run([program, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout
    return set(re.findall(r"(?:^ {2,6}(?:-[\w?], )?|, )(--[a-z][a-z_-]*)", said, re.M))


def ask_bash(name, words):
    """What bash makes of `name words...` with the cursor behind the last one. `=` is a word of its own, as in bash."""
    split = [part for word in words for part in re.split(r"(=)", word) if part or word == ""]
    script = f'''source "{FOLDER}/bash/{name}.bash"
COMP_WORDS=({name} "${{@}}") COMP_CWORD=$#
{"_" + name.replace("-", "_")}
printf '%s\\n' "${{COMPREPLY[@]}}"'''
    done = subprocess.run(["bash", "--norc", "-c", script, "bash", *split], capture_output=True, text=True, timeout=60)
    check(done.returncode == 0 and not done.stderr, name, words, done.stderr)
    return set(done.stdout.split())


def test_bash():
    for program in PROGRAMS:
        name = Path(program).name
        found = {word.rstrip("=") for word in ask_bash(name, ["--"])}
        check(found == options_of(program), name, "differs:", found ^ options_of(program))
    for words, wanted in ((["--op", ""], OPS), (["--op", "bit"], ["bit_and", "bit_or", "bit_xor"]), (["-o", "su"], ["sum"]),
                          (["--op="], OPS), (["--op=pro"], ["product"]), (["--mem="], ["private", "gyre"]),
                          (["all_r"], ["all_reduce"]), (["--ranks", ""], [])):
        check(ask_bash("gyre-perf", words) == set(wanted), words, ask_bash("gyre-perf", words))
    check("LICENSE" in ask_bash("gyre-run", ["--hostfile", "LICEN"]), "a file of hosts")
    check("bash" in ask_bash("gyre-run", ["-n", "2", "bas"]), "a program behind -n 2")
    check("--bind" in ask_bash("gyre-run", ["--ranks=2", "--bi"]), "an option behind --ranks=2")
    check("--bind" not in ask_bash("gyre-run", ["-n", "2", "bash", "--bi"]), "an option of the program's")
    check(ask_bash("gyre-top", ["--js"]) == {"--json"}, "gyre-top --js")


class Zsh:
    """An interactive zsh at a terminal; its answer to a line with a tab is the line that it makes of it."""

    def __init__(self, folder):
        environment = {"TERM": "dumb", "HOME": folder, "ZDOTDIR": folder, "LC_ALL": "C",
                       "PATH": ":".join([*{str(Path(p).parent) for p in PROGRAMS}, os.environ["PATH"]])}
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.execvpe("zsh", ["zsh", "-f", "-i"], environment)
        self.send(f"fpath=({FOLDER}/zsh $fpath); autoload -Uz compinit; compinit -u -D; unsetopt zle_bracketed_paste "
                  "list_beep auto_list; setopt no_auto_menu; bindkey -e; PS1=; print -r -- REA''DY\n")
        self.wait(r"READY\s")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def wait(self, pattern):
        text, end = "", time.monotonic() + 60
        while time.monotonic() < end:
            if select.select([self.terminal], [], [], 1)[0]:
                text += os.read(self.terminal, 4096).decode(errors="replace")
            match = re.search(pattern, text)
            if match:
                return match
        sys.exit(f"FAILED: zsh does not say {pattern}: {text!r}")

    def complete(self, line):
        self.send(f"{line}\t\x01print -r -- RE''SULT '\x05' DO''NE\n")
        return self.wait(r"RESULT (.*?) DONE\r?\n")[1].rstrip()


def test_zsh():
    with tempfile.TemporaryDirectory() as folder:
        zsh = Zsh(folder)
        for line, wanted in (("gyre-top --js", "gyre-top --json"), ("gyre-perf --op=pro", "gyre-perf --op=product"),
                             ("gyre-perf -o aver", "gyre-perf -o average"), ("gyre-perf all_ga", "gyre-perf all_gather"),
                             ("gyre-info --bug", "gyre-info --bug-report"), ("gyre-run --machinef", "gyre-run --machinefile"),
                             ("gyre-tune --vers", "gyre-tune --version")):
            got = zsh.complete(line)
            check(got == wanted, f"'{line}' becomes '{got}', not '{wanted}'")
        zsh.send("exit\n")
        os.close(zsh.terminal)
        os.waitpid(zsh.pid, 0)
    for program in PROGRAMS:
        text = (FOLDER / "zsh" / f"_{Path(program).name}").read_text()
        found = set(re.findall(r"(?m)^ +'\([^)]*\)(--[a-z_-]+)", text))
        check(found == options_of(program), program, "differs:", found ^ options_of(program))


if not shutil.which(SHELL):
    print(f"skipped: there is no {SHELL}")
    sys.exit(1 if os.environ.get("GYRE_TEST_STRICT") == "1" else 77)
os.chdir(Path(__file__).resolve().parent.parent.parent)
{"bash": test_bash, "zsh": test_zsh}[SHELL]()
sys.exit(failures > 0)
