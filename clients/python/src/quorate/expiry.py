"""When keys expire, and how long they are there."""

from __future__ import annotations

import dataclasses
import enum

from quorate.errors import Kind, QuorateError
from quorate.v1 import kv_pb2

#: The last time in milliseconds that a host takes, and the longest span.
MS_MAX = (1 << 62) - 1


@dataclasses.dataclass(frozen=True)
class After:
    """So many milliseconds after a host has read the request, by its clock."""

    ms: int

    def __post_init__(self) -> None:
        _check(self.ms)


@dataclasses.dataclass(frozen=True)
class At:
    """At this time, in milliseconds since 1970 began (UTC). If it has passed, the key has no value
    afterwards."""

    ms: int

    def __post_init__(self) -> None:
        _check(self.ms)


@dataclasses.dataclass(frozen=True)
class Keep:
    """When it would have expired anyway, or never."""


#: When a key that is put expires.
Expiry = After | At | Keep


class ExpireWhen(enum.Enum):
    """On which condition a key is given a time at which it expires."""

    ALWAYS = kv_pb2.EXPIRE_WHEN_ALWAYS
    #: It does not expire yet.
    IF_NONE = kv_pb2.EXPIRE_WHEN_IF_NONE
    #: It expires already.
    IF_SOME = kv_pb2.EXPIRE_WHEN_IF_SOME
    #: It expires already, and sooner than at the time given.
    IF_LATER = kv_pb2.EXPIRE_WHEN_IF_LATER
    #: It does not expire yet, or later than at the time given.
    IF_SOONER = kv_pb2.EXPIRE_WHEN_IF_SOONER
    #: It expires already, and later than at the time given.
    IF_SOME_AND_SOONER = kv_pb2.EXPIRE_WHEN_IF_SOME_AND_SOONER


@dataclasses.dataclass(frozen=True)
class Lifetime:
    """How long a key has its value if nobody writes it."""

    #: Whether it has one.
    exists: bool
    #: How long it is there from the host's answer on, by its clock; None if it does not expire.
    remaining_ms: int | None = None


def to_message(expiry: Expiry) -> kv_pb2.Expiry:
    """An expiry as it is sent."""
    match expiry:
        case After():
            return kv_pb2.Expiry(after_ms=expiry.ms)
        case At():
            return kv_pb2.Expiry(at_ms=expiry.ms)
        case Keep():
            return kv_pb2.Expiry(keep=kv_pb2.Keep())
    raise TypeError(f"an expiry is After, At or Keep, not {type(expiry).__name__}")


def lifetime(message: kv_pb2.Lifetime) -> Lifetime:
    """A lifetime as a host told it."""
    match message.WhichOneof("state"):
        case "absent":
            return Lifetime(False)
        case "endless":
            return Lifetime(True)
        case "remaining_ms":
            return Lifetime(True, message.remaining_ms)
    raise QuorateError("a host told nothing of a lifetime", "report it", Kind.INTERNAL)


def _check(ms: int) -> None:
    if not 1 <= ms <= MS_MAX:
        raise ValueError(f"an expiry of {ms} ms; give 1 to {MS_MAX} milliseconds")
