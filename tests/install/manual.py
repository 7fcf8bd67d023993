#!/usr/bin/env python3
"""manual.py SOURCE MANUAL: every public function has a manual page with all its sections, and no formatter complains about one.

MANUAL is where the build left the pages. The functions are taken from the lists of exported functions, not from what made the pages.
At last, headers that are broken on purpose must be refused, or be told apart: a function without a comment, and a function more."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

SECTIONS = ["NAME", "SYNOPSIS", "DESCRIPTION", "RETURN VALUE", "SEE ALSO"]
problems = []


def wrong(where, what):
    problems.append(f"{where}: {what}")


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def check_function(folder, name):
    path = os.path.join(folder, name + ".3")
    if not os.path.exists(path):
        return wrong(name, "has no manual page")
    text = read(path)
    link = re.fullmatch(r"\.so man3/(gyre_\w+)\.3\n", text)
    if link:
        path = os.path.join(folder, link.group(1) + ".3")
        if not os.path.exists(path):
            return wrong(name, f"its page is {path}, which is not there")
        text = read(path)
    body = {title: content for title, content in re.findall(r"^\.SH ([A-Z ]+)\n(.*?)(?=^\.SH |\Z)", text, re.S | re.M)}
    for section in SECTIONS:
        if len(body.get(section, "").strip()) < 8:
            wrong(name, f"section {section} is missing or empty in {path}")
    if not re.search(rf"\b{name}\b", body.get("NAME", "")):
        wrong(name, f"is not named in NAME of {path}")
    if not re.search(rf"\b{name}\(", body.get("SYNOPSIS", "")):
        wrong(name, f"has no prototype in SYNOPSIS of {path}")


def check_form(path):
    """Both formatters, where they are installed; a warning is an error."""
    commands = [["groff", "-ww", "-man", "-Tutf8", "-z", path]]
    if shutil.which("mandoc"):
        commands.append(["mandoc", "-Tlint", "-Wwarning", path])
    for command in commands:
        if shutil.which(command[0]):
            done = subprocess.run(command, capture_output=True, text=True)
            said = (done.stdout + done.stderr).strip()
            if done.returncode != 0 or said:
                wrong(path, f"{command[0]}: {said}")


def generate(source, header, folder, change):
    """Makes the pages of a header after `change`; True if that succeeded."""
    include = os.path.join(folder, "include")
    os.makedirs(include, exist_ok=True)
    for file in ("gyre.h", "nn.h"):
        shutil.copy(os.path.join(source, "include/gyre", file), include)
    path = os.path.join(include, header)
    with open(path, encoding="utf-8") as file:
        old = file.read()
    new = change(old)
    if new == old:
        wrong(header, "the header could not be changed for the test")
    with open(path, "w", encoding="utf-8") as file:
        file.write(new)
    return subprocess.run([sys.executable, os.path.join(source, "docs/man/pages.py"), path, os.path.join(folder, "out"), "0"],
                          capture_output=True).returncode == 0


def check_mutants(source):
    with tempfile.TemporaryDirectory() as folder:
        bare = lambda text: text.replace("\n/* Information for tools.", "\nGYRE_API int gyre_silent(void);\n\n/* Information for tools.")
        if generate(source, "gyre.h", folder, bare):
            wrong("pages.py", "accepts a function that no comment describes")
        more = lambda text: text.replace("GYRE_API int gyre_comm_size(", "GYRE_API int gyre_added(void);\nGYRE_API int gyre_comm_size(")
        if not generate(source, "gyre.h", folder, more) or not os.path.exists(os.path.join(folder, "out/gyre_added.3")):
            wrong("pages.py", "makes no page of a function that was added")


def main():
    source, manual = sys.argv[1:]
    count = 0
    for folder, listed in (("gyre", "exports.txt"), ("nn", "exports-nn.txt")):
        functions = read(os.path.join(source, "tests/install", listed)).split()
        for name in functions:
            check_function(os.path.join(manual, folder), name)
        count += len(functions)
    pages = [os.path.join(manual, folder, name) for folder in ("gyre", "nn") for name in sorted(os.listdir(os.path.join(manual, folder)))]
    pages = [page for page in pages if not read(page).startswith(".so ")]
    pages += [os.path.join(source, "docs/man", name) for name in sorted(os.listdir(os.path.join(source, "docs/man"))) if name.endswith(".1")]
    for page in pages:
        check_form(page)
    for page in ("gyre/gyre.7", "nn/gyre-nn.7", "gyre/gyre-environment.7"):
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
