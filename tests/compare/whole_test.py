#!/usr/bin/env python3
"""Results of perf's programs appear whole or not at all: a writer that may write no more than 4 KiB leaves the file of
before, and so does one at a full device; each ends with status 1 and an error message. Usage: whole_test.py PERF"""
import os
import subprocess
import sys
import tempfile

WRITER = """import resource, signal, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import whole
signal.signal(signal.SIGXFSZ, signal.SIG_DFL if sys.argv[4] == "killed" else signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
if sys.argv[4] != "free":
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
whole.write(sys.argv[2], sys.argv[3] * 100000)"""


def write(perf, path, word, how):
    done = subprocess.run([sys.executable, "-c", WRITER, perf, path, word, how], capture_output=True, text=True, timeout=20)
    return done.returncode, done.stderr


def main():
    perf = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table")
        assert write(perf, path, "a", "free") == (0, "")
        for how, status in (("limited", 1), ("killed", -25)):
            code, text = write(perf, path, "b", how)
            assert code == status, (how, code, text)
            assert how == "killed" or text == f"cannot write {path}: File too large\n", text
            with open(path) as file:
                assert file.read() == "a" * 100000, how
        assert write(perf, path, "c", "free") == (0, "") and os.listdir(folder) == ["table"]
        assert write(perf, "/dev/full", "d", "free") == (1, "cannot write /dev/full: No space left on device\n")


main()
