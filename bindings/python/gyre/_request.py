"""Requests: calls under way.

A Flight is what libgyre holds: its handle and the buffers, which stay exported until it is complete. It belongs to the
communicator, not to the Request that the caller has: a request that the caller forgets goes on, and is collected by a
later call on its communicator. Nothing calls libgyre out of a finaliser, which may run in any thread at any moment.
"""
import asyncio
import ctypes
import time
from typing import TYPE_CHECKING, Any, Generator, Iterable, List, Optional, Sequence, Tuple

from ._compiled import native
from ._errors import Error, InvalidArgument
from ._library import lib
from ._types import Status

if TYPE_CHECKING:
    from ._buffer import Buffer
    from ._communicator import Communicator

_EAGER_S = 0.001  # so long an awaited request is looked at on every turn of the event loop
_PAUSE_S = 0.001  # the longest sleep between two looks afterwards


class Flight(native.Flight):
    """One request of libgyre. `busy`: under way."""

    __slots__ = ()

    def __init__(self, comm: "Communicator", buffers: Tuple["Buffer", ...], persistent: bool) -> None:
        self.comm = comm
        self.buffers = buffers
        self.busy = not persistent
        self.error = None
        self.persistent = persistent

    @property
    def handle(self) -> ctypes.c_void_p:
        """Where libgyre keeps its handle."""
        return ctypes.c_void_p.from_address(self.address)

    def end(self, error: Optional[Error]) -> None:
        """Complete, in success or failure."""
        self.busy = False
        self.error = error
        if not self.persistent:
            self.let_go()

    def _ended(self, code: int) -> None:
        """Complete, with this status."""
        self.end(self.comm._error_or_none(code))

    def let_go(self) -> None:
        """libgyre does not know it any more."""
        for buffer in self.buffers or ():
            buffer.release()
        self.buffers = ()
        self._release()

    def test(self) -> None:
        """The caller is inside a call."""
        code = lib.gyre_test(self.handle)
        if code != Status.IN_PROGRESS:
            self._ended(code)

    def wait(self) -> None:
        """The caller is inside a call."""
        self._ended(self._wait())

    def free(self) -> bool:
        """A forgotten one: collects it. False: it is still under way. The caller is inside a call."""
        if self.busy:
            self.test()
        if self.busy:
            return False
        if self.persistent and self in self.comm._flights:
            lib.gyre_request_free(self.handle)
            self.let_go()
        return True


class Completion:
    """How a request is completed, by the package's own path."""

    _flight: Any

    def test(self) -> bool:
        """Moves all requests of the world a little, without blocking; True once this one is complete."""
        flight = self._flight
        if flight.busy:
            flight.comm._enter()
            try:
                if flight.busy:
                    flight.test()
            finally:
                flight.comm._leave()
        self._raise()
        return not flight.busy

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Blocks until it is complete. With a timeout in seconds, False if it is not complete by then."""
        flight = self._flight
        if timeout is not None:
            return self._wait_until(time.monotonic() + timeout)
        if flight.busy:
            flight.comm._enter()
            try:
                if flight.busy:
                    flight.wait()
            finally:
                flight.comm._leave()
        self._raise()
        return True

    def _wait_until(self, deadline: float) -> bool:
        began = time.monotonic()
        while not self.test():
            now = time.monotonic()
            if now >= deadline:
                return False
            time.sleep(min(_pause(now - began), deadline - now))
        return True

    def _raise(self) -> None:
        if self._flight.error is not None:
            raise self._flight.error


class Request(native.Request, Completion):
    """A call under way, as the _start methods give it. Its buffers belong to gyre until it is complete.

    Complete it by test(), wait() or `await`; each raises the call's error, however often it is asked."""

    def __init__(self, flight: Flight) -> None:
        self._flight = flight

    @property
    def done(self) -> bool:
        """True if it is known to be complete. Makes no progress: test() does."""
        return not self._flight.busy

    def __await__(self) -> Generator[Any, None, None]:
        """The event loop tests it: on every iteration at first, then at growing intervals of at most a millisecond."""
        return self._poll().__await__()

    async def _poll(self) -> None:
        began = time.monotonic()
        while not self.test():
            await asyncio.sleep(_pause(time.monotonic() - began))

    def __repr__(self) -> str:
        state = "under way" if self._flight.busy else "failed" if self._flight.error else "complete"
        return f"<gyre {type(self).__name__}, {state}>"


