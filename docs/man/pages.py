#!/usr/bin/env python3
"""pages.py HEADER OUT VERSION: the manual pages of a public header, made of its comments.
pages.py --settings OUT VERSION:  gyre-environment.7, made of what `gyre-info --config` prints, on standard input.
pages.py --list HEADER:           the functions that must have a page, one a line.

A header is read as blocks, which blank lines divide. The functions of one block share a page, named after the first of them; the
others are links to it (.so). Each comment of a block describes the functions that follow it; one behind a declaration describes that
function. Blocks whose functions are the _start and _init forms of others go to the page of those. A function without any comment is an
error. What is not about functions (the header's first comment, codes, types, operations) becomes the page of the whole, in section 7.
"""
import os
import re
import sys
import time

EXPORT = re.compile(r"^GYRE_(?:NN_)?API\b")
FORMS = ("_start", "_init")
SOURCE = __file__ if sys.argv[1] == "--settings" else sys.argv[1]  # a page is as old as what it is made of


class Part:
    """A comment and the declarations that follow it in their block."""

    def __init__(self, comment):
        self.comment, self.types, self.functions = comment, [], []


def strip_comment(lines):
    """The text of /* … */ without its frame; the indentation of what stands in it is kept."""
    text = "\n".join(lines).strip()
    text = text[2:-2] if text.endswith("*/") else text[2:]
    return "\n".join(re.sub(r"^\s*\* ?", "", line).rstrip() for line in ("*" + text).split("\n")).strip("\n").lstrip()


def read_blocks(path):
    """Blocks of parts. A declaration is a run of lines up to the semicolon at depth 0; macros are one too."""
    blocks, parts, lines, at = [], [], open(path, encoding="utf-8").read().split("\n"), 0

    def part():
        if not parts:
            parts.append(Part(""))
        return parts[-1]

    while at < len(lines):
        line = lines[at]
        if not line.strip():
            if parts:
                blocks.append(parts)
            parts, at = [], at + 1
        elif line.lstrip().startswith("/*"):
            first = at
            while "*/" not in lines[at]:
                at += 1
            at += 1
            parts.append(Part(strip_comment(lines[first:at])))
        elif line.startswith("#"):
            first = at
            while lines[at].endswith("\\"):
                at += 1
            at += 1
            if line.startswith("#define GYRE_") and "_MAP(" in line:
                part().types.append("\n".join(lines[first:at]))
        elif line.startswith(('extern "C"', "}")):
            at += 1
        else:
            first, depth = at, 0
            while True:
                bare = re.sub(r"/\*.*?(\*/|$)", "", lines[at])
                depth += bare.count("{") - bare.count("}")
                at += 1
                if depth == 0 and (bare.rstrip().endswith((";", "{", "}")) or not bare.strip()):
                    break
            text = "\n".join(lines[first:at])
            if EXPORT.match(text):
                behind = re.search(r";\s*/\*\s*(.*?)\s*\*/\s*$", text, re.S)
                text = re.sub(r"\s*/\*.*$", "", text, flags=re.S) if behind else text
                prototype = re.sub(r"\s+", " ", EXPORT.sub("", text)).strip()
                part().functions.append((re.search(r"\b(gyre_\w+) ?\(", prototype).group(1), prototype,
                                         behind.group(1) if behind else ""))
            else:
                part().types.append(text)
    if parts:
        blocks.append(parts)
    return blocks


def names(block):
    return [name for part in block for name, _, _ in part.functions]


def base_of(name):
    for form in FORMS:
        if name.endswith(form):
            return name[: -len(form)]
    return None


class Page:
    def __init__(self, block):
        self.parts, self.name = list(block), names(block)[0]

    def functions(self):
        return [function for part in self.parts for function in part.functions]


def pages_of(blocks):
    """Pages, and what stands in no page: blocks without functions."""
    pages, where, rest = [], {}, []
    for block in blocks:
        functions = names(block)
        if not functions:
            rest.append(block)
            continue
        owner = where.get(base_of(functions[0]))
        if owner:
            owner.parts += block
        else:
            owner = Page(block)
            pages.append(owner)
        where.update({name: owner for name in functions})
    return pages, where, rest


# ---- roff ----

def plain(text):
    """Characters that roff would take for itself; what is not ASCII by its number, so that pages are ASCII."""
    text = text.replace("\\", "\\e").replace("'", "\\(aq").replace("`", "\\(ga").replace("~", "\\(ti").replace("^", "\\(ha")
    text = "".join(c if ord(c) < 128 else "\\[u%04X]" % ord(c) for c in text)
    return "\\&" + text if text.startswith((".", "'")) else text


