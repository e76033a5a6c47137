"""Several keys at one moment, or nothing: what a transaction is made of."""

from __future__ import annotations

import dataclasses

from quorate.errors import Kind, QuorateError, Refused, Unmet
from quorate.text import Text, as_bytes
from quorate.v1 import kv_pb2


@dataclasses.dataclass(frozen=True)
class Get:
    """Reads a key; it is told the value, or None."""

    key: Text


@dataclasses.dataclass(frozen=True)
class Put:
    """Sets the value of a key; it is told None."""

    key: Text
    value: Text


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


#: What a transaction is made of.
Item = Get | Put | Delete | Check
#: What an item is told.
Told = bytes | bool | None


def to_message(item: Item) -> kv_pb2.Item:
    """An item as it is sent."""
    message = kv_pb2.Item(key=as_bytes(item.key))
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
    if isinstance(item, Get) and answer.reading.WhichOneof("state") == "value":
        return answer.reading.value
    return None


def unmet(refused: Refused) -> Unmet | None:
    """The refusal of a check by its item, if it is one."""
    head, _, number = refused.field.removesuffix("]").partition("[")
    if refused.kind is Kind.CONFLICT and head == "items" and number.isdecimal():
        return Unmet(refused, int(number))
    return None
