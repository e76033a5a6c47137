"""Several keys at one moment, or nothing: what a transaction is made of."""

from __future__ import annotations

import dataclasses
import enum

from quorate import expiry as expiries
from quorate.errors import Kind, QuorateError, Refused, Unmet
from quorate.expiry import After, At, ExpireWhen, Expiry, Lifetime
from quorate.text import Text, as_bytes
from quorate.v1 import kv_pb2


@dataclasses.dataclass(frozen=True)
class Get:
    """Reads a key; it is told the value, or None."""

    key: Text


@dataclasses.dataclass(frozen=True)
class Put:
    """Sets the value of a key; it is told None. Without an `expiry` the key does not expire."""

    key: Text
    value: Text
    expiry: Expiry | None = None


@dataclasses.dataclass(frozen=True)
class Delete:
    """Removes a key; it is told whether the key had a value."""

    key: Text


@dataclasses.dataclass(frozen=True)
class Check:
    """Does nothing, but the transaction is done only if the key has this value; without a value,
    only if it `exists`, or does not. It is told None. The key may have had other values since it
    was read."""

    key: Text
    value: Text | None = None
    exists: bool | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.exists is None):
            raise ValueError("a check has either a value or `exists`")


@dataclasses.dataclass(frozen=True)
class PutIf:
    """Sets the value of a key only if it has one (`exists`), or has none. It is told True. Without
    an `expiry` the key does not expire."""

    key: Text
    value: Text
    exists: bool
    expiry: Expiry | None = None


@dataclasses.dataclass(frozen=True)
class Add:
    """Adds to a whole number of 64 bits, as which an absent key is 0. It is told the sum, an int;
    a sum of decimal numbers, which `number` is as a float, is told as bytes."""

    key: Text
    number: int | float


@dataclasses.dataclass(frozen=True)
class Append:
    """Appends to the value of a key, as which an absent key is empty. It is told the length."""

    key: Text
    value: Text


@dataclasses.dataclass(frozen=True)
class SetRange:
    """Overwrites a part of the value of a key, which is filled up with zero bytes where it is too
    short. It is told the length."""

    key: Text
    offset: int
    value: Text


@dataclasses.dataclass(frozen=True)
class Expire:
    """Gives a key a time at which it expires, if `when` holds. It is told whether it was done. A
    key without a value stays so."""

    key: Text
    end: After | At
    when: ExpireWhen = ExpireWhen.ALWAYS


@dataclasses.dataclass(frozen=True)
class Persist:
    """Lets a key expire no more. It is told whether it would have expired."""

    key: Text


@dataclasses.dataclass(frozen=True)
class GetLifetime:
    """Reads when a key expires; it is told a `Lifetime`."""

    key: Text


@dataclasses.dataclass(frozen=True)
class Copy:
    """Gives another key the value of a key, and its time to expire if it has one; where the other
    one has a value only if it `replaces` it. With `removes` the key is removed, so that it has
    another name then. It is told what became of it: `DONE`, `NO_SOURCE` or `OCCUPIED`."""

    key: Text
    to: Text
    replaces: bool = False
    removes: bool = False


@dataclasses.dataclass(frozen=True)
class Unchanged:
    """What a change is told that was not done, though all else was: the name of the reason, such
    as `CONDITION`, `NOT_AN_INTEGER` or `OVERFLOW`."""

    reason: str


class Ended(enum.Enum):
    """How a transaction ended."""

    #: All of it has taken effect.
    COMMITTED = kv_pb2.ENDED_COMMITTED
    #: A part of it has: the other changes could not be done where they stood, as one on a condition
    #: that does not hold.
    PARTIAL = kv_pb2.ENDED_PARTIAL
    #: Nothing of it has taken effect, and never will.
    ABORTED = kv_pb2.ENDED_ABORTED


#: What a transaction is made of.
Item = (
    Get
    | Put
    | Delete
    | Check
    | PutIf
    | Add
    | Append
    | SetRange
    | Expire
    | Persist
    | GetLifetime
    | Copy
)
#: What an item is told.
Told = bytes | bool | int | str | Lifetime | Unchanged | None


def to_message(item: Item) -> kv_pb2.Item:
    """An item as it is sent."""
    message = kv_pb2.Item(key=as_bytes(item.key))
    if isinstance(item, (Put, PutIf)) and item.expiry is not None:
        message.expiry.CopyFrom(expiries.to_message(item.expiry))
    match item:
        case Get():
            message.get.SetInParent()
        case Put():
            message.put = as_bytes(item.value)
        case Delete():
            message.delete.SetInParent()
        case Check():
            if item.value is not None:
                message.check.value = as_bytes(item.value)
            else:
                message.check.exists = bool(item.exists)
        case PutIf():
            message.change.put_if.exists = item.exists
            message.change.put_if.value = as_bytes(item.value)
        case Add():
            if isinstance(item.number, float):
                message.change.add_float = repr(item.number).encode()
            else:
                message.change.add = item.number
        case Append():
            message.change.append = as_bytes(item.value)
        case SetRange():
            message.change.set_range.offset = item.offset
            message.change.set_range.bytes = as_bytes(item.value)
        case Expire():
            message.expire.when = item.when.value
            if isinstance(item.end, After):
                message.expire.after_ms = item.end.ms
            else:
                message.expire.at_ms = item.end.ms
        case Persist():
            message.persist.SetInParent()
        case GetLifetime():
            message.lifetime.SetInParent()
        case Copy():
            message.copy.to = as_bytes(item.to)
            message.copy.replaces = item.replaces
            message.copy.removes = item.removes
    return message


def told(items: list[Item], answers: list[kv_pb2.ItemAnswer]) -> list[Told]:
    """What each item was told."""
    if len(items) != len(answers):
        what = f"a host answered {len(answers)} items of {len(items)}"
        raise QuorateError(what, "report it", Kind.INTERNAL)
    return [_told(item, answer) for item, answer in zip(items, answers)]


def _told(item: Item, answer: kv_pb2.ItemAnswer) -> Told:
    if isinstance(item, Delete):
        return answer.existed
    if isinstance(item, (Expire, Persist)):
        return answer.expiry_changed
    if isinstance(item, Copy):
        return kv_pb2.Copied.Name(answer.copied).removeprefix("COPIED_")
    if isinstance(item, GetLifetime):
        return expiries.lifetime(answer.lifetime)
    if isinstance(item, Get) and answer.reading.WhichOneof("state") == "value":
        return answer.reading.value
    if answer.HasField("changed"):
        return _changed(answer.changed)
    return None


def _changed(changed: kv_pb2.Changed) -> Told:
    match changed.WhichOneof("told"):
        case "unchanged":
            name = kv_pb2.Unchanged.Name(changed.unchanged)
            return Unchanged(name.removeprefix("UNCHANGED_"))
        case None:
            raise QuorateError("a host told nothing of a change", "report it", Kind.INTERNAL)
        case field:
            return getattr(changed, field)


def unmet(refused: Refused) -> Unmet | None:
    """The refusal of a check by its item, if it is one."""
    head, _, number = refused.field.removesuffix("]").partition("[")
    if refused.kind is Kind.CONFLICT and head == "items" and number.isdecimal():
        return Unmet(refused, int(number))
    return None