def minus(text):
    return text.replace("-", "\\-")


def prose(text, own, known):
    """A paragraph on one line: names of functions, constants, settings and arguments stand out."""
    out = plain(re.sub(r"\s+", " ", text).strip())
    out = re.sub(r"\\\(ga([^\\]+)\\\(ga", r"\\fI\1\\fR", out)
    out = re.sub(r"(?<![\w*])\*(\w+)\*(?![\w*])", r"\\fI\1\\fR", out)
    out = re.sub(r"\bgyre-(\w+)", lambda m: minus(m.group(0)), out)

    def function(match):
        name = match.group(0)
        return f"\\fB{name}\\fR" + ("(3)" if name in known and name not in own else "")

    out = re.sub(r"\bgyre_\w+\b", function, out)
    return re.sub(r"\bGYRE_[A-Z0-9_]+\b(?!=)", r"\\fB\g<0>\\fR", out)


def description(text, own, known):
    """Paragraphs as they are; lines that are indented, or that end a list's item, keep their form."""
    out, paragraph, table = [], [], []

    def flush():
        if paragraph:
            out.append(".PP\n" + prose(" ".join(paragraph), own, known))
            paragraph.clear()
        if table:
            least = min(len(line) - len(line.lstrip()) for line in table)
            out.append(".PP\n.RS 4\n.nf\n" + "\n".join(minus(plain(line[least:])) for line in table) + "\n.fi\n.RE")
            table.clear()

    for line in text.split("\n"):
        if not line.strip():
            flush()
        elif line.startswith("  ") or re.match(r'"\w[\w:]*"\s\s+', line):
            if paragraph:
                flush()
            table.append(line)
        else:
            if table:
                flush()
            paragraph.append(line)
    flush()
    return "\n".join(out)


def verbatim(text):
    return ".PP\n.nf\n" + "\n".join(minus(plain(line)) for line in text.expandtabs().split("\n")) + "\n.fi"


def wrapped(prototype):
    """A prototype broken between its arguments."""
    head, arguments = prototype.split("(", 1)
    lines, line = [], head + "("
    for piece in re.findall(r"[^,]+,?", arguments):
        if len(line) + len(piece) > 78 and not line.endswith("("):
            lines.append(line.rstrip())
            line = "    " + piece.lstrip()
        else:
            line += piece
    return "\n".join(lines + [line])


def title(name, section, version):
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    date = time.strftime("%Y-%m-%d", time.gmtime(int(seconds) if seconds else os.path.getmtime(SOURCE)))
    return f'.TH {minus(name).upper()} {section} "{date}" "gyre {version}" "gyre"\n.\\" Made of the header by docs/man/pages.py: do not edit.\n'


def summary(comment, name):
    """The first sentence of the comment, short enough for the line of NAME."""
    line = re.split(r"(?<=[.:;])\s", re.sub(r"\s+", " ", comment).strip())[0].rstrip(".:; ")
    if len(line) > 70:
        line = line[:70].rsplit(" ", 1)[0].rstrip(",;: ") + " ..."
    line = minus(plain(line))
    return line if line else name


def returns(page, nn):
    status = "gyre_nn_last_error" if nn else "gyre_last_error"
    kinds = {}
    for name, prototype, _ in page.functions():
        kind = prototype[: prototype.index(name)].strip()
        kinds.setdefault(kind, []).append(name)
    out = []
    for kind, members in kinds.items():
        who = ", ".join(f"\\fB{name}\\fR()" for name in members) if len(kinds) > 1 else ""
        if kind == "gyre_status":
            out.append((who + " return " if who else "") + "\\fBGYRE_SUCCESS\\fR, or another status of \\fBgyre\\fR(7), of which "
                       + f"\\fB{status}\\fR(3) then gives the sentence. Output arguments are written on success only.")
        elif kind == "void":
            out.append(("Nothing, for " + who if who else "Nothing") + ".")
        else:
            what = "a pointer" if kind.endswith("*") else "a value"
            out.append((f"{who}: {what}" if who else what.capitalize()) + f" of type \\fI{minus(plain(kind.rstrip(' *')))}\\fR"
                       + ("" if kind.endswith("*") else "") + ", as described above.")
    return ".SH RETURN VALUE\n" + "\n.PP\n".join(out) + "\n"


