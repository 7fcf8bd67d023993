"""unittest, with the package as it is where the compiled module is missing: python3 -m tests.plain TESTS."""
import sys
import unittest
from typing import Any, Dict

modules: Dict[str, Any] = sys.modules
modules["gyre._native"] = None

if __name__ == "__main__":
    unittest.main(module=None)
