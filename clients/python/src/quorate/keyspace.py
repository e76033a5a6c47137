"""A keyspace and its calls."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from quorate import _tries
from quorate import expiry as expiries
from quorate._hosts import Host, Hosts
from quorate.errors import Kind, QuorateError, Refused, SiblingsError
from quorate.expiry import Expiry
from quorate.text import Text, as_bytes
from quorate.transaction import Ended, Item, Told, to_message, told, unmet
from quorate.v1 import common_pb2, kv_pb2


@dataclasses.dataclass(frozen=True)
class Reading:
    """What was read of a key."""

    #: All values that no write has replaced; of a linearizable keyspace one or none. Their order
    #: means nothing.
    values: tuple[bytes, ...]
    #: What a write that replaces exactly these values gives back; None on linearizable keyspaces,
    #: which have no contexts. A key without values can have one too.
    context: bytes | None = None
    #: Of an epidemic keyspace: how many replicas have said so; None of others.
    acks: int | None = None
    #: Of an epidemic keyspace: whether one of them knew that it had missed writes.
    is_degraded: bool = False

    @property
    def value(self) -> bytes | None:
        """The one value; None if there is none. Raises SiblingsError if there are several."""
        if len(self.values) > 1:
            raise SiblingsError(self.values)
        return self.values[0] if self.values else None


@dataclasses.dataclass(frozen=True)
class Entry:
    """One key of a listing."""

    key: bytes
    #: What it held when it was read after it was listed; None if values were not asked for.
    reading: Reading | None = None


class Keyspace:
    """One keyspace of a cluster; `Client.keyspace` makes it.

    Every call takes a `timeout` in seconds, and raises a QuorateError if it fails. Nothing was
    changed then, except with OutcomeUnknown.

    Of an epidemic keyspace it remembers how far in the order the answers were that it has given,
    and what it asks next comes behind that, at whichever host.
    """

    def __init__(self, hosts: Hosts, name: str, timeout: float) -> None:
        self.name = name
        self._hosts = hosts
        self._timeout = timeout
        self._seen = b""
        self._lock = threading.Lock()

    def get(
        self,
        key: Text,
        *,
        replicas: int = 0,
        version: int | None = None,
        timeout: float | None = None,
    ) -> Reading:
        """Reads a key.

        `replicas`: how many must have answered, on causal keyspaces; 0 is what the keyspace says.
        `version`: one that a client has chosen, on epidemic keyspaces of level `none`.
        """
        request = kv_pb2.GetRequest(keyspace=self.name, key=as_bytes(key), replicas=replicas)
        call: _tries.Call = lambda host, within: host.kv.Get(request, timeout=within)
        ask = lambda: _tries.read(self._hosts, self._within(timeout), call)
        reading = self._placed(request, version, ask).reading
        self._note(reading)
        return _reading(reading)

    def batch_get(
        self, keys: Iterable[Text], *, replicas: int = 0, timeout: float | None = None
    ) -> list[Reading]:
        """Reads up to 1,000 keys, each by itself, and answers in their order."""
        names = [as_bytes(key) for key in keys]
        request = kv_pb2.BatchGetRequest(keyspace=self.name, keys=names, replicas=replicas)
        call: _tries.Call = lambda host, within: host.kv.BatchGet(request, timeout=within)
        ask = lambda: _tries.read(self._hosts, self._within(timeout), call)
        readings = self._placed(request, None, ask).readings
        for reading in readings:
            self._note(reading)
        return [_reading(reading) for reading in readings]

    def put(
        self,
        key: Text,
        value: Text,
        *,
        context: bytes | None = None,
        expiry: Expiry | None = None,
        version: int | None = None,
        timeout: float | None = None,
    ) -> bytes:
        """Sets the value of a key.

        `context`: of an earlier answer on this key; the write takes the place of the values seen
        there and of no other. Without one, a linearizable keyspace replaces what is there, and a
        causal one keeps it beside the new value.

        `expiry`: when the key expires, where the engine has expiry; without one it does not, also
        if it did before.

        `version`: which one it is, on epidemic keyspaces of level `none`; of two values
        of a version the one with the larger hash stays, and the other is refused.

        Returns the context that covers this write, for the next one; empty on linearizable
        keyspaces, and if the key has values that this client has not seen: read it first.
        """
        request = kv_pb2.PutRequest(
            keyspace=self.name, key=as_bytes(key), value=as_bytes(value), context=context or b""
        )
        if expiry is not None:
            request.expiry.CopyFrom(expiries.to_message(expiry))
        write = lambda: self._write("Put", request, True, timeout)
        answer: kv_pb2.PutResponse = self._placed(request, version, write)
        self._note(answer)
        return answer.context

    def delete(
        self, key: Text, *, context: bytes | None = None, timeout: float | None = None
    ) -> bool | None:
        """Removes a key, or of a causal keyspace the values that were seen in `context`.

        Returns whether the key had a value; None, which is not known, if a context is given.
        """
        request = kv_pb2.DeleteRequest(
            keyspace=self.name, key=as_bytes(key), context=context or b""
        )
        # Without a context it removes what is there when it is done, so it is done at one time.
        write = lambda: self._write("Delete", request, bool(context), timeout)
        answer = self._placed(request, None, write)
        self._note(answer)
        return None if context else answer.existed

    def update(
        self,
        key: Text,
        merge: Callable[[list[bytes]], Text | None],
        *,
        timeout: float | None = None,
    ) -> bytes | None:
        """Reads a key of a causal keyspace and writes what `merge` makes of all its values.

        `merge` gets the values, none if the key has none, and returns the value that takes their
        place, or None to remove them. What others write meanwhile is kept beside it, for the next
        merge: so `merge` must not depend on order, and lose nothing that it is given. Nothing is
        written if the value is there already, alone.

        Returns what `merge` returned.
        """
        reading = self.get(key, timeout=timeout)
        if reading.context is None:
            what = (
                f"the keyspace '{self.name}' keeps one value of a key: a write between the reading "
                "and the writing of an update would be lost unseen"
            )
            raise Refused(what, "use a causal keyspace", Kind.UNSUPPORTED)
        merged = merge(list(reading.values))
        if merged is None:
            if reading.values:
                self.delete(key, context=reading.context, timeout=timeout)
            return None
        value = as_bytes(merged)
        if reading.values != (value,):
            self.put(key, value, context=reading.context, timeout=timeout)
        return value

    def transact(self, items: Iterable[Item], *, timeout: float | None = None) -> list[Told]:
        """Does several things at one moment, or nothing, where the engine has transactions.

        `items`: `Get`, `Put`, `Delete`, `Check`, the changes `PutIf`, `Add`, `Append` and
        `SetRange`, and of keys that expire `Expire`, `Persist` and `GetLifetime`, done in their
        order; each sees what those before it did. Raises Unmet if a check does not hold.

        Returns what each item was told, in their order.
        """
        asked = list(items)
        messages = [to_message(item) for item in asked]
        request = kv_pb2.TransactRequest(keyspace=self.name, items=messages)
        try:
            answer = self._write("Transact", request, False, timeout)
        except Refused as refused:
            raise unmet(refused) or refused from None
        return told(asked, list(answer.answers))

    def how_ended(self, token: bytes, *, timeout: float | None = None) -> Ended:
        """How a transaction, or a write, ended that raised OutcomeUnknown with this token.

        Raises OutcomeUnknown if nobody knows yet, with the token, or any more, without.
        """
        request = kv_pb2.HowEndedRequest(keyspace=self.name, token=token)
        call: _tries.Call = lambda host, within: host.kv.HowEnded(request, timeout=within)
        return Ended(_tries.read(self._hosts, self._within(timeout), call).ended)

    def scan(
        self,
        *,
        start: Text | None = None,
        end: Text | None = None,
        values: bool = False,
        page_keys: int = 0,
        timeout: float | None = None,
    ) -> Iterator[Entry]:
        """Lists keys, from `start` on and before `end` if the keyspace keeps its keys in order.

        `values` reads them too, each by itself after its key was listed. A page that cannot be
        read at one host is read at another; `timeout` is of each page.
        """
        request = kv_pb2.ScanRequest(
            keyspace=self.name, page_keys=page_keys, with_values=values
        )
        if start is not None:
            setattr(request, "from", as_bytes(start))
        if end is not None:
            request.to = as_bytes(end)
        while True:
            call: _tries.Call = lambda host, within: _first_page(host, request, within)
            page = _tries.read(self._hosts, self._within(timeout), call)
            for entry in page.entries:
                yield Entry(entry.key, _reading(entry.reading) if values else None)
            if not page.cursor:
                return
            request.cursor = page.cursor

    def _placed(
        self,
        request: (
            kv_pb2.GetRequest
            | kv_pb2.PutRequest
            | kv_pb2.DeleteRequest
            | kv_pb2.BatchGetRequest
        ),
        version: int | None,
        ask: Callable[[], Any],
    ) -> Any:
        """Has a request done at a version, or behind what was seen. Where that is refused the
        keyspace was made anew under its name: it is forgotten, and the request goes without."""
        seen = self._seen
        if version is not None:
            request.place.version = version
        elif seen:
            request.place.after = seen
        try:
            return ask()
        except Refused as refused:
            is_of_token = version is None and seen and refused.kind == Kind.BAD_CONTEXT
            if not is_of_token:
                raise
        with self._lock:
            if self._seen == seen:
                self._seen = b""
        request.ClearField("place")
        return ask()

    def _note(
        self, answer: common_pb2.Reading | kv_pb2.PutResponse | kv_pb2.DeleteResponse
    ) -> None:
        """Remembers the largest token; those of versions of clients, which begin with 0, have no
        order."""
        token = answer.receipt.token
        if token[:1] > b"\0":
            with self._lock:
                self._seen = max(self._seen, token)

    def _write(
        self,
        name: str,
        request: kv_pb2.PutRequest | kv_pb2.DeleteRequest | kv_pb2.TransactRequest,
        is_foldable: bool,
        timeout: float | None,
    ) -> Any:
        def call(host: Host, options: common_pb2.WriteOptions, within: float) -> Any:
            request.options.CopyFrom(options)
            return getattr(host.kv, name)(request, timeout=within)

        within = self._within(timeout)
        return _tries.write(self._hosts, within, self.name, is_foldable, call)

    def _within(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout


def _reading(reading: common_pb2.Reading) -> Reading:
    state = reading.WhichOneof("state")
    acks, is_degraded = None, False
    if reading.HasField("receipt"):
        acks, is_degraded = reading.receipt.acks, reading.receipt.is_degraded
    if state == "value":
        return Reading((reading.value,), None, acks, is_degraded)
    if state == "absent":
        return Reading((), None, acks, is_degraded)
    if state == "siblings":
        return Reading(tuple(reading.siblings.values), reading.siblings.context)
    raise QuorateError("a host answered a reading without a state", "report it", Kind.INTERNAL)


def _first_page(host: Host, request: kv_pb2.ScanRequest, within: float) -> kv_pb2.ScanPage:
    """The first page of a stream, which is then left: the next one may be another host's."""
    stream = host.kv.Scan(request, timeout=within)
    try:
        for message in stream:
            if message.WhichOneof("part") == "page":
                page: kv_pb2.ScanPage = message.page
                return page
    finally:
        stream.cancel()
    raise QuorateError("a host answered a listing without a page", "report it", Kind.INTERNAL)
