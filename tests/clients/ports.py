"""Ports of this machine that nobody uses, so that two runs side by side never meet."""

import os
import socket

# Enough for nine hosts, ten ports apart.
BLOCK = 100
# The blocks of these suites: above those of the tests in Rust, below what the system gives out.
FIRST = 32_000
BLOCKS = 7


def base():
    """The first port of a free block, and what keeps it for whoever holds it."""
    for turn in range(BLOCKS):
        first = FIRST + (os.getpid() + turn) % BLOCKS * BLOCK
        guard = _listen(first)
        if guard is None:
            continue
        others = [_listen(first + offset) for offset in range(1, BLOCK)]
        for other in filter(None, others):
            other.close()
        if all(others):
            return first, guard
        guard.close()
    raise OSError(f"no block of {BLOCK} ports is free from {FIRST} on")


def _listen(port):
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return None
