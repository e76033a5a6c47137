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
from quorate.transaction import (
    Add,
    Append,
    Check,
    Delete,
    Get,
    Put,
    PutIf,
    SetRange,
    Unchanged,
)

__all__ = [
    "Add",
    "Admin",
    "Append",
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
    "PutIf",
    "QuorateError",
    "Reading",
    "Refused",
    "SetRange",
    "Setting",
    "SiblingsError",
    "Unchanged",
    "Unmet",
    "Unreachable",
]
