#!/usr/bin/env python3
"""pages.py HEADER OUT VERSION [EXAMPLES]: the manual pages of a public header, made of its comments and of compiled examples.
pages.py --settings OUT VERSION:             gyre-environment.7, made of what `gyre-info --config` prints, on standard input.
pages.py --list HEADER:                      the functions that must have a page, one a line.

A header is read as blocks, which blank lines divide. Each function has a page of its own. Its DESCRIPTION is the comment before it and,
where the comments before that stand in the block without a function of their own, those too; one behind a declaration describes that function. The _start and
_init forms of a function have its comments as well. "Errors:" in a comment begins the statuses and their causes, a status a line. A name
in brackets there stands for the lines of that name in the first comment of gyre.h or of the header. EXAMPLES (docs/man/examples/gyre.c,
cuda.c or nn.c) is a program: the page of a function has the example that calls it. A function without any comment, without errors or without
an example is an error. What is not about functions (the header's first comment, codes, types, operations) is the page of the whole, in
section 7.
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
    """Of one function: its block, the part that it stands in, and the page of the function that it is a form of."""

    def __init__(self, block, part, function, base):
        self.block, self.part, self.base = list(block), part, base
        self.name, self.prototype, self.behind = function

    def comments(self):
        """What describes the function, the closest first."""
        own = [self.part.comment, self.behind]
        base = self.base.comments() if self.base else []
        shared = self.shared()
        found = []
        for text in (base[:1] + own + base[1:] if self.base else own + shared):
            if text and text not in found:
                found.append(text)
        return found

    def shared(self):
        """The comments of the nearest parts before its own that have no function: they describe the functions that follow."""
        at = next(i for i, part in enumerate(self.block) if part is self.part)
        while at > 0 and self.block[at - 1].functions:
            at -= 1
        first = at
        while first > 0 and not self.block[first - 1].functions:
            first -= 1
        return [part.comment for part in self.block[first:at]]

    def peers(self):
        """The other functions of the block."""
        return [name for name in names(self.block) if name != self.name]


def pages_of(blocks):
    """Pages by the name of their function, and what stands in no page: blocks without functions."""
    pages, rest = {}, []
    for block in blocks:
        if not names(block):
            rest.append(block)
        for part in block:
            for function in part.functions:
                base = base_of(function[0])
                pages[function[0]] = Page(block, part, function, pages.get(base))
    return pages, rest


# ---- errors ----

STATUS_LINE = re.compile(r"^  (GYRE_[A-Z_]+)\s+(.*)")


def split_errors(comment):
    """A comment without its errors, and the errors: lines, with those that go on joined."""
    kept, errors, inside = [], [], False
    for line in comment.split("\n"):
        if re.match(r"Errors:", line):
            inside = True
            errors.append(line[len("Errors:"):].strip())
        elif inside and not line.strip():
            inside = False
            kept.append(line)
        elif inside and (STATUS_LINE.match(line) or not errors):
            errors.append(line)
        elif inside:
            errors[-1] += " " + line.strip()
        else:
            kept.append(line)
    return "\n".join(kept).strip("\n"), errors


def lists_of(comment):
    """The lists of errors that have a name: {name: [(status, cause)]}."""
    found = {}
    last = None
    for line in comment.split("\n"):
        entry = re.match(r"  \[(\w+)\]\s+(GYRE_\w+)\s+(.*)", line)
        if entry:
            last = [entry.group(2), entry.group(3)]
            found.setdefault(entry.group(1), []).append(last)
        elif last and re.match(r" {8,}\S", line):
            last[1] += " " + line.strip()
        else:
            last = None
    return found


def errors_of(page, lists, codes):
    """[(status, causes)] in the order of the codes, and sentences."""
    causes, sentences, none = {}, [], False

    def add(status, cause):
        if status not in codes:
            sys.exit(f"pages.py: {page.name}: {status} is no status")
        if cause not in causes.setdefault(status, []):
            causes[status].append(cause)

    for comment in page.comments():
        for line in split_errors(comment)[1]:
            entry = STATUS_LINE.match(line)
            if entry:
                add(entry.group(1), entry.group(2))
                continue
            for name in re.findall(r"\[(\w+)\]", line):
                if name not in lists:
                    sys.exit(f"pages.py: {page.name}: no list of errors has the name [{name}]")
                for status, cause in lists[name]:
                    add(status, cause)
            none = none or line.startswith("none")
            rest = re.sub(r"^none\.?\s*", "", re.sub(r"^(?:\[\w+\](?:, )?)+\.?\s*", "", line))
            if rest and rest not in sentences:
                sentences.append(rest)
    if not causes and not none:
        sys.exit(f"pages.py: {page.name}: its comments say nothing of errors")
    return sorted(causes.items(), key=lambda one: codes.index(one[0])), sentences


def errors_section(page, lists, codes, own, known):
    entries, sentences = errors_of(page, lists, codes)
    out = ".SH ERRORS\n" + "".join(f".PP\n{prose(text, own, known)}\n" for text in sentences if text).replace(".PP\n", "", 1)
    for status, causes in entries:
        text = "; ".join(cause.rstrip(".") for cause in causes)
        out += f".TP\n.B {status}\n{prose(text, own, known)}.\n"
    return out if entries or sentences else out + "None.\n"


# ---- examples ----

class Example:
    def __init__(self, comment, text):
        self.of, self.text = [], text
        chosen = re.match(r"((?:gyre_\w+,\s+)*gyre_\w+):\s*", comment)
        if chosen:
            self.of = re.findall(r"gyre_\w+", chosen.group(1))
            comment = comment[chosen.end():]
        if comment:
            self.text = f"/* {comment} */\n{text}"
        self.name = re.search(r"(\w+)\(", text).group(1)
        bare = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
        self.calls = set(re.findall(r"\b(gyre_\w+)[(,)]", bare)) # some are arguments
        self.words = set(re.findall(r"\w+", bare))


def examples_of(path):
    """The functions of the program's first part, each with what it needs: functions of the same part that call nothing of gyre's."""
    text = open(path, encoding="utf-8").read()
    text = text.split("/* ---- examples ---- */\n")[1].split("/* ---- the test ---- */")[0]
    found, helpers = [], []
    for match in re.finditer(r"^(?:/\*((?:(?!\*/).)*)\*/\n)?(static [^;=]*?\n\{\n.*?^\})$", text, re.S | re.M):
        example = Example(re.sub(r"\s*\n \* ?", " ", match.group(1) or "").strip(), match.group(2))
        needed = [helper.text for helper in helpers if helper.name in example.words]
        example.text = "\n\n".join(needed + [example.text])
        (found if example.calls else helpers).append(example)
    for example in found:
        for name in example.of:
            if name not in example.calls:
                sys.exit(f"pages.py: {path}: the example of {name} does not call it")
    return found


def example_section(page, examples):
    mine = sorted((one for one in examples if page.name in one.calls), key=lambda one: (page.name not in one.of, one.text.count("\n")))
    if not mine:
        sys.exit(f"pages.py: {page.name}: no example calls it")
    return ".SH EXAMPLE\n" + verbatim(mine[0].text)[4:] + "\n"


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
    kind = page.prototype[: page.prototype.index(page.name)].strip()
    if kind == "gyre_status":
        text = (f"\\fBGYRE_SUCCESS\\fR, or a status of ERRORS below, of which \\fB{status}\\fR(3) then gives the sentence. "
                "Output arguments are written on success only.")
    elif kind == "void":
        text = "Nothing."
    else:
        text = ("A pointer" if kind.endswith("*") else "A value") + f" of type \\fI{minus(plain(kind.rstrip(' *')))}\\fR, as described above."
    return ".SH RETURN VALUE\n" + text + "\n"


def types_used(page, definitions):
    """Definitions of the types in the page's prototype that have a body and stand in another block."""
    own = "\n".join(text for part in page.block for text in part.types)
    used = []
    for name in re.findall(r"\bgyre_\w+\b", page.prototype):
        if name in definitions and definitions[name][1] not in own and name not in used:
            used.append(name)
    return used


