"""A client of Quorate's native API that survives the loss of hosts, and says when it cannot know.

    from quorate import Client

    with Client(["127.0.0.1:7414", "127.0.0.1:7424", "127.0.0.1:7434"]) as client:
        keyspace = client.keyspace("default")
        keyspace.put("greeting", "hello")
        assert keyspace.get("greeting").value == b"hello"

`client`, `keyspace` and `admin` have the calls, `transaction` what is done with several keys at
once, `errors` says how they fail, `_tries` how a call is made again, `_verdict` what a failed one
means, `_hosts` what is known of the hosts. `v1` is generated from the schema.
"""

from quorate.admin import Admin, KeyspaceDetails, KeyspaceInfo, Partition, Setting
from quorate.client import Client
from quorate.errors import (
    Kind,
    OutcomeUnknown,
    QuorateError,
    Refused,
    SiblingsError,
    Unmet,
    Unreachable,
)
from quorate.keyspace import Entry, Keyspace, Reading
from quorate.transaction import Check, Delete, Get, Put

__all__ = [
    "Admin",
    "Check",
    "Client",
    "Delete",
    "Entry",
    "Get",
    "Keyspace",
    "KeyspaceDetails",
    "KeyspaceInfo",
    "Kind",
    "OutcomeUnknown",
    "Partition",
    "Put",
    "QuorateError",
    "Reading",
    "Refused",
    "Setting",
    "SiblingsError",
    "Unmet",
    "Unreachable",
]
