"""The forms of each call, by the package's own path: at once, ordered on a stream, as a request, as a persistent
request.

This path takes every kind of argument, and has the error messages for what cannot be taken. The compiled module has the
calls that are common under the same names, and goes before it."""
import functools
from typing import TYPE_CHECKING, Any, Callable, Optional, Set, cast

from . import _calls as calls
from . import _driver, _group
from ._calls import Call, Ranks
from ._compiled import native
from ._driver import stream_of
from ._errors import InvalidArgument
from ._library import CALLS, lib
from ._request import Flight, PersistentRequest, Request
from ._types import Status

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec

    from ._communicator import Communicator

    P = ParamSpec("P")

_BLOCKING = {name: getattr(lib, f"gyre_{name}") for name in [*CALLS, "sendrecv"]}
_STARTING = {name: getattr(lib, f"gyre_{name}_start") for name in CALLS}
_KEEPING = {name: getattr(lib, f"gyre_{name}_init") for name in CALLS}
_ORDERING = {name: getattr(lib, f"gyre_{name}_on") for name in CALLS}


def _describe(method: Any, prepare: Any, suffix: str, text: str, result: Any) -> None:
    """For help()."""
    method.__name__ = prepare.__name__ + suffix
    method.__qualname__ = f"Communicator.{method.__name__}"
    method.__module__ = "gyre"
    method.__doc__ = text.format(prepare.__doc__)
    method.__annotations__ = {**prepare.__annotations__, "return": result}


def _blocking(prepare: "Callable[Concatenate[Ranks, P], Call]") -> "Callable[Concatenate[Any, P], Any]":
    @functools.wraps(prepare)
    def method(self: Any, /, *args: "P.args", **kwargs: "P.kwargs") -> Any:
        call = prepare(self, *args, **kwargs)
        stream = kwargs.get("stream")
        return self._run(call) if stream is None else self._run_on(call, stream)

    text = "{} With `stream` it is ordered on that stream, and returns at once."
    _describe(method, prepare, "", text, Any)
    return method


def _refuse_stream(name: str, stream: Any) -> None:
    if stream is not None:
        raise InvalidArgument(f"{name}: a request has no stream; {name} with one would return at once: leave out the suffix")


def _starting(prepare: "Callable[Concatenate[Ranks, P], Call]") -> "Callable[Concatenate[Any, P], Request]":
    @functools.wraps(prepare)
    def method(self: Any, /, *args: "P.args", **kwargs: "P.kwargs") -> Request:
        _refuse_stream(f"{prepare.__name__}_start", kwargs.get("stream"))
        return Request(self._begin(prepare(self, *args, **kwargs), _STARTING, persistent=False))

    text = "{} As a request: never blocks; the buffers are gyre's until it is complete."
    _describe(method, prepare, "_start", text, Request)
    return method


def _keeping(
    prepare: "Callable[Concatenate[Ranks, P], Call]",
) -> "Callable[Concatenate[Any, P], PersistentRequest]":
    @functools.wraps(prepare)
    def method(self: Any, /, *args: "P.args", **kwargs: "P.kwargs") -> PersistentRequest:
        _refuse_stream(f"{prepare.__name__}_init", kwargs.get("stream"))
        return PersistentRequest(self._begin(prepare(self, *args, **kwargs), _KEEPING, persistent=True))

    text = "{} As a persistent request: begun by its start(), any number of times."
    _describe(method, prepare, "_init", text, PersistentRequest)
    return method


def _order(comm: Optional[int], call: Call, stream: int) -> int:
    """A call on a stream: its status. sendrecv is a group of its two halves."""
    if call.name != "sendrecv":
        return int(_ORDERING[call.name](comm, *call.arguments, stream))
    input, sent, to, output, received, from_, dtype = call.arguments
    lib.gyre_group_begin()
    codes = [
        _ORDERING["send"](comm, input, sent, dtype, to, stream),
        _ORDERING["recv"](comm, output, received, dtype, from_, stream),
        lib.gyre_group_end(),
    ]
    return next((int(code) for code in codes if code != Status.SUCCESS), int(Status.SUCCESS))


