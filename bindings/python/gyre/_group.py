"""Groups: blocking calls of this thread that are started together and waited for at the end."""
import threading
from typing import TYPE_CHECKING, Any, List, Optional, Tuple, Type

from ._compiled import native
from ._errors import error_for, text_of
from ._library import lib

if TYPE_CHECKING:
    from ._buffer import Buffer
    from ._communicator import Communicator


class _Local(threading.local):
    """The open groups of a thread, and what was started in them."""

    def __init__(self) -> None:
        self.buffers: List["Buffer"] = []
        self.comms: List["Communicator"] = []


local = _Local()


def add(comm: "Communicator", buffers: Tuple["Buffer", ...]) -> None:
    """A blocking call inside a group: what it needs is kept until the end."""
    local.buffers.extend(buffers)
    if comm not in local.comms:
        local.comms.append(comm)


class group:
    """`with gyre.group():` the blocking calls in it are started, and the end waits for all and raises the first
    failure.

    Sends and receives inside match in any order, and one thread may drive several communicators. Groups may be
    nested: the outermost waits. What is received may be looked at after the end only.

    If an exception leaves the block, the started calls may never be matched by the other ranks. So their worlds
    are aborted, and not waited for."""

    def __enter__(self) -> "group":
        lib.gyre_group_begin()
        native.set_grouped(native.grouped() + 1)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], reason: Any, trace: Any) -> None:
        if kind is not None:
            for comm in local.comms:
                comm.abort()
        native.set_grouped(native.grouped() - 1)
        if native.grouped() > 0:
            lib.gyre_group_end()
            return
        self._end(raised=kind is not None)

    def _end(self, raised: bool) -> None:
        buffers, local.buffers = local.buffers, []
        comms, local.comms = local.comms, []
        entered: List["Communicator"] = []
        try:
            for comm in comms:
                if not comm.closed:
                    comm._enter()
                    entered.append(comm)
            code = self._wait(entered)
            if not raised:
                _check(comms, code)
        finally:
            for comm in entered:
                comm._leave()
            for buffer in buffers:
                buffer.release()


    @staticmethod
    def _wait(comms: List["Communicator"]) -> int:
        """The end of the outermost group; Ctrl-C ends the wait."""
        try:
            native.guard_enter(list(comms))
        except BaseException:  # before the wait: how far the calls are is unknown
            for comm in comms:
                comm.abort()
            lib.gyre_group_end()
            raise
        try:
            return int(lib.gyre_group_end())
        finally:
            native.guard_leave()


def _check(comms: List["Communicator"], code: int) -> None:
    """Raises the failure of the first communicator whose world has failed so, else of the first."""
    live = [comm for comm in comms if not comm.closed]
    culprit = next((comm for comm in live if code and comm._fails_with(code)), None)
    for comm in [culprit] if culprit else live:
        comm._check(code)
    if code:
        raise error_for(code, text_of(lib.gyre_status_text(code)))