def _pause(elapsed: float) -> float:
    return 0.0 if elapsed < _EAGER_S else min(elapsed / 10, _PAUSE_S)


class PersistentRequest(Request):
    """A call that is set up once, by the _init methods, and begun by start() as often as wanted, with the same buffers.

    It is complete before the first start. A context manager: leaving it waits and frees."""

    def start(self) -> "PersistentRequest":
        """Begins it; never blocks. Gives itself, so that `await request.start()` can be written."""
        flight = self._flight
        flight.comm._enter()
        try:
            if flight not in flight.comm._flights:
                raise InvalidArgument("the persistent request has been freed")
            if flight.busy:
                raise InvalidArgument("the request is under way: wait for it before it is started again")
            flight.comm._check(lib.gyre_start(flight.handle))
            flight.error = None
            flight.busy = True
        finally:
            flight.comm._leave()
        return self

    def free(self) -> None:
        """Gives the buffers back. Not while it is under way; after close() of the communicator it is done already."""
        flight = self._flight
        if flight not in flight.comm._flights:
            return
        flight.comm._enter()
        try:
            if flight.busy:
                raise InvalidArgument("the request is under way: wait for it before it is freed")
            code = lib.gyre_request_free(flight.handle)
            if code == Status.SUCCESS:
                flight.let_go()
            flight.comm._check(code)
        finally:
            flight.comm._leave()

    def __enter__(self) -> "PersistentRequest":
        return self

    def __exit__(self, *reason: object) -> None:
        try:
            if reason[0] is None:
                self.wait()
        finally:
            if not self._flight.busy:
                self.free()


# ---- several at once ----


def _enter_all(requests: Iterable[Request]) -> List["Communicator"]:
    """Enters the communicator of each; all or none."""
    entered: List["Communicator"] = []
    try:
        for request in requests:
            comm = request._flight.comm
            if request._flight.busy and comm not in entered:
                comm._enter()
                entered.append(comm)
    except BaseException:
        _leave_all(entered)
        raise
    return entered


def _leave_all(entered: List["Communicator"]) -> None:
    for comm in entered:
        comm._leave()


def _wait_one(flights: Sequence[Flight]) -> int:
    """Waits for one of those under way, over several worlds too. The caller is inside calls of all of them."""
    index, code = native.wait_any(list(flights))
    flights[index]._ended(code)
    return index


def wait_all(requests: Iterable[Request]) -> None:
    """Waits for all of them, whichever worlds they belong to; then raises the error of the first that failed."""
    listed = list(requests)
    entered = _enter_all(listed)
    try:
        flights = [request._flight for request in listed]
        while len({id(flight.comm._world) for flight in flights if flight.busy}) > 1:
            _wait_one([flight for flight in flights if flight.busy])
        for flight in flights:
            if flight.busy:
                flight.wait()
    finally:
        _leave_all(entered)
    for request in listed:
        request._raise()


def wait_any(requests: Iterable[Request]) -> Optional[int]:
    """Waits for one that is under way, and gives its index; None if none is. Raises its error if it failed."""
    listed = list(requests)
    entered = _enter_all(listed)
    try:
        indices = [index for index, request in enumerate(listed) if request._flight.busy]
        if not indices:
            return None
        found = indices[_wait_one([listed[index]._flight for index in indices])]
    finally:
        _leave_all(entered)
    listed[found]._raise()
    return found


def wait_some(requests: Iterable[Request]) -> List[int]:
    """Waits for at least one that is under way, and gives the indices of all that have completed since; none if none
    is under way. Raises the error of the first among them that failed."""
    listed = list(requests)
    entered = _enter_all(listed)
    try:
        indices = [index for index, request in enumerate(listed) if request._flight.busy]
        if not indices:
            return []
        _wait_one([listed[index]._flight for index in indices])
        for index in indices:
            if listed[index]._flight.busy:
                listed[index]._flight.test()
    finally:
        _leave_all(entered)
    found = [index for index in indices if not listed[index]._flight.busy]
    for index in found:
        listed[index]._raise()
    return found