def short(page):
    """For NAME: what the function does, in a line."""
    if page.base:
        text = summary(split_errors(page.base.comments()[0])[0], page.name)
        return text[0].lower() + text[1:] + (", as a request" if page.name.endswith("_start") else ", as a persistent request")
    text = summary(split_errors(page.comments()[0])[0], page.name)
    return text[0].lower() + text[1:] if re.match(r"[A-Z][a-z]+ ", text) else text


def render(page, header, known, definitions, version, nn, lists, codes, examples):
    own = {page.name}
    out = title(page.name, 3, version) + f".SH NAME\n{minus(page.name)} \\- {short(page)}\n"
    out += f".SH SYNOPSIS\n.nf\n.B #include <gyre/{header}>\n"
    for part in page.block:
        for text in part.types:
            out += ".PP\n" + "\n".join(minus(plain(line)) for line in text.split("\n")) + "\n"
    out += ".PP\n" + minus(plain(wrapped(page.prototype))) + "\n.fi\n.SH DESCRIPTION\n"
    for comment in page.comments():
        text = split_errors(comment)[0]
        out += description(text, own, known) + "\n" if text else ""
    out = out.replace(".SH DESCRIPTION\n.PP\n", ".SH DESCRIPTION\n")
    for name in types_used(page, definitions):
        comment, text = definitions[name]
        out += f".SS The type {name}\n"
        comment = split_errors(comment)[0]
        body = (description(comment, own, known) + "\n" if comment else "") + verbatim(text) + "\n"
        out += body[4:] if body.startswith(".PP\n") else body
    out += returns(page, nn) + errors_section(page, lists, codes, own, known) + example_section(page, examples)
    text = "\n".join(page.comments())
    also = sorted({name for name in re.findall(r"\bgyre_\w+\b", text) if name in known}.union(page.peers() if len(page.peers()) < 12 else ()) - own)
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
    name = {"nn.h": "gyre-nn", "cuda.h": "gyre-cuda"}.get(header, "gyre")
    module = minus("gyre-nn" if nn else "gyre")
    known = set(pages)
    out = title(name, 7, version) + f".SH NAME\n{minus(name)} \\- {minus(plain(lead.split(': ', 1)[1].rstrip('.')))}\n"
    out += f".SH SYNOPSIS\n.nf\n.B #include <gyre/{header}>\n.PP\n.B cc ... `pkg-config \\-\\-cflags \\-\\-libs {module}`\n.fi\n".replace("`", "\\(ga")
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
    for page in pages.values():
        out += f".TP\n.BR {page.name} (3)\n{short(page)}\n"
    return out + ".SH SEE ALSO\n.BR gyre\\-environment (7),\n" + (".BR gyre (7)" if name != "gyre" else ".BR gyre\\-run (1),\n.BR gyre\\-info (1)") + "\n"


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
    pages, rest = pages_of(blocks)
    bare = sorted(page.name for page in pages.values() if not page.comments())
    if bare or not pages:
        sys.exit(f"pages.py: {header}: no comment describes " + (", ".join(bare) or "anything"))
    first = read_blocks(os.path.join(os.path.dirname(header), "gyre.h"))
    lists = {**lists_of(first[0][0].comment), **lists_of(rest[0][0].comment)}
    codes = ["GYRE_" + name for block in first for part in block for text in part.types if "STATUS_MAP(" in text
             for name in re.findall(r"X\(\d+, (\w+),", text)]
    here = os.path.dirname(os.path.abspath(__file__))
    examples = examples_of(sys.argv[4] if len(sys.argv) > 4 else os.path.join(here, "examples", os.path.basename(header)[:-2] + ".c"))
    known = set(pages) | {name for block in first for name in names(block)} # nn.h names what it takes from gyre.h
    definitions = definitions_of(blocks)
    old = {entry for entry in os.listdir(folder) if entry.startswith("gyre_nn_") == nn and entry.endswith(".3")}
    for page in pages.values():
        write(folder, page.name + ".3",
              render(page, os.path.basename(header), known, definitions, version, nn, lists, codes, examples))
    for entry in old - {name + ".3" for name in pages}:
        os.remove(os.path.join(folder, entry))
    write(folder, {"nn.h": "gyre-nn.7", "cuda.h": "gyre-cuda.7"}.get(os.path.basename(header), "gyre.7"), overview(rest, os.path.basename(header), version, nn, pages))


main()
