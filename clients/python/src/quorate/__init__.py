"""A client of Quorate's native API that survives the loss of hosts, and says when it cannot know.

    from quorate import Client

    with Client(["127.0.0.1:7414", "127.0.0.1:7424", "127.0.0.1:7434"]) as client:
        keyspace = client.keyspace("default")
        keyspace.put("greeting", "hello")
        assert keyspace.get("greeting").value == b"hello"

`client`, `keyspace` and `admin` have the calls, `transaction` what is done with several keys at
once, `expiry` says when keys expire, `errors` how calls fail, `_tries` how one is made again,
`_verdict` what a failed one means, `_hosts` what is known of the hosts. `v1` is generated from the
schema.
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
from quorate.expiry import After, At, ExpireWhen, Expiry, Keep, Lifetime
from quorate.keyspace import Entry, Keyspace, Reading
from quorate.transaction import (
    Add,
    Append,
    Check,
    Copy,
    Delete,
    Ended,
    Expire,
    Get,
    GetLifetime,
    Persist,
    Put,
    PutIf,
    SetRange,
    Unchanged,
)

__all__ = [
    "Add",
    "Admin",
    "After",
    "Append",
    "At",
    "Check",
    "Client",
    "Copy",
    "Delete",
    "Ended",
    "Entry",
    "Expire",
    "ExpireWhen",
    "Expiry",
    "Get",
    "GetLifetime",
    "Keep",
    "Keyspace",
    "KeyspaceDetails",
    "KeyspaceInfo",
    "Kind",
    "Lifetime",
    "OutcomeUnknown",
    "Partition",
    "Persist",
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
