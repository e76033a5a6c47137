"""Where the suites of the native API find it, and its Python code, generated from the schema.

GRPC_ENDPOINT, GRPC_ENDPOINT_SECOND  host:port of the gRPC doors of two hosts of one cluster
HTTP_ENDPOINT, HTTP_ENDPOINT_SECOND  host:port of their HTTP doors
"""

import atexit
import os
import shutil
import sys
import tempfile
import time
import uuid

GRPC = os.environ.get("GRPC_ENDPOINT", "127.0.0.1:7414")
GRPC_SECOND = os.environ.get("GRPC_ENDPOINT_SECOND", "127.0.0.1:7424")
HTTP = os.environ.get("HTTP_ENDPOINT", "127.0.0.1:7412")
HTTP_SECOND = os.environ.get("HTTP_ENDPOINT_SECOND", "127.0.0.1:7422")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCHEMA = os.path.join(ROOT, "crates", "api", "proto")


def key(name):
    """A key that no other test and no earlier run has used."""
    return f"clients:{uuid.uuid4().hex}:{name}"


def until(holds, what, seconds=60):
    """Asks again and again until something holds; fails if it does not in a long time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise AssertionError(f"not within {seconds} seconds: {what}")
        time.sleep(0.01)


def generate():
    """Generates the Python code of the schema into a throw-away folder and makes it importable."""
    from grpc_tools import protoc

    place = tempfile.mkdtemp(prefix="quorate-proto-")
    atexit.register(shutil.rmtree, place, True)
    folder = os.path.join("quorate", "v1")
    files = sorted(os.listdir(os.path.join(SCHEMA, folder)))
    names = [os.path.join(folder, name) for name in files]
    code = protoc.main(["protoc", f"-I{SCHEMA}", f"--python_out={place}",
                        f"--grpc_python_out={place}", *names])
    if code != 0:
        raise RuntimeError(f"the schema cannot be compiled: exit code {code}")
    sys.path.insert(0, place)