def types_used(page, definitions):
    """Definitions of the types in the page's prototypes that have a body and stand in another block."""
    own = "\n".join(text for part in page.parts for text in part.types)
    used = []
    for _, prototype, _ in page.functions():
        for name in re.findall(r"\bgyre_\w+\b", prototype):
            if name in definitions and definitions[name][1] not in own and name not in used:
                used.append(name)
    return used


def render(page, header, known, definitions, version, nn):
    own = {name for name, _, _ in page.functions()}
    everything = ", ".join(minus(name) for name, _, _ in page.functions())
    comment = next((part.comment for part in page.parts if part.comment), "")
    out = title(page.name, 3, version) + f".SH NAME\n{everything} \\- {summary(comment, page.name)}\n"
    out += f".SH SYNOPSIS\n.nf\n.B #include <gyre/{header}>\n"
    for part in page.parts:
        for text in part.types:
            out += ".PP\n" + "\n".join(minus(plain(line)) for line in text.split("\n")) + "\n"
        if part.functions:
            out += ".PP\n" + "\n".join(minus(plain(wrapped(prototype))) for _, prototype, _ in part.functions) + "\n"
    out += ".fi\n.SH DESCRIPTION\n"
    several = sum(1 for part in page.parts if part.functions) > 1
    for part in page.parts:
        if several and part.functions and part is not page.parts[0]:
            out += ".SS " + ", ".join(name for name, _, _ in part.functions) + "\n"
        if part.comment:
            body = description(part.comment, own, known)
            out += body.split("\n", 1)[1] + "\n" if body.startswith(".PP\n") and out.endswith(("DESCRIPTION\n",)) else body + "\n"
        for name, _, behind in part.functions:
            if behind:
                out += f".PP\n\\fB{name}\\fR: {prose(behind, own, known)}\n"
    out = re.sub(r"(\.SS [^\n]*\n)\.PP\n", r"\1", out).replace(".SH DESCRIPTION\n.PP\n", ".SH DESCRIPTION\n")
    for name in types_used(page, definitions):
        comment, text = definitions[name]
        out += f".SS The type {name}\n"
        body = (description(comment, own, known) + "\n" if comment else "") + verbatim(text) + "\n"
        out += body[4:] if body.startswith(".PP\n") else body
    out += returns(page, nn)
    text = "\n".join(part.comment for part in page.parts)
    also = sorted({name for name in re.findall(r"\bgyre_\w+\b", text) if name in known} - own)
    also = [f".BR {name} (3)" for name in also]
    also.append(".BR gyre (7)" if not nn else ".BR gyre\\-nn (7),\n.BR gyre (7)")
    also.append(".BR gyre\\-environment (7)")
    return out + ".SH SEE ALSO\n" + " ,\n".join(also) + "\n"


def definitions_of(blocks):
    """Types that have a body, by name: (comment, text). Those made by macros are described in section 7."""
    found = {}
    for block in blocks:
        for part in block:
            for text in part.types:
                function = re.match(r"typedef [^{;]*\(\*(gyre_\w+)\)", text)
                body = re.match(r"(?:typedef )?(?:struct|enum) (gyre_\w+) \{", text)
                match = function or body
                if match and "_MAP(" not in text:
                    found[match.group(1)] = (part.comment, text)
    return found


def overview(rest, header, version, nn, pages):
    """The page of the header as a whole: its first comment, then what belongs to no function."""
    first = rest[0][0].comment
    lead, _, body = first.partition("\n")
    name = "gyre-nn" if nn else "gyre"
    known = {n for page in pages for n, _, _ in page.functions()}
    out = title(name, 7, version) + f".SH NAME\n{minus(name)} \\- {minus(plain(lead.split(': ', 1)[1].rstrip('.')))}\n"
    out += f".SH SYNOPSIS\n.nf\n.B #include <gyre/{header}>\n.PP\n.B cc ... `pkg-config \\-\\-cflags \\-\\-libs {minus(name)}`\n.fi\n".replace("`", "\\(ga")
    out += ".SH DESCRIPTION\n" + description(body, set(), known)[4:] + "\n"
    heading = re.compile(r"(?:GYRE_)(?:NN_)?(\w+)_MAP\(")
    for block in rest[1:]:
        for part in block:
            maps = [heading.search(text).group(1) for text in part.types if text.startswith("#") and heading.search(text)]
            if not maps:
                continue
            out += f".SH {maps[0]}\n" + description(part.comment, set(), known)[4:] + "\n.PP\n.RS 4\n.nf\n"
            for text in part.types:
                for code, constant, about in re.findall(r'X\((\d+), (\w+), ("[^"]*"(?:, \d+)?)', text):
                    size = about.rpartition(", ")[2] if re.search(r", \d+$", about) else ""
                    word = re.match(r'"([^"]*)"', about).group(1)
                    out += minus(plain(f"{code:>3}  GYRE_{constant:<18} {word}" + (f", {size} " + ("byte" if size == "1" else "bytes") if size else ""))) + "\n"
            out += ".fi\n.RE\n"
    out += ".SH FUNCTIONS\n"
    for page in pages:
        out += f".TP\n.BR {page.name} (3)\n" + ", ".join(minus(n) for n, _, _ in page.functions()) + "\n"
    return out + ".SH SEE ALSO\n.BR gyre\\-environment (7),\n" + (".BR gyre (7)" if nn else ".BR gyre\\-run (1),\n.BR gyre\\-info (1)") + "\n"


