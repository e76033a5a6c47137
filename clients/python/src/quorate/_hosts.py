"""The hosts, and what is known of them."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

import grpc

from quorate.v1 import admin_pb2, admin_pb2_grpc, kv_pb2_grpc

#: How often a silent connection is asked whether its host is there, and how long it may take.
_PING_EVERY_MS = 5_000
_PING_WITHIN_MS = 3_000
_OPTIONS = [
    # An answer has up to 32 MiB of values, or one value as long as the keyspace takes.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.keepalive_time_ms", _PING_EVERY_MS),
    ("grpc.keepalive_timeout_ms", _PING_WITHIN_MS),
    ("grpc.http2.max_pings_without_data", 0),
    # Whether a call is made again is decided here alone.
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 2_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Each client has connections of its own.
    ("grpc.use_local_subchannel_pool", 1),
]
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})")


class Host:
    """One host."""

    def __init__(self, address: str) -> None:
        found = _ADDRESS.fullmatch(address)
        if found is None or int(found[2]) > 65_535:
            raise ValueError(f"{address!r} is no address of a host; write NAME:PORT")
        self.channel = grpc.insecure_channel(address, options=_OPTIONS)
        self.kv = kv_pb2_grpc.KvStub(self.channel)
        self.admin = admin_pb2_grpc.AdminStub(self.channel)
        self._lock = threading.Lock()
        self._status: admin_pb2.StatusResponse | None = None

    def status(self, within: float, keyspace: str = "") -> admin_pb2.StatusResponse:
        """Who it is, and which keyspaces there are; asked if it is not known.

        It is asked too if it did not tell of a keyspace that may be newer than its answer.
        """
        with self._lock:
            known = self._status
        if known is not None and (not keyspace or _tells_of(known, keyspace)):
            return known
        request = admin_pb2.StatusRequest()
        told: admin_pb2.StatusResponse = self.admin.Status(request, timeout=within)
        with self._lock:
            self._status = told
        return told

    def forget(self) -> None:
        """A connection to it was lost: it may be another start when it is back."""
        with self._lock:
            self._status = None


class Hosts:
    """All hosts; each call begins at the one that answered last."""

    def __init__(self, addresses: Sequence[str]) -> None:
        if isinstance(addresses, str) or not addresses:
            raise ValueError("give a list of hosts as NAME:PORT")
        self._all = [Host(address) for address in addresses]
        self._preferred = 0

    @property
    def preferred(self) -> int:
        """The turn of the host that is asked first."""
        return self._preferred

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._all)

    def at(self, turn: int) -> Host:
        """The host of a turn."""
        return self._all[turn % len(self._all)]

    def prefer(self, turn: int) -> None:
        """The host of a turn answered: it is asked first from now on."""
        self._preferred = turn % len(self._all)

    def close(self) -> None:
        """Closes all connections."""
        for host in self._all:
            host.channel.close()


def can(
    status: admin_pb2.StatusResponse, keyspace: str, capability: admin_pb2.Capability.ValueType
) -> bool:
    """Whether a keyspace can do something; not if it was not told of."""
    return any(capability in known.can for known in status.keyspaces if known.name == keyspace)


def _tells_of(status: admin_pb2.StatusResponse, keyspace: str) -> bool:
    return any(known.name == keyspace for known in status.keyspaces)
