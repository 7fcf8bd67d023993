"""Groups: blocking calls of this thread that are started together and waited for at the end."""
import threading
from typing import TYPE_CHECKING, Any, List, NamedTuple, Optional, Tuple, Type

from . import _driver
from ._compiled import native
from ._errors import error_for, text_of
from ._gpu_array import NONE
from ._library import lib

if TYPE_CHECKING:
    from ._buffer import Buffer
    from ._communicator import Communicator


class Started(NamedTuple):
    """What a call in a group needs until it is complete."""

    buffers: Tuple["Buffer", ...]
    device: Optional[int]
    stream: Any
    """That orders it; None: the end of the group waits for it."""


class _Local(threading.local):
    """The open groups of a thread, and what was started in them."""

    def __init__(self) -> None:
        self.started: List[Started] = []
        self.comms: List["Communicator"] = []


local = _Local()


def add(comm: "Communicator", buffers: Tuple["Buffer", ...], device: Optional[int] = None, stream: Any = None) -> None:
    """A blocking call inside a group, or one on a stream: what it needs is kept until the end."""
    local.started.append(Started(buffers, device, stream))
    if comm not in local.comms:
        local.comms.append(comm)


def let_go(buffers: Tuple["Buffer", ...], device: Optional[int], stream: Any) -> None:
    """A call has returned: gives its buffers back, now or when the stream has passed it. A rank without a device has no
    streams, and its calls are complete."""
    if stream is not None and device is not None and device != NONE:
        _driver.hold(device, _driver.stream_of(stream), buffers, stream)
        return
    for buffer in buffers:
        buffer.release()


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
        started, local.started = local.started, []
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
            for it in started:
                let_go(*it)

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
