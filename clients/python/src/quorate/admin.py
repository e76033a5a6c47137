"""What operators ask and order: keyspaces are listed, shown, made, altered and dropped."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from quorate import _tries
from quorate._hosts import Hosts
from quorate.v1 import admin_pb2, kv_pb2


@dataclasses.dataclass(frozen=True)
class KeyspaceInfo:
    """A keyspace of the list."""

    name: str
    #: "linearizable" or "causal".
    engine: str
    #: How durable data is before a write is acknowledged: "sync", "periodic=50ms" or "memory".
    durability: str
    #: How many hosts hold each key.
    replicas: int
    #: The longest value in bytes.
    value_bytes_max: int
    #: Whether its keys are kept, and listed, in the order of their bytes.
    is_ordered: bool
    #: Whether the host that answered can serve clients of it.
    is_ready: bool
    #: What its operations wait for: "atomic" or "eventual".
    mode: str


@dataclasses.dataclass(frozen=True)
class Setting:
    """A setting of a keyspace."""

    value: str
    #: What it is unless something else is asked for when the keyspace is made.
    default: str
    #: Whether it may be altered.
    is_alterable: bool
    #: What altering it does, or why it stays as it is, for people.
    altering: str


@dataclasses.dataclass(frozen=True)
class Partition:
    """One of a keyspace's fixed partitions."""

    partition: int
    #: The node id of the host that holds it.
    node: int
    #: The number of the decree that gave it to that host.
    since: int
    #: Whether that host has fetched what it needs to stand for the partition.
    is_settled: bool


@dataclasses.dataclass(frozen=True)
class KeyspaceDetails:
    """A keyspace as the catalog has it."""

    name: str
    engine: str
    #: The number by which RESP clients select it; no other keyspace ever has it.
    number: int
    #: All settings of its engine, by name.
    settings: dict[str, Setting]
    #: The number of the decree that made it: one made anew under the same name has another.
    created: int
    #: The number of the decree that changed it last.
    changed: int
    #: Who holds what, of an engine that has partitions ("causal").
    partitions: tuple[Partition, ...]


class Admin:
    """The keyspaces of a cluster; `Client.admin` makes it.

    An order is answered when the cluster has decided it and the host that answers knows it. The
    others learn of it a moment later, so a call on a new keyspace may still meet a host that knows
    none of the name.

    Every call takes a `timeout` in seconds, and raises a QuorateError if it fails. Nothing was
    changed then, except with OutcomeUnknown: look with `show` before you give the order again.
    """

    def __init__(self, hosts: Hosts, timeout: float) -> None:
        self._hosts = hosts
        self._timeout = timeout

    def list(self, *, timeout: float | None = None) -> tuple[KeyspaceInfo, ...]:
        """The keyspaces, as the host that answers sees them."""
        request = admin_pb2.KeyspacesRequest()
        call: _tries.Call = lambda host, within: host.admin.Keyspaces(request, timeout=within)
        answer = _tries.read(self._hosts, self._within(timeout), call)
        return tuple(_info(keyspace) for keyspace in answer.keyspaces)

    def show(self, name: str, *, timeout: float | None = None) -> KeyspaceDetails:
        """How a keyspace is set, what of that may be altered, and who holds its partitions."""
        request = admin_pb2.ShowKeyspaceRequest(name=name)
        call: _tries.Call = lambda host, within: host.admin.ShowKeyspace(request, timeout=within)
        return _details(_tries.read(self._hosts, self._within(timeout), call).keyspace)

    def create(
        self,
        name: str,
        *,
        engine: str = "",
        settings: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:
        """Makes a keyspace, with the engine's defaults but for these settings.

        `engine`: its name; empty is the cluster's usual one, the linearizable engine.

        Refused with Kind.EXISTS if the name is taken.
        """
        request = admin_pb2.CreateKeyspaceRequest(name=name, engine=engine, settings=settings)
        call: _tries.Call = lambda host, within: host.admin.CreateKeyspace(request, timeout=within)
        _tries.order(self._hosts, self._within(timeout), call)

    def alter(
        self, name: str, settings: Mapping[str, str], *, timeout: float | None = None
    ) -> None:
        """Changes settings of a keyspace; all of them or none.

        Refused with Kind.CONFLICT if one of them stays as it is.
        """
        request = admin_pb2.AlterKeyspaceRequest(name=name, settings=settings)
        call: _tries.Call = lambda host, within: host.admin.AlterKeyspace(request, timeout=within)
        _tries.order(self._hosts, self._within(timeout), call)

    def drop(self, name: str, *, timeout: float | None = None) -> None:
        """Drops a keyspace and deletes its data on all hosts."""
        request = admin_pb2.DropKeyspaceRequest(name=name)
        call: _tries.Call = lambda host, within: host.admin.DropKeyspace(request, timeout=within)
        _tries.order(self._hosts, self._within(timeout), call)

    def replace(
        self, keyspace: str, partition: int, host: str, *, timeout: float | None = None
    ) -> None:
        """Has another host, given by its node id in 16 hexadecimal digits, its address or its
        number, hold a partition of a keyspace that has partitions."""
        request = admin_pb2.ReplacePartitionRequest(
            keyspace=keyspace, partition=partition, host=host
        )
        call: _tries.Call = lambda at, within: at.admin.ReplacePartition(request, timeout=within)
        _tries.order(self._hosts, self._within(timeout), call)

    def _within(self, timeout: float | None) -> float:
        return self._timeout if timeout is None else timeout


def _info(keyspace: admin_pb2.Keyspace) -> KeyspaceInfo:
    return KeyspaceInfo(
        name=keyspace.name,
        engine=keyspace.engine,
        durability=keyspace.durability,
        replicas=keyspace.replicas,
        value_bytes_max=keyspace.value_bytes_max,
        is_ordered=keyspace.order == kv_pb2.SCAN_ORDER_KEY,
        is_ready=keyspace.is_ready,
        mode=keyspace.mode,
    )


def _details(keyspace: admin_pb2.KeyspaceDetails) -> KeyspaceDetails:
    settings = {
        one.name: Setting(one.value, one.default_value, one.is_alterable, one.altering)
        for one in keyspace.settings
    }
    partitions = tuple(
        Partition(one.partition, one.node, one.since, one.is_settled) for one in keyspace.partitions
    )
    return KeyspaceDetails(
        name=keyspace.name,
        engine=keyspace.engine,
        number=keyspace.number,
        settings=settings,
        created=keyspace.created,
        changed=keyspace.changed,
        partitions=partitions,
    )
