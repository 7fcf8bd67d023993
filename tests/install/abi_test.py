#!/usr/bin/env python3
"""abi_test.py SOURCE BUILD: the libraries of BUILD have the checked-in binary interface, and scripts/abi tells what
breaks it from what does not.

Each change is made to a copy of a header (or of the version map, or of the SONAME); a program linked before
either goes on or it does not."""
import os
import shutil
import subprocess
import sys
import tempfile

SOURCE, BUILD = sys.argv[1:]
# what, header, from, to, what the sentence about it names
BREAKING = [
    ("a function went", "gyre.h", "GYRE_API gyre_status gyre_barrier(gyre_comm *comm);", "", "gyre_barrier"),
    ("a parameter's type", "gyre.h", "gyre_status gyre_group_end(void)", "gyre_status gyre_group_end(int how)", "gyre_group_end"),
    ("a width", "gyre.h", "gyre_comm_dump(const gyre_comm *comm, int fd)", "gyre_comm_dump(const gyre_comm *comm, int64_t fd)", "gyre_comm_dump"),
    ("a result", "gyre.h", "size_t gyre_dtype_size(", "unsigned gyre_dtype_size(", "gyre_dtype_size"),
    ("a member between others", "gyre.h", "    int world_size; ", "    int colour;\n    int world_size; ", "gyre_config"),
    ("a value of a status", "gyre.h", 'X(40, PEER_DEAD', 'X(39, PEER_DEAD', "PEER_DEAD"),
    ("a value of a type", "gyre.h", 'X(8, FLOAT32,', 'X(18, FLOAT32,', "FLOAT32"),
    ("an operation went", "gyre.h", '    X(8, PREMUL_SUM, "premul_sum")', "", "PREMUL_SUM"),
    ("a callback", "gyre.h", "(*gyre_print_func)(void *user, const char *line)", "(*gyre_print_func)(void *user, int line)", "gyre_info"),
    ("a function of the network module went", "nn.h", "GYRE_NN_API void gyre_nn_test_mode(gyre_nn_model *model);", "", "gyre_nn_test_mode"),
    ("a member of its options", "nn.h", "    size_t epochs, accumulate;", "    size_t epochs;", "gyre_nn_train"),
]
PASSING = [
    ("a function more", "gyre.h", "GYRE_API int gyre_comm_size(", "GYRE_API int gyre_added(void);\nGYRE_API int gyre_comm_size("),
    ("a parameter's name", "gyre.h", "gyre_comm_dump(const gyre_comm *comm, int fd)", "gyre_comm_dump(const gyre_comm *comm, int file)"),
    ("a comment", "gyre.h", "/* Information for tools.", "/* What tools ask for."),
]
problems = []


def abi(*arguments):
    done = subprocess.run([os.path.join(SOURCE, "scripts/abi"), "check", *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def changed(what, file, old, new, folder):
    """A copy of the headers or the map with one change; the arguments of scripts/abi that choose it."""
    if file.endswith(".map"):
        path, arguments = os.path.join(folder, "map"), ["--map", os.path.join(folder, "map")]
        shutil.copy(os.path.join(SOURCE, "src", file), path)
    else:
        shutil.copytree(os.path.join(SOURCE, "include"), os.path.join(folder, "include"))
        path, arguments = os.path.join(folder, "include/gyre", file), ["--headers", os.path.join(folder, "include")]
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    if old not in text:
        problems.append(f"{what}: '{old}' is not in {file} any more: the test needs another place")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text.replace(old, new, 1))
    return arguments


def expect(what, code, arguments, named=""):
    got, said = abi(*arguments)
    if got != code or named not in said:
        problems.append(f"{what}: scripts/abi ended with {got}, expected {code} and a word of '{named}':\n{said}")


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def check_release():
    """Once a release is tagged, writing the description anew does not make a break pass; another SONAME does."""
    with tempfile.TemporaryDirectory() as folder:
        for what in ("include", "scripts", "abi"):
            shutil.copytree(os.path.join(SOURCE, what), os.path.join(folder, what), ignore=shutil.ignore_patterns("__pycache__"))
        for file in ("CMakeLists.txt", "src/gyre.map", "nn/gyre-nn.map"):
            os.makedirs(os.path.dirname(os.path.join(folder, file)), exist_ok=True)
            shutil.copy(os.path.join(SOURCE, file), os.path.join(folder, file))
        git = ["git", "-c", "user.name=t", "-c", "user.email=t@t"]
        for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "release"], ["tag", "v0.0.9"]):
            code, said = run(folder, *git, *command)
            if code:
                problems.append(f"git {command[0]}: {said}")
        header = os.path.join(folder, "include/gyre/gyre.h")
        with open(header, encoding="utf-8") as stream:
            text = stream.read()
        with open(header, "w", encoding="utf-8") as stream:
            stream.write(text.replace("gyre_status gyre_group_end(void)", "gyre_status gyre_group_end(int how)"))
        run(folder, "scripts/abi", "update")
        code, said = run(folder, "scripts/abi", "check")
        if code != 1 or "v0.0.9 has been released" not in said:
            problems.append(f"a break of a tagged release: scripts/abi ended with {code}:\n{said}")
        with open(os.path.join(folder, "CMakeLists.txt"), encoding="utf-8") as stream:
            text = stream.read()
        with open(os.path.join(folder, "CMakeLists.txt"), "w", encoding="utf-8") as stream:
            stream.write(text.replace("set(GYRE_SOVERSION 1)", "set(GYRE_SOVERSION 2)"))
        run(folder, "scripts/abi", "update")
        code, said = run(folder, "scripts/abi", "check")
        if code != 0:
            problems.append(f"a break with another SONAME: scripts/abi ended with {code}:\n{said}")


def main():
    if not shutil.which("abidiff"):
        print("skipped: there is no abidiff (abigail-tools)")
        return 77
    expect("the tree as it is", 0, [BUILD])
    for what, file, old, new, named in BREAKING + [("a symbol's version", "gyre.map", "GYRE_0.1 {", "GYRE_0.9 {", "gyre_barrier@@GYRE_0.1")]:
        with tempfile.TemporaryDirectory() as folder:
            expect(what, 1, changed(what, file, old, new, folder), named)
    for what, file, old, new in PASSING:
        with tempfile.TemporaryDirectory() as folder:
            expect(what, 0, changed(what, file, old, new, folder))
    check_release()
    expect("another SONAME", 1, ["--soname", "libgyre.so.99"], "SONAME")
    print("\n".join(problems) if problems else f"the interface is as checked in; {len(BREAKING) + 2} breaking changes found, {len(PASSING)} others pass")
    return 1 if problems else 0


sys.exit(main())
