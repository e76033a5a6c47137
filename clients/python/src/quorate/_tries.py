"""How a call is made until it is done, refused, or nobody can say.

A read is asked of one host after another. A write is sent with a request id, under which a host
does it once. What follows when no answer comes is up to what the keyspace can do:

- One value for each key: it is sent again to the same host, in the same start, under the same id.
  Only that one can tell what became of it; if it cannot, the outcome is unknown. Sent to another
  host an old value could come back over a newer one.
- Values side by side: it is sent on to the next host under the same id, which stays with the
  version: versions of one id are one value. The outcome is unknown only when the time is over.

An order of an operator has no id, and is not given again once it may have been taken.
"""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import grpc

from quorate._hosts import Host, Hosts, can
from quorate._verdict import Next, Verdict, judge
from quorate.errors import OutcomeUnknown, QuorateError, Unreachable
from quorate.v1 import admin_pb2, common_pb2

#: The pause before the second try; each next one is twice as long.
_PAUSE = 0.010
#: The longest pause between two tries.
_PAUSE_MAX = 0.500

#: Makes a call at a host within some seconds.
Call = Callable[[Host, float], Any]
#: The same for a write, of which the options say what is known of the request.
Write = Callable[[Host, common_pb2.WriteOptions, float], Any]


class Tries:
    """The tries of one call."""

    def __init__(self, hosts: Hosts, timeout: float) -> None:
        self.hosts = hosts
        self.turn = hosts.preferred
        self._deadline = time.monotonic() + timeout
        self._pause = _PAUSE

    @property
    def host(self) -> Host:
        """Whose turn it is."""
        return self.hosts.at(self.turn)

    def left(self) -> float:
        """The time that is left."""
        return max(0.0, self._deadline - time.monotonic())

    def share(self) -> float:
        """The time for one try of several: a host that hangs must leave some to the next one."""
        return self.left() / 2 if self.hosts.count > 1 else self.left()

    def pause(self) -> bool:
        """Waits before the next try; false if no time is left for one."""
        if self.left() <= self._pause:
            return False
        time.sleep(self._pause)
        self._pause = min(2 * self._pause, _PAUSE_MAX)
        return True

    def go_on(self, failure: QuorateError) -> None:
        """Goes on at the next host, or fails if no time is left."""
        self.turn += 1
        if not self.pause():
            raise failure

    def call(self, call: Callable[[], Any]) -> tuple[Any, Verdict | None]:
        """Makes a call; its answer, or what its failure means."""
        try:
            answer = call()
        except grpc.RpcError as failed:
            verdict = judge(failed)
            if verdict.next in (Next.LOST, Next.UNSENT):
                self.host.forget()
            return None, verdict
        return answer, None


def read(hosts: Hosts, timeout: float, call: Call) -> Any:
    """Makes a call that changes nothing at one host after another, until one answers."""
    tries = Tries(hosts, timeout)
    return _until_answered(hosts, tries, lambda: call(tries.host, tries.share()), set())


def order(hosts: Hosts, timeout: float, call: Call) -> Any:
    """Has an order of an operator done.

    It has no request id: given again, it could meet what somebody else has made meanwhile. So it
    goes on at another host only while it surely was not carried out.
    """
    tries, unknown = Tries(hosts, timeout), {Next.LOST, Next.UNKNOWN}
    return _until_answered(hosts, tries, lambda: call(tries.host, tries.left()), unknown)


def _until_answered(
    hosts: Hosts, tries: Tries, call: Callable[[], Any], unknown: set[Next]
) -> Any:
    """Goes from host to host until one answers or refuses; `unknown`: after what it must not."""
    # What was asked is what became of something, and nobody knows yet.
    is_open: OutcomeUnknown | None = None
    while True:
        answer, verdict = tries.call(call)
        if verdict is None:
            hosts.prefer(tries.turn)
            return answer
        if verdict.next is Next.REFUSED:
            assert verdict.error is not None, "a refusal says why"
            raise verdict.error
        if verdict.next in unknown:
            raise OutcomeUnknown(verdict.why, "look with `show` before you give the order again")
        if verdict.next is Next.UNKNOWN:
            is_open = OutcomeUnknown(verdict.why, token=verdict.token)
            if not verdict.token:
                raise is_open
        tries.go_on(is_open or verdict.error or Unreachable(verdict.why))


def write(hosts: Hosts, timeout: float, keyspace: str, is_foldable: bool, call: Write) -> Any:
    """Has a write done once.

    `is_foldable`: where values stand side by side, doing it at two hosts comes to the same as doing
    it once.
    """
    tries = Tries(hosts, timeout)
    while True:
        status, verdict = tries.call(lambda: tries.host.status(tries.share(), keyspace))
        if verdict is not None:
            tries.go_on(verdict.error or Unreachable(verdict.why))
            continue
        is_anywhere = is_foldable and can(status, keyspace, admin_pb2.CAPABILITY_SIBLINGS)
        sent = _Sent(tries, call, status.coordinator, is_anywhere)
        answer = _anywhere(sent) if is_anywhere else _at_one(sent)
        if not isinstance(answer, QuorateError):
            hosts.prefer(tries.turn)
            return answer
        tries.go_on(answer)


@dataclasses.dataclass
class _Sent:
    """A write under way, under one request id."""

    tries: Tries
    call: Write
    #: Whom it was sent to first.
    first: common_pb2.Coordinator
    #: Whether another host may be asked when this one hangs.
    is_shared: bool
    request_id: bytes = dataclasses.field(default_factory=lambda: os.urandom(16))
    begun: float = dataclasses.field(default_factory=time.monotonic)
    #: Whether it may have been done by a host that did not say so.
    is_open: bool = False

    def send(self) -> tuple[Any, Verdict | None]:
        """Sends it to the host whose turn it is."""
        options = common_pb2.WriteOptions(request_id=self.request_id)
        if self.is_open:
            options.repeat.coordinator.CopyFrom(self.first)
            options.repeat.age_ms = int((time.monotonic() - self.begun) * 1000)
        tries = self.tries
        within = tries.share() if self.is_shared else tries.left()
        return tries.call(lambda: self.call(tries.host, options, within))


def _at_one(sent: _Sent) -> Any:
    """Has a write done at one host: if no answer comes, it is sent there again.

    Returns the error if nothing was changed and another host may do better.
    """
    while True:
        answer, verdict = sent.send()
        if verdict is None:
            return answer
        if verdict.next is Next.UNKNOWN:
            raise OutcomeUnknown(verdict.why, token=verdict.token)
        if not sent.is_open or verdict.is_of_the_write():
            if verdict.next is Next.REFUSED:
                assert verdict.error is not None, "a refusal says why"
                raise verdict.error
            if verdict.next is not Next.LOST:
                return verdict.error or Unreachable(verdict.why)
        # What was turned away at the door, or never sent, says nothing of the first time.
        sent.is_open = True
        if not sent.tries.pause():
            raise OutcomeUnknown(verdict.why)


def _anywhere(sent: _Sent) -> Any:
    """Has a write done at any host; its id makes one of what two have done.

    Returns the error if nothing was changed and another host may do better.
    """
    while True:
        answer, verdict = sent.send()
        if verdict is None:
            return answer
        if not sent.is_open:
            if verdict.next is Next.REFUSED:
                assert verdict.error is not None, "a refusal says why"
                raise verdict.error
            if verdict.next in (Next.AGAIN, Next.UNSENT):
                return verdict.error or Unreachable(verdict.why)
        sent.is_open = True
        sent.tries.go_on(OutcomeUnknown(verdict.why))
