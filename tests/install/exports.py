#!/usr/bin/env python3
"""exports.py LIBRARY HEADER[,HEADER] LIST: the headers declare, the library exports and the list names the same
functions.

The list is checked in, so that a change of the binary interface is seen in a review. exports.py --print HEADER[,HEADER]
prints it."""
import re
import subprocess
import sys


def declared(header, include):
    # GYRE_BUILDING makes the compiler show which declarations are meant to be visible.
    text = subprocess.run(["cc", "-E", "-P", "-D_GNU_SOURCE", "-DGYRE_BUILDING", "-DGYRE_NN_BUILDING", "-I" + include, header],
                          check=True, capture_output=True, text=True).stdout
    names = re.findall(r'visibility\("default"\)\)\)[^;(]*?\b(gyre_\w+)\s*\(', text)
    return set(names)


def exported(library):
    text = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    symbols = set()
    for line in text.splitlines():
        _, kind, name = line.split()[-3:]
        if kind != "A":  # the version nodes themselves
            symbols.add(name.split("@")[0])
    return symbols


def complain(what, names):
    for name in sorted(names):
        print(f"{name}: {what}", file=sys.stderr)
    return bool(names)


def main():
    functions = set()
    for header in sys.argv[2].split(","):
        functions |= declared(header, header.rsplit("/gyre/", 1)[0])
        if "gyre/nn.h" in header:
            functions -= declared(header.replace("nn.h", "gyre.h"), header.rsplit("/gyre/", 1)[0])
    if sys.argv[1] == "--print":
        print("\n".join(sorted(functions)))
        return 0
    symbols = exported(sys.argv[1])
    listed = set(open(sys.argv[3]).read().split())
    wrong = [
        complain("declared in the header, missing in " + sys.argv[3], functions - listed),
        complain("listed, but not declared in the header", listed - functions),
        complain("exported by the library, but not listed", symbols - listed),
        complain("listed, but not exported by the library", listed - symbols),
        not listed,
    ]
    if not any(wrong):
        print(f"{len(listed)} functions: declared, listed and exported")
    return 1 if any(wrong) else 0


sys.exit(main())
