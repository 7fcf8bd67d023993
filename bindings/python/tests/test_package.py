"""What pip makes of the tree: a wheel of Python alone, which finds libgyre.so where it is."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TREE = Path(__file__).parents[1]
PRINT = "import gyre; print(gyre.__file__); print(gyre.library_path()); print(gyre.__version__, gyre.library_version())"


class Package(unittest.TestCase):
    place: Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.place = Path(folder.name)
        # A copy: setuptools leaves its work beside the sources.
        shutil.copytree(TREE, cls.place / "tree", ignore=shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__"))
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
        offline = ["--no-index", "--no-build-isolation", "--no-deps"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        for command in (
            [*pip, "wheel", *offline, "-w", str(cls.place / "wheel"), str(cls.place / "tree")],
            [*pip, "install", *offline, "--find-links", str(cls.place / "wheel"), "--target", str(cls.place / "site"), "gyre"],
        ):
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
            if done.returncode:
                raise AssertionError(f"{' '.join(command)} (scripts/install-dependencies test?): {done.stdout}{done.stderr}")

    def run_python(self, site: Path, **more: str) -> "list[str]":
        environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(site), **more}
        command = [sys.executable, "-c", PRINT]  # which also looks in the working folder
        done = subprocess.run(command, env=environment, cwd=self.place, capture_output=True, text=True, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_wheel(self) -> None:
        self.assertEqual([file.name for file in (self.place / "wheel").iterdir()], ["gyre-0.1.0-py3-none-any.whl"])
        here = {path.name for path in (TREE / "gyre").iterdir() if path.name != "__pycache__"}
        there = {path.name for path in (self.place / "site/gyre").iterdir() if path.name != "__pycache__"}
        self.assertEqual(here, there)
        self.assertIn("py.typed", there)

    def test_versions(self) -> None:
        header = (TREE.parents[1] / "include/gyre/gyre.h").read_text()
        numbers = [re.search(rf"GYRE_VERSION_{part} (\d+)", header) for part in ("MAJOR", "MINOR", "PATCH")]
        version = ".".join(found.group(1) for found in numbers if found)
        lines = self.run_python(self.place / "site", GYRE_LIBRARY=os.environ["GYRE_LIBRARY"])
        self.assertTrue(lines[0].startswith(str(self.place / "site")))
        self.assertEqual(lines[2], f"{version} {version}")

    def test_where_the_library_is_found(self) -> None:
        """By LD_LIBRARY_PATH; beside the package in a prefix; beside the gyre-run of PATH."""
        library = Path(os.environ["GYRE_LIBRARY"]).resolve()
        prefix = self.place / "prefix"
        inside = prefix / "lib/python3/dist-packages"
        shutil.copytree(self.place / "site", inside)
        (prefix / "bin").mkdir()
        (prefix / "bin/gyre-run").write_text("#!/bin/sh\n")
        (prefix / "bin/gyre-run").chmod(0o755)
        for folder in ("lib", "lib/x86_64-linux-gnu"):
            there = prefix / folder / "libgyre.so.1"
            there.parent.mkdir(exist_ok=True)
            shutil.copy(library, there)
            self.assertEqual(self.run_python(inside)[1], str(there))
            path = f"{prefix}/bin:/usr/bin:/bin"
            # Where a libgyre is installed in the system, the loader's comes before gyre-run's.
            self.assertIn(self.run_python(self.place / "site", PATH=path)[1], (str(there), "libgyre.so.1"))
            self.assertEqual(self.run_python(self.place / "site", LD_LIBRARY_PATH=str(there.parent))[1], "libgyre.so.1")
            there.unlink()


if __name__ == "__main__":
    unittest.main()
