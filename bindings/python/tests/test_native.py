"""The compiled module against its stub, and on the interpreters that are there."""
import ast
import os
import shutil
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict, List

import gyre
from gyre import _compiled, _plain
from gyre._compiled import native

STUB = ast.parse((Path(gyre.__file__).parent / "_native.pyi").read_text())
VERSIONS = ("python3.10", "python3.11", "python3.12", "python3.13", "python3.14")
CODE = """
import array, sys, gyre
from gyre._compiled import compiled
assert compiled
with gyre.create(rank=0, world_size=1) as comm:
    x = array.array("f", [1, 2])
    for _ in range(1000):
        assert comm.all_reduce(x) is x and comm.all_reduce_start(x).wait()
    try: comm.all_reduce(x[0])
    except gyre.InvalidArgument as reason: assert "no memory that gyre can use" in str(reason)
print("ok")
"""


@unittest.skipUnless(_compiled.compiled, "the compiled module is not there: package python3-dev")
class Native(unittest.TestCase):
    def test_version(self) -> None:
        self.assertEqual(native.__version__, gyre.__version__)
        self.assertEqual(_compiled.VERSION, gyre.__version__)

    def names(self, body: List[ast.stmt]) -> Dict[str, ast.stmt]:
        found: Dict[str, ast.stmt] = {}
        for item in body:
            if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
                found[item.name] = item
            elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                found[item.target.id] = item
        return found

    def test_stub(self) -> None:
        """It names all that is there and nothing else, with a text for each. The package's own path types the calls."""
        there = {name for name in dir(native) if not name.startswith("__")} | {"__version__"}
        stub = self.names(STUB.body)
        self.assertEqual(set(stub), there)
        for name, item in stub.items():
            if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
                self.assertTrue(ast.get_docstring(item), name)
            if isinstance(item, ast.ClassDef):
                kind = getattr(native, name)
                members = {member for member in vars(kind) if not member.startswith("__")}
                calls = {member for member in members if hasattr(gyre._forms.Forms, member)}
                self.assertEqual(set(self.names(item.body)) , members - calls, name)

    def test_twin(self) -> None:
        """The package finds the same names where the module is missing."""
        for name in self.names(STUB.body):
            if name != "__version__":
                self.assertTrue(hasattr(_plain, name), name)

    def test_documentation(self) -> None:
        for name in ("all_reduce", "all_reduce_start", "barrier", "send", "recv_start"):
            method: Any = getattr(gyre.Communicator, name)
            self.assertIn("self", method.__text_signature__)
            self.assertTrue(method.__doc__)

    def test_interpreters(self) -> None:
        """One build for all of them."""
        tried = 0
        for version in VERSIONS:
            program = shutil.which(version)
            known = program and subprocess.run([program, "-c", ""], capture_output=True).returncode == 0
            if not program or not known:  # a shim of pyenv's may be there without its version
                continue
            tried += 1
            with self.subTest(version):
                done = subprocess.run([program, "-X", "dev", "-c", CODE], env=dict(os.environ), capture_output=True, text=True, timeout=60)
                self.assertEqual(done.stdout, "ok\n", done.stderr)
        if not tried:
            self.skipTest("no python3.10 to python3.14 in PATH")


if __name__ == "__main__":
    unittest.main()