class Forms(Ranks):
    """Every call, in its forms."""

    if TYPE_CHECKING:  # of Communicator
        _handle: Optional[int]
        _flights: Set[Flight]

        def _enter(self) -> None: ...
        def _leave(self) -> None: ...
        def _check(self, code: int) -> None: ...
        def _guarded(self, function: Any, *arguments: Any) -> int: ...

    def _run(self, call: Call) -> Any:
        """At once; inside a group it is only started. Gives what holds the result."""
        grouped = native.grouped() > 0
        self._enter()
        try:
            if grouped:
                _group.add(cast("Communicator", self), call.buffers)
                self._check(_BLOCKING[call.name](self._handle, *call.arguments))
            else:
                self._check(self._guarded(_BLOCKING[call.name], self._handle, *call.arguments))
            return call.result
        finally:
            self._leave()
            if not grouped:
                for buffer in call.buffers:
                    buffer.release()

    def _run_on(self, call: Call, stream: Any) -> Any:
        """Ordered on a stream. The buffers are held until the stream has passed the call; inside a group that begins at
        its end."""
        grouped = native.grouped() > 0
        handle = stream_of(stream)
        self._enter()
        try:
            _driver.collect()
            if grouped:
                _group.add(cast("Communicator", self), call.buffers, self._device, stream)
                self._check(_order(self._handle, call, handle))
            else:
                self._check(self._guarded(_order, self._handle, call, handle))
            return call.result
        finally:
            self._leave()
            if not grouped:
                _group.let_go(call.buffers, self._device, stream)

    def _begin(self, call: Call, functions: Any, persistent: bool) -> Flight:
        self._enter()
        try:
            flight = Flight(cast("Communicator", self), call.buffers, persistent)
            self._flights.add(flight)  # before libgyre knows the buffers
            code = functions[call.name](self._handle, *call.arguments, flight.handle)
            if code != Status.SUCCESS:
                flight.let_go()
            self._check(code)
            return flight
        finally:
            self._leave()

    all_reduce = _blocking(calls.all_reduce)
    all_reduce_start = _starting(calls.all_reduce)
    all_reduce_init = _keeping(calls.all_reduce)
    reduce = _blocking(calls.reduce)
    reduce_start = _starting(calls.reduce)
    reduce_init = _keeping(calls.reduce)
    reduce_scatter = _blocking(calls.reduce_scatter)
    reduce_scatter_start = _starting(calls.reduce_scatter)
    reduce_scatter_init = _keeping(calls.reduce_scatter)
    broadcast = _blocking(calls.broadcast)
    broadcast_start = _starting(calls.broadcast)
    broadcast_init = _keeping(calls.broadcast)
    all_gather = _blocking(calls.all_gather)
    all_gather_start = _starting(calls.all_gather)
    all_gather_init = _keeping(calls.all_gather)
    gather = _blocking(calls.gather)
    gather_start = _starting(calls.gather)
    gather_init = _keeping(calls.gather)
    scatter = _blocking(calls.scatter)
    scatter_start = _starting(calls.scatter)
    scatter_init = _keeping(calls.scatter)
    all_to_all = _blocking(calls.all_to_all)
    all_to_all_start = _starting(calls.all_to_all)
    all_to_all_init = _keeping(calls.all_to_all)
    barrier = _blocking(calls.barrier)
    barrier_start = _starting(calls.barrier)
    barrier_init = _keeping(calls.barrier)
    all_gatherv = _blocking(calls.all_gatherv)
    all_gatherv_start = _starting(calls.all_gatherv)
    all_gatherv_init = _keeping(calls.all_gatherv)
    gatherv = _blocking(calls.gatherv)
    gatherv_start = _starting(calls.gatherv)
    gatherv_init = _keeping(calls.gatherv)
    scatterv = _blocking(calls.scatterv)
    scatterv_start = _starting(calls.scatterv)
    scatterv_init = _keeping(calls.scatterv)
    reduce_scatterv = _blocking(calls.reduce_scatterv)
    reduce_scatterv_start = _starting(calls.reduce_scatterv)
    reduce_scatterv_init = _keeping(calls.reduce_scatterv)
    all_to_allv = _blocking(calls.all_to_allv)
    all_to_allv_start = _starting(calls.all_to_allv)
    all_to_allv_init = _keeping(calls.all_to_allv)
    send = _blocking(calls.send)
    send_start = _starting(calls.send)
    send_init = _keeping(calls.send)
    recv = _blocking(calls.recv)
    recv_start = _starting(calls.recv)
    recv_init = _keeping(calls.recv)
    sendrecv = _blocking(calls.sendrecv)
