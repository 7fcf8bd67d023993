"""The package against gyre.h: every function, every number, the layout of the configuration."""
import ctypes
import re
import unittest
from pathlib import Path
from typing import Any, Dict, Mapping, Tuple, Type

import gyre
from gyre._buffer import dtype_of
from gyre._calls import COLLECTIVES
from gyre._errors import _BY_STATUS
from gyre._library import Config, lib, prototypes
from gyre._observe import STRUCTS
from gyre._types import DTYPE_ALIASES, OP_ALIASES

FOLDER = Path(__file__).parents[3] / "include/gyre"
HEADER = (FOLDER / "gyre.h").read_text() + (FOLDER / "cuda.h").read_text()

# What is not called, and why not.
NOT_CALLED = {
    "gyre_wait_all": "which of the requests failed would be lost: gyre_wait and gyre_wait_any do the same",
    "gyre_wait_some": "likewise",
    "gyre_allocator_set": "an allocator in Python would need the interpreter, in any thread, for every allocation",
}


def rows(name: str) -> "list[list[str]]":
    body = re.search(rf"#define {name}\(X\)((?:.*\\\n)+.*)", HEADER)
    assert body
    return [row.split(", ") for row in re.findall(r"X\((.*?)\)", body.group(1))]


class Header(unittest.TestCase):
    def test_functions(self) -> None:
        declared = set(re.findall(r"^GYRE_API [\w \*]*?\**(gyre_\w+)\(", HEADER, re.MULTILINE))
        self.assertGreater(len(declared), 80)
        self.assertEqual(declared - set(NOT_CALLED), set(prototypes()))

    def test_arguments(self) -> None:
        """Their number and kind, read from the declarations."""
        for name, (result, arguments) in prototypes().items():
            with self.subTest(name):
                found = re.search(rf"^GYRE_API ([\w \*]*?\**){name}\(([^;]*)\);", HEADER, re.MULTILINE)
                assert found
                texts = [] if found.group(2) == "void" else [" ".join(text.split()) for text in found.group(2).split(",")]
                self.assertEqual(len(texts), len(arguments), texts)
                for text, argument in zip(texts, arguments):
                    self.assertIn(self.kind_of(text), self.kind_of_ctypes(argument), text)

    @staticmethod
    def kind_of(text: str) -> str:
        if "*" in text or "_func" in text or "gyre_stream" in text:
            return "pointer"
        if "double" in text:
            return "double"
        if "size_t" in text or "uint64_t" in text:
            return "size"
        return "int"

    @staticmethod
    def kind_of_ctypes(argument: object) -> "tuple[str, ...]":
        if argument is ctypes.c_int:
            return ("int",)
        if argument in (ctypes.c_size_t, ctypes.c_uint64):
            return ("size",)
        if argument is ctypes.c_double:
            return ("double",)
        if argument is ctypes.c_uint:
            return ("int",)
        return ("pointer",)

    def test_collectives(self) -> None:
        """Those that gyre_comm_algorithm knows."""
        comment = re.search(r'collective: ("all_reduce"[^.]*)\.\n[^/]*\*/\nGYRE_API const char \*gyre_comm_algorithm', HEADER)
        assert comment
        self.assertEqual(tuple(re.findall(r'"(\w+)"', comment.group(1))), COLLECTIVES)

    def test_attributes(self) -> None:
        """The documentation of set() and get() names all of them."""
        listed = HEADER.partition("/* Attributes of a communicator")[2].partition(" * Attributes begin as")[0]
        keys = re.findall(r"^ \*   (\w+) +(\S.*\n(?: \*    .*\n)*)", listed, re.MULTILINE)
        self.assertGreater(len(keys), 5)
        for key, meaning in keys:
            read_only = "read only" in " ".join(meaning.replace("*", " ").split())
            text = (gyre.Communicator.get if read_only else gyre.Communicator.set).__doc__
            self.assertIn(f'"{key}"', text or "")

    def test_numbers(self) -> None:
        for table, kind in (("GYRE_DTYPE_MAP", gyre.DType), ("GYRE_OP_MAP", gyre.Op), ("GYRE_STATUS_MAP", gyre.Status)):
            self.assertEqual({row[1]: int(row[0]) for row in rows(table)}, {member.name: int(member) for member in kind})
        for row in rows("GYRE_DTYPE_MAP"):
            self.assertEqual(gyre.DType(int(row[0])).size, int(row[3]))
            self.assertEqual(gyre.DType(int(row[0])).name.lower(), row[2].strip('"'))
        for row in rows("GYRE_OP_MAP"):
            self.assertEqual(gyre.Op(int(row[0])).name.lower(), row[2].strip('"'))

    def test_names_of_other_libraries(self) -> None:
        """The package and the library know the same names."""
        tables: Tuple[Tuple[Mapping[str, int], Tuple[str, ...], Any], ...] = (
            (DTYPE_ALIASES, ("float99", "", "floats"), lib.gyre_dtype_from_name),
            (OP_ALIASES, ("summe", "average ", "avgs"), lib.gyre_op_from_name),
        )
        for known, names, find in tables:
            number = ctypes.c_int(-1)
            for name, value in known.items():
                for text in (name, name.upper()):
                    self.assertEqual(find(text.encode(), ctypes.byref(number)), 0, text)
                    self.assertEqual(number.value, int(value), text)
            for name in names:
                self.assertEqual(find(name.encode(), ctypes.byref(number)), int(gyre.Status.INVALID_ARGUMENT))
        self.assertIs(dtype_of("bf16"), gyre.DType.BFLOAT16)
        self.assertIs(dtype_of("Char"), gyre.DType.INT8)

    def test_devices(self) -> None:
        declared = dict(re.findall(r"^#define GYRE_(CUDA_\w+) \((-\d)\)", HEADER, re.MULTILINE))
        self.assertEqual(len(declared), 3)
        for name, value in declared.items():
            self.assertEqual(getattr(gyre, name), int(value))

    def test_an_exception_per_status(self) -> None:
        statuses = {int(row[0]) for row in rows("GYRE_STATUS_MAP")} - {0, 1}
        self.assertEqual(statuses, set(_BY_STATUS))
        for code, kind in _BY_STATUS.items():
            group = gyre.CallError if code < 20 else gyre.LocalError if code < 40 else gyre.CommunicatorError
            self.assertTrue(issubclass(kind, group) and issubclass(kind, gyre.Error))
            self.assertIs(getattr(gyre, kind.__name__), kind)

    def test_structs(self) -> None:
        structs: Dict[str, Type[ctypes.Structure]] = {"gyre_config": Config, **STRUCTS}
        for name, struct in structs.items():
            body = re.search(rf"typedef struct {name} \{{(.*?)\}} {name};", HEADER, re.DOTALL)
            assert body
            fields = []
            for line in re.sub(r"/\*.*?\*/", "", body.group(1), flags=re.DOTALL).split(";"):
                fields += re.findall(r"(\w+)\s*(?:,|$)", line.strip())
            self.assertEqual(fields, [field[0] for field in struct._fields_])


if __name__ == "__main__":
    unittest.main()
