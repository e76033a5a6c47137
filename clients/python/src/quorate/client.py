"""The client."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from quorate._hosts import Hosts
from quorate.admin import Admin
from quorate.keyspace import Keyspace


class Client:
    """A client of a cluster. Threads may share it."""

    def __init__(self, hosts: Sequence[str], *, timeout: float = 10.0) -> None:
        """A client of the cluster that these hosts belong to, given as `NAME:PORT` of their gRPC
        doors. Nothing is connected yet.

        `timeout` is how many seconds a call may take, all tries together; each call may say
        otherwise. Raises ValueError if a host is no address.
        """
        self._hosts = Hosts(hosts)
        self._timeout = timeout

    def keyspace(self, name: str) -> Keyspace:
        """A keyspace. Whether it exists is seen by the first call."""
        return Keyspace(self._hosts, name, self._timeout)

    @property
    def admin(self) -> Admin:
        """What operators ask and order: keyspaces are listed, shown, made, altered and dropped."""
        return Admin(self._hosts, self._timeout)

    def close(self) -> None:
        """Closes all connections."""
        self._hosts.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
