#!/usr/bin/env python3
"""Writes the Python code of the native API's schema anew, or checks that it is current.

    python clients/python/generate.py            write it into src/quorate/v1
    python clients/python/generate.py --check    fail if what is committed is not that

The code is committed, so who installs the package needs no compiler for the schema. What it says
depends on the compiler's version: use the grpcio-tools that tests/clients/requirements.txt pins,
which `make proto` does.
"""

import os
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SCHEMA = os.path.join(HERE, "..", "..", "crates", "api", "proto")
CODE = os.path.join(HERE, "src", "quorate", "v1")
PACKAGE = '"""What the schema `quorate.v1` defines, written by clients/python/generate.py."""\n'


def generate(place):
    """Generates the code below a folder; returns the folder of the package."""
    from grpc_tools import protoc

    folder = os.path.join("quorate", "v1")
    files = sorted(os.listdir(os.path.join(SCHEMA, folder)))
    outputs = [f"--{kind}_out={place}" for kind in ("python", "pyi", "grpc_python")]
    names = [os.path.join(folder, name) for name in files]
    code = protoc.main(["protoc", f"-I{SCHEMA}", *outputs, *names])
    if code != 0:
        raise RuntimeError(f"the schema cannot be compiled: exit code {code}")
    made = os.path.join(place, folder)
    for name in os.listdir(made):
        # Files of messages alone have stubs for no service.
        if name.endswith("_pb2_grpc.py") and "Stub" not in _read(os.path.join(made, name)):
            os.remove(os.path.join(made, name))
    with open(os.path.join(made, "__init__.py"), "w", encoding="utf-8") as file:
        file.write(PACKAGE)
    return made


def stale():
    """The names of files that are not what the schema says."""
    with tempfile.TemporaryDirectory() as place:
        made = generate(place)
        names = set(_files(made)) | set(_files(CODE))
        return sorted(name for name in names if not _is_same(made, name))


def main():
    if sys.argv[1:] == ["--check"]:
        names = stale()
        if names:
            sys.exit(f"not current: {', '.join(names)}; run `make proto`")
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        with tempfile.TemporaryDirectory() as place:
            made = generate(place)
            shutil.rmtree(CODE, ignore_errors=True)
            shutil.copytree(made, CODE)


def _files(folder):
    if not os.path.isdir(folder):
        return []
    return [name for name in os.listdir(folder) if name.endswith((".py", ".pyi"))]


def _is_same(made, name):
    paths = [os.path.join(folder, name) for folder in (made, CODE)]
    return all(os.path.exists(path) for path in paths) and _read(paths[0]) == _read(paths[1])


def _read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    main()