def settings(lines, version):
    out = title("gyre-environment", 7, version)
    out += ".SH NAME\ngyre\\-environment \\- the settings of gyre: variables of the environment\n.SH DESCRIPTION\n"
    out += ("They are read when a communicator is made with \\fBgyre_comm_create\\fR(3). An empty variable is one that is not set. A value that "
            "is not understood is the error \\fBGYRE_BAD_CONFIGURATION\\fR; a name that is not known is a warning of the library, and an error in "
            "the tools, with the nearest name. Bytes take k, M and G; times are in seconds, or with m in minutes.\n.SH SETTINGS\n")
    count = 0
    for line in lines:
        fields = re.split(r"\s{2,}", line.strip(), maxsplit=3)
        if len(fields) != 4 or not fields[0].startswith("GYRE_"):
            sys.exit(f"pages.py: this is no setting: {line!r}")
        name, initial, unit, meaning = fields
        out += f".TP\n.BR {name} \" (\" {minus(plain(unit))} \")\"\n{prose(meaning[0].upper() + meaning[1:], set(), set())}."
        out += f"\nDefault: {'empty' if initial == '(empty)' else minus(plain(initial))}.\n"
        count += 1
    if count == 0:
        sys.exit("pages.py: gyre-info --config printed no setting")
    return out + ".SH SEE ALSO\n.BR gyre\\-info (1),\n.BR gyre_config_describe (3),\n.BR gyre_config_check (3),\n.BR gyre (7)\n"


def write(folder, name, text):
    path = os.path.join(folder, name)
    with open(path + ".new", "w", encoding="ascii") as file:
        file.write(text)
    os.replace(path + ".new", path)


def main():
    if sys.argv[1] == "--settings":
        write(sys.argv[2], "gyre-environment.7", settings(sys.stdin.read().splitlines(), sys.argv[3]))
        return
    header = sys.argv[2] if sys.argv[1] == "--list" else sys.argv[1]
    blocks = read_blocks(header)
    if sys.argv[1] == "--list":
        print("\n".join(sorted(name for block in blocks for name in names(block))))
        return
    folder, version, nn = sys.argv[2], sys.argv[3], os.path.basename(header) == "nn.h"
    os.makedirs(folder, exist_ok=True)
    pages, where, rest = pages_of(blocks)
    bare = sorted(name for page in pages for name, _, behind in page.functions() if not behind and not any(part.comment for part in page.parts))
    if bare or not pages:
        sys.exit(f"pages.py: {header}: no comment describes " + (", ".join(bare) or "anything"))
    known = set(where)
    definitions = definitions_of(blocks)
    if nn: # what nn.h takes from gyre.h
        known |= {n for b in read_blocks(os.path.join(os.path.dirname(header), "gyre.h")) for n in names(b)}
    old = {entry for entry in os.listdir(folder) if entry.startswith("gyre_nn_") == nn and entry.endswith(".3")}
    for page in pages:
        write(folder, page.name + ".3", render(page, os.path.basename(header), known, definitions, version, nn))
        for name, _, _ in page.functions():
            if name != page.name:
                write(folder, name + ".3", f".so man3/{page.name}.3\n")
    for entry in old - {name + ".3" for name in where}:
        os.remove(os.path.join(folder, entry))
    write(folder, "gyre-nn.7" if nn else "gyre.7", overview(rest, os.path.basename(header), version, nn, pages))


main()
