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

# Commands that a register cannot keep the promise of. Each is refused with an error that says
# why, and names the engine that can. Expiry needs a clock that the engine does not have.
REFUSED = [
    ["INCR", "k"],
    ["DECRBY", "k", "2"],
    ["APPEND", "k", "x"],
    ["SETRANGE", "k", "1", "x"],
    ["SETNX", "k", "x"],
    ["SET", "k", "x", "NX"],
    ["SET", "k", "x", "XX"],
    ["SET", "k", "x", "GET"],
    ["GETSET", "k", "x"],
    ["GETDEL", "k"],
    ["EXPIRE", "k", "10"],
    ["MULTI"],
    ["WATCH", "k"],
]


def is_refusal(text):
    """Whether an error's text names an engine that can do what was asked."""
    return text.startswith(("ERR ", "(error) ERR ")) and "serializable" in text


def key(name):
    """A key that no other test and no earlier run has used."""
    return f"clients:{uuid.uuid4().hex}:{name}"
