"""For tests that every rank runs: one world per process, and each call in its three forms."""
import unittest
from typing import Any, Optional

import gyre

_world: Optional[gyre.Communicator] = None
FORMS = ("", "_start", "_init")


def world() -> gyre.Communicator:
    global _world
    if _world is None:
        _world = gyre.create()
    return _world


class RankTest(unittest.TestCase):
    """Every rank runs the same tests in the same order."""

    comm: gyre.Communicator
    rank: int
    size: int

    @classmethod
    def setUpClass(cls) -> None:
        cls.comm = world()
        cls.rank, cls.size = cls.comm.rank, cls.comm.size

    def setUp(self) -> None:
        self.comm.barrier()  # a failing rank is missed here and not in a later test's collective

    def call(self, form: str, name: str, *arguments: Any, **options: Any) -> None:
        """The call in one of its forms, complete; a persistent one is begun once."""
        given = getattr(self.comm, name + form)(*arguments, **options)
        if form == "_start":
            given.wait()
        elif form == "_init":
            with given as request:
                request.start()
