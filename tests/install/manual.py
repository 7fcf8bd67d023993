#!/usr/bin/env python3
"""manual.py SOURCE MANUAL: every public function has a manual page of its own with all its sections, an example that
calls it and the statuses that it may return, and no formatter complains about a page.

MANUAL is where the build left the pages. The functions are taken from the lists of exported functions, not from
what made the pages. At last, headers and examples that are broken on purpose must be refused: a function without
a comment, without errors, without an example, with a status that there is not; and one that has everything must
be accepted."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "ERRORS", "EXAMPLE", "SEE ALSO"]
BATCH = 64  # pages to one run of a formatter
NEVER_FAIL = {"gyre_group_begin", "gyre_nn_fail"}  # the one is always GYRE_SUCCESS, the other returns its argument
problems = []


def wrong(where, what):
    problems.append(f"{where}: {what}")


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def sections(text):
    return {title: body for title, body in re.findall(r"^\.SH ([A-Z ]+)\n(.*?)(?=^\.SH |\Z)", text, re.S | re.M)}


def check_function(folder, name, statuses):
    path = os.path.join(folder, name + ".3")
    if not os.path.exists(path):
        return wrong(name, "has no manual page")
    body = sections(read(path))
    for section in SECTIONS:
        if len(body.get(section, "").strip()) < (8 if section != "ERRORS" else 5):
            wrong(name, f"section {section} is missing or empty in {path}")
    if not re.search(rf"^{name} \\- \S", body.get("NAME", ""), re.M):
        wrong(name, f"is not named in NAME of {path}, or is not described there")
    synopsis = re.sub(r"\\&|\n *", " ", body.get("SYNOPSIS", ""))
    if not re.search(rf"\b{name}\(", synopsis):
        wrong(name, f"has no prototype in SYNOPSIS of {path}")
    if not re.search(rf"\b{name}[(,)]", body.get("EXAMPLE", "")):
        wrong(name, f"is not called in EXAMPLE of {path}")
    listed = re.findall(r"^\.B (GYRE_\w+)\n(\S.*)", body.get("ERRORS", ""), re.M)
    for status, _ in listed:
        if status not in statuses:
            wrong(name, f"{status} in ERRORS of {path} is no status")
    returns_status = re.search(rf"\bgyre_status {name}\(", synopsis)
    if returns_status and not listed and name not in NEVER_FAIL:
        wrong(name, f"returns a status, and ERRORS of {path} lists none")


def check_form(paths):
    """Both formatters, where they are installed; a warning is an error."""
    commands = [["groff", "-ww", "-man", "-Tutf8", "-z"]]
    if shutil.which("mandoc"):
        commands.append(["mandoc", "-Tlint", "-Wwarning"])
    for command in commands:
        for first in range(0, len(paths) if shutil.which(command[0]) else 0, BATCH):
            done = subprocess.run(command + paths[first : first + BATCH], capture_output=True, text=True)
            said = (done.stdout + done.stderr).strip()
            if done.returncode != 0 or said:
                wrong(command[0], said or f"exit status {done.returncode}")


def changed(path, change):
    with open(path, encoding="utf-8") as file:
        old = file.read()
    new = change(old)
    if new == old:
        wrong(path, "could not be changed for the test")
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)


def generate(source, folder, change_header=None, change_examples=None):
    """Makes the pages of gyre.h after the changes; what pages.py said, empty if it succeeded."""
    include, examples = os.path.join(folder, "include"), os.path.join(folder, "gyre.c")
    os.makedirs(include, exist_ok=True)
    header = shutil.copy(os.path.join(source, "include/gyre/gyre.h"), include)
    shutil.copy(os.path.join(source, "docs/man/examples/gyre.c"), examples)
    if change_header:
        changed(header, change_header)
    if change_examples:
        changed(examples, change_examples)
    done = subprocess.run([sys.executable, os.path.join(source, "docs/man/pages.py"), header, os.path.join(folder, "out"), "0", examples],
                          capture_output=True, text=True)
    return "" if done.returncode == 0 else done.stderr or "failed"


ADDED = "/* Returns 1.\n * Errors: none. */\nGYRE_API int gyre_added(void);\n\n"
CALLED = "static int call_added(void)\n{\n    return gyre_added();\n}\n\n/* ---- the test ---- */"


def insert(text):
    return lambda header: header.replace("/* Information for tools.", text + "/* Information for tools.")


def call(examples):
    return examples.replace("/* ---- the test ---- */", CALLED)


def check_mutants(source):
    broken = [
        ("a function that no comment describes", insert("GYRE_API int gyre_added(void);\n\n"), call, "no comment describes gyre_added"),
        ("a function without errors", insert(ADDED.replace("\n * Errors: none.", "")), call, "say nothing of errors"),
        ("a function without an example", insert(ADDED), None, "gyre_added: no example calls it"),
        ("a status that there is not", insert(ADDED.replace("Errors: none.", "Errors:\n *   GYRE_NONSENSE  never")), call, "GYRE_NONSENSE is no status"),
        ("a list of errors that there is not", insert(ADDED.replace("none.", "[nonsense].")), call, "[nonsense]"),
        ("an example that does not call its function", None,
         lambda text: text.replace("/* gyre_last_error: */", "/* gyre_barrier: */"), "does not call it"),
    ]
    with tempfile.TemporaryDirectory() as folder:
        for what, header, examples, sentence in broken:
            if sentence not in generate(source, folder, header, examples):
                wrong("pages.py", f"accepts {what}, or does not say so")
        if generate(source, folder, insert(ADDED), call) or not os.path.exists(os.path.join(folder, "out/gyre_added.3")):
            wrong("pages.py", "makes no page of a function that was added")


def main():
    source, manual = sys.argv[1:]
    count = 0
    with open(os.path.join(source, "include/gyre/gyre.h"), encoding="utf-8") as file:
        statuses = {"GYRE_" + name for name in re.findall(r"^    X\(\d+, (\w+), \"[^\"]*\"\)", file.read(), re.M)}
    for folders, listed in ((("gyre", "cuda"), "exports.txt"), (("nn",), "exports-nn.txt")):
        functions = read(os.path.join(source, "tests/install", listed)).split()
        for name in functions:
            there = [folder for folder in folders if os.path.exists(os.path.join(manual, folder, name + ".3"))]
            check_function(os.path.join(manual, (there or folders)[0]), name, statuses)
        count += len(functions)
    pages = [os.path.join(manual, folder, name) for folder in ("gyre", "cuda", "nn") for name in sorted(os.listdir(os.path.join(manual, folder)))]
    pages = [page for page in pages if not read(page).startswith(".so ")]
    pages += [os.path.join(source, "docs/man", name) for name in sorted(os.listdir(os.path.join(source, "docs/man"))) if name.endswith(".1")]
    check_form(pages)
    for page in ("gyre/gyre.7", "cuda/gyre-cuda.7", "nn/gyre-nn.7", "gyre/gyre-environment.7"):
        if os.path.join(manual, page) not in pages:
            wrong(page, "is missing")
    settings = set(re.findall(r"^GYRE_\w+", read(os.path.join(manual, "settings.txt")), re.M))
    for name in settings - set(re.findall(r"^\.BR (GYRE_\w+)", read(os.path.join(manual, "gyre/gyre-environment.7")), re.M)):
        wrong(name, "is a setting that gyre-environment(7) does not describe")
    check_mutants(source)
    print("\n".join(problems) if problems else
          f"{count} functions and {len(settings)} settings have manual pages; {len(pages)} pages, no formatter complains")
    return 1 if problems or not count or not settings else 0


sys.exit(main())
