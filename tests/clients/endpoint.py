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

SERIALIZABLE = "use a serializable keyspace"

# Commands that a register cannot keep the promise of, and what their refusal tells to do instead.
REFUSED = [
    (["INCR", "k"], SERIALIZABLE),
    (["DECRBY", "k", "2"], SERIALIZABLE),
    (["APPEND", "k", "x"], SERIALIZABLE),
    (["SETRANGE", "k", "1", "x"], SERIALIZABLE),
    (["SETNX", "k", "x"], SERIALIZABLE),
    (["SET", "k", "x", "NX"], SERIALIZABLE),
    (["SET", "k", "x", "XX"], SERIALIZABLE),
    (["SET", "k", "x", "GET"], SERIALIZABLE),
    (["GETSET", "k", "x"], SERIALIZABLE),
    (["GETDEL", "k"], SERIALIZABLE),
    (["WATCH", "k"], SERIALIZABLE),
    (["MULTI"], SERIALIZABLE),
    (["EXPIRE", "k", "10"], SERIALIZABLE),
]

# Why, in every refusal.
REASON = "register cannot do"


def key(name):
    """A key that no other test and no earlier run has used."""
    return f"clients:{uuid.uuid4().hex}:{name}"
