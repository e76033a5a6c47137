"""Where the suites find the server they test, and what they may expect of it.

RESP_ENDPOINT         host:port under test; any server that speaks RESP
RESP_ENDPOINT_SECOND  another host of the same cluster, if there is one
QUORATE               set to 1 when the server is ours: its refusals are tested too
"""

import os
import uuid


def _parse(text):
    host, _, port = text.rpartition(":")
    return host, int(port)


HOST, PORT = _parse(os.environ.get("RESP_ENDPOINT", "127.0.0.1:6379"))
SECOND = os.environ.get("RESP_ENDPOINT_SECOND")
SECOND = _parse(SECOND) if SECOND else None
IS_QUORATE = os.environ.get("QUORATE") == "1"

ABLE = "use a keyspace of the engine serializable"

# Commands that a register cannot keep the promise of, and what their refusal says.
REFUSED = [
    (["INCR", "k"], ABLE),
    (["DECRBY", "k", "2"], ABLE),
    (["APPEND", "k", "x"], ABLE),
    (["SETRANGE", "k", "1", "x"], ABLE),
    (["SETNX", "k", "x"], ABLE),
    (["SET", "k", "x", "NX"], ABLE),
    (["SET", "k", "x", "XX"], ABLE),
    (["SET", "k", "x", "GET"], ABLE),
    (["GETSET", "k", "x"], ABLE),
    (["GETDEL", "k"], ABLE),
    (["WATCH", "k"], ABLE),
    (["MULTI"], ABLE),
    (["EXPIRE", "k", "10"], ABLE),
    (["SETEX", "k", "10", "x"], ABLE),
    (["SET", "k", "x", "EX", "10"], ABLE),
]

# Why, in every refusal.
REASON = "this keyspace is"


def key(name):
    """A key that no other test and no earlier run has used."""
    return f"clients:{uuid.uuid4().hex}:{name}"
