"""Errors: one exception per status, in three groups by the largest thing that is broken.

    Error
      CallError           the call is wrong; the communicator is as before
      LocalError          something of this process: memory, descriptors, configuration
      CommunicatorError   a peer, and with it the world, which stays failed: failed, agree, shrink and close remain

str() of each is gyre's whole error message: which rank, which operation and its number, what the system said, what to
try.
"""
from typing import Dict, Optional, Type, Union

from ._types import Status


class Error(Exception):
    """What is wrong, as an error message; `status` is gyre's code, None if its value is of a newer library."""

    _status: Optional[Status] = None

    def __init__(self, sentence: str, code: Optional[int] = None) -> None:
        super().__init__(sentence)
        self.status: Optional[Status] = self._status
        self.code: int = code if code is not None else int(self._status or 0)


class CallError(Error):
    """The call is wrong; the communicator is as before."""


class LocalError(Error):
    """Something of this process is missing or wrong: memory, descriptors, configuration, a system call."""


class CommunicatorError(Error):
    """A peer is gone, late or of another mind, and with it the world, which stays failed."""


class InvalidArgument(CallError, ValueError):
    _status = Status.INVALID_ARGUMENT


class Unsupported(CallError):
    _status = Status.UNSUPPORTED


class Forked(CallError):
    _status = Status.FORKED


class NoMemory(LocalError, MemoryError):
    _status = Status.NO_MEMORY


class NoDescriptors(LocalError):
    _status = Status.NO_DESCRIPTORS


class BadConfiguration(LocalError):
    _status = Status.BAD_CONFIGURATION


class SystemFailure(LocalError):
    _status = Status.SYSTEM


class PeerDead(CommunicatorError):
    _status = Status.PEER_DEAD


class PeerUnreachable(CommunicatorError):
    _status = Status.PEER_UNREACHABLE


class PeerStalled(CommunicatorError):
    _status = Status.PEER_STALLED


class PeerLate(CommunicatorError):
    _status = Status.PEER_LATE


class PeerLeft(CommunicatorError):
    _status = Status.PEER_LEFT


class Mismatch(CommunicatorError):
    _status = Status.MISMATCH


class Aborted(CommunicatorError):
    _status = Status.ABORTED


class MeetingFailed(CommunicatorError):
    _status = Status.MEETING_FAILED


class Refused(CommunicatorError):
    _status = Status.REFUSED


class ProtocolError(CommunicatorError):
    _status = Status.PROTOCOL


class InternalError(CommunicatorError):
    _status = Status.INTERNAL


class Corrupted(CommunicatorError):
    _status = Status.CORRUPTED


class WrongResult(CommunicatorError):
    _status = Status.WRONG_RESULT


class Revoked(CommunicatorError):
    _status = Status.REVOKED


class Excluded(CommunicatorError):
    _status = Status.EXCLUDED


class Partitioned(CommunicatorError):
    _status = Status.PARTITIONED


_BY_STATUS: Dict[int, Type[Error]] = {
    int(kind._status): kind
    for group in (CallError, LocalError, CommunicatorError)
    for kind in group.__subclasses__()
    if kind._status is not None
}


def error_for(code: int, sentence: str) -> Error:
    """The exception of a status; of its group where a newer library has one that this package does not know."""
    group: Type[Error] = CallError if code < 20 else LocalError if code < 40 else CommunicatorError
    return _BY_STATUS.get(code, group)(sentence, code)


def invalid(sentence: str) -> InvalidArgument:
    return InvalidArgument(sentence)


def text_of(value: Union[bytes, None]) -> str:
    return value.decode("utf-8", "replace") if value else ""
