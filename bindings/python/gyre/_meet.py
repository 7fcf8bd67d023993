"""The bootstrap of a world, which Ctrl-C ends. libgyre's call returns only when all ranks are there, so the main thread
runs it in another thread and waits. A framework's exchange is called in the caller's thread, as frameworks want it, and
Ctrl-C waits for its end."""
import ctypes
import threading
from typing import Any, Optional, Tuple

from ._errors import text_of
from ._library import Config, lib
from ._types import Status

_TICK_S = 0.05  # so long Python's handlers of signals may wait, where the wait for a lock is not woken by them


def _create(config: Config) -> Tuple[int, Optional[int], str]:
    """Status, handle, and the error message, which libgyre keeps for the thread that called."""
    handle = ctypes.c_void_p()
    code = int(lib.gyre_comm_create(config, handle))
    sentence = "" if code == Status.SUCCESS else text_of(lib.gyre_last_error(None)) or text_of(lib.gyre_status_text(code))
    return code, handle.value, sentence


class _Meeting:
    """One bootstrap in a thread of its own. Its result is discarded if the caller has left."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.found: Optional[Tuple[int, Optional[int], str]] = None
        self.left = False
        self.lock = threading.Lock()

    def run(self) -> None:
        found = _create(self.config)
        with self.lock:
            self.found = found
            unwanted = self.left
        if unwanted and found[1] is not None:
            lib.gyre_comm_abort(found[1])
            lib.gyre_comm_destroy(found[1])

    def leave(self) -> None:
        with self.lock:
            self.left = True
            found = self.found
        if found is not None and found[1] is not None:
            lib.gyre_comm_abort(found[1])
            lib.gyre_comm_destroy(found[1])


def meet(config: Config, exchange: Any) -> Tuple[int, Optional[int], str]:
    """Status, handle, error message."""
    if exchange is not None or threading.current_thread() is not threading.main_thread():
        return _create(config)
    meeting = _Meeting(config)
    thread = threading.Thread(target=meeting.run, name="gyre meeting", daemon=True)
    try:
        thread.start()
        while meeting.found is None:
            thread.join(_TICK_S)
    except BaseException:
        meeting.leave()
        raise
    assert meeting.found is not None
    return meeting.found
