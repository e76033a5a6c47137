#!/usr/bin/env python3
"""Runs every real client against a cluster of this machine.

    tests/clients/run.py                      all suites against target/release/quorate
    tests/clients/run.py --suite redis-py     one of them
    tests/clients/run.py --against redis      all suites against a plain redis-server
    tests/clients/run.py --against zookeeper  those of its clients against ZooKeeper
    tests/clients/run.py --generate           writes the Python package's generated code anew

The suites speak to host 1; one runs again at host 2, and several write at one host and read at
the other. Then the cluster is stopped, must leave no process, and must have its data when started
again. The suite of the Python package has a cluster of its own, which it harms. It and kazoo's,
which alone writes to the tree where it does, run beside the others. Everything generated lies in
cargo's target directory, but the package's code.
"""

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
import time

from server import Cluster, Failure, PlainRedis, ask
from zookeeper import ZooKeeper

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
TARGET = os.path.join(ROOT, os.environ.get("CARGO_TARGET_DIR", "target"))
SUITE_SECONDS = 600
SUITES = ["redis-cli", "redis-benchmark", "redis-py", "go-redis", "java", "node", "kazoo"]
SUITES += ["grpc", "http", "python"]
# What plain Redis does not speak, and what plain ZooKeeper does.
NATIVE = ["grpc", "http", "python", "kazoo"]
OF_ZOOKEEPER = ["go-redis", "java", "kazoo"]
# What asks for nothing that others ask for: these wait most of the time.
BESIDE = ["kazoo", "python"]
# What needs the virtual environment.
PYTHON = {
    "redis-py": "test_redis_py test_redis_py_transactions test_caches",
    "grpc": "test_grpc",
    "http": "test_http",
    "python": "test_python test_python_transactions test_python_places",
}
PACKAGE = os.path.join(ROOT, "clients", "python")
# Kazoo's own tests, those that ask a server.
KAZOO = "barrier cache client connection counter election lease lock partitioner party queue "
KAZOO += "watchers"


def main():
    options = parse()
    if options.generate:
        generate = [virtual_python(), os.path.join(PACKAGE, "generate.py")]
        sys.exit(subprocess.run(generate).returncode)
    work = tempfile.mkdtemp(prefix="quorate-clients-")
    data = os.path.join(work, "data")
    server = {
        "quorate": lambda: Cluster(options.binary, data),
        "redis": lambda: PlainRedis(data),
        "zookeeper": lambda: ZooKeeper(os.path.join(TARGET, "zookeeper"), data),
    }[options.against]()
    try:
        failed = run(server, options)
    except (Failure, subprocess.SubprocessError, OSError) as failure:
        failed = [str(failure)]
    finally:
        server.kill()
    if failed:
        print(server.log())
        print("== clients: failed: " + ", ".join(failed))
        sys.exit(1)
    shutil.rmtree(work)
    print("== clients: all passed")


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", choices=["quorate", "redis", "zookeeper"], default="quorate")
    parser.add_argument("--binary", default=os.path.join(TARGET, "release", "quorate"))
    parser.add_argument("--suite", choices=SUITES, action="append")
    parser.add_argument("--generate", action="store_true")
    return parser.parse_args()


def run(server, options):
    """Runs the suites chosen; returns the names of those that failed."""
    server.start()
    is_ours = options.against == "quorate"
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1")
    environment["QUORATE"] = "1" if is_ours else "0"
    if options.against == "zookeeper":
        # One of them: what is written at one server is not read at another at once.
        environment["ZOOKEEPER_ENDPOINTS"] = server.endpoint(1)
        names = [name for name in options.suite or SUITES if name in OF_ZOOKEEPER]
        return suites(names, environment)
    environment["RESP_ENDPOINT"] = server.endpoint(1)
    if is_ours:
        environment["RESP_ENDPOINT_SECOND"] = server.endpoint(2)
        for door in ("grpc", "http"):
            environment[f"{door.upper()}_ENDPOINT"] = server.endpoint(1, door)
            environment[f"{door.upper()}_ENDPOINT_SECOND"] = server.endpoint(2, door)
        hosts = [server.endpoint(number, "zookeeper") for number in (1, 2, 3)]
        environment["ZOOKEEPER_ENDPOINTS"] = ",".join(hosts)
        environment["QUORATE_BINARY"] = os.path.abspath(options.binary)
        environment["QUORATE_PACKAGE"] = os.path.join(TARGET, "python")
    names = options.suite or SUITES
    if not is_ours:
        names = [name for name in names if name not in NATIVE]
    failed = suites(names, environment)
    if is_ours:
        environment["RESP_ENDPOINT"] = server.endpoint(2)
        if not suite("redis-cli", "redis-cli at host 2", environment):
            failed.append("redis-cli at host 2")
        restart(server)
    server.stop()
    return failed


def suites(names, environment):
    """Runs suites, some beside the others; returns the names of those that failed."""
    virtual_python()
    lanes = [[name for name in names if (name in BESIDE) == beside] for beside in (False, True)]

    def run_lane(lane):
        return [name for name in lane if not suite(name, name, environment)]

    with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
        return [name for failed in pool.map(run_lane, lanes) for name in failed]


def suite(name, title, environment):
    """Runs one suite, and prints what it said when it ends; returns whether it passed."""
    command, folder = {
        "redis-cli": ([sys.executable, "-m", "unittest", "test_redis_cli"], HERE),
        "redis-benchmark": ([sys.executable, "-m", "unittest", "test_redis_benchmark"], HERE),
        "go-redis": (["go", "test", "-count=1", "./..."], os.path.join(HERE, "go")),
        "java": (
            ["mvn", "-q", "-B", "-ntp", f"-Doutput.directory={TARGET}/java", "test"]
            + ([] if "RESP_ENDPOINT" in environment else ["-Dtest=ZooKeeper*,Curator*"]),
            os.path.join(HERE, "java"),
        ),
    }.get(name, (None, HERE))
    if name in PYTHON:
        command = [virtual_python(), "-m", "unittest", *PYTHON[name].split()]
    if name == "kazoo":
        modules = [f"kazoo.tests.test_{module}" for module in KAZOO.split()]
        options = ["-q", "-p", "kazoo_cluster", "-p", "no:cacheprovider"]
        options += ["-p", "pytest_timeout", "--timeout=120"]
        # Those of other packages keep objects, which kazoo's tests of its caches count.
        environment = dict(environment, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
        command = [virtual_python(), "-m", "pytest", *options, "--pyargs", *modules]
    if name == "node":
        folder = node_modules()
        command = ["node", "--test"]
    if name == "python":
        install_package(environment["QUORATE_PACKAGE"])
    begun = time.monotonic()
    with tempfile.TemporaryFile() as said:
        try:
            code = subprocess.run(
                command, cwd=folder, env=environment, timeout=SUITE_SECONDS,
                stdout=said, stderr=subprocess.STDOUT,
            ).returncode
        except subprocess.TimeoutExpired:
            code = "none in time"
        said.seek(0)
        text = said.read().decode(errors="replace")
    outcome = "passed" if code == 0 else f"failed (exit code {code})"
    end = f"== {title}: {outcome} in {time.monotonic() - begun:.1f} s"
    print(f"== {title}: {' '.join(command)}\n{text}{end}", flush=True)
    return code == 0


def restart(server):
    """What was acknowledged before a stop is there after it."""
    ask(server.endpoint(1), "SET clients:restart kept")
    server.stop()
    server.start()
    for number in (1, 2, 3):
        reply = ask(server.endpoint(number), "GET clients:restart")
        if reply != ["$4", "kept"]:
            raise Failure(f"host {number} answered {reply} for a key set before the restart")
    print("== restart: passed", flush=True)


def virtual_python():
    """The interpreter of a virtual environment that has what requirements.txt names."""
    place = os.path.join(TARGET, "venv")
    wanted = os.path.join(HERE, "requirements.txt")
    installed = os.path.join(place, "requirements.txt")
    python = os.path.join(place, "bin", "python")
    if not os.path.exists(installed) or read(installed) != read(wanted):
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--requirement", wanted]
        subprocess.run(install, check=True)
        shutil.copy(wanted, installed)
    return python


def node_modules():
    """A copy of the tests for Node beside the packages that they need; returns its folder."""
    source, place = os.path.join(HERE, "node"), os.path.join(TARGET, "node")
    shutil.copytree(source, place, dirs_exist_ok=True)
    wanted = os.path.join(place, "package-lock.json")
    installed = os.path.join(place, "installed.json")
    if not os.path.exists(installed) or read(installed) != read(wanted):
        install = ["npm", "ci", "--no-audit", "--no-fund", "--silent"]
        subprocess.run(install, cwd=place, check=True)
        shutil.copy(wanted, installed)
    return place


def install_package(place):
    """Installs the Python package as its users do, but into a folder of its own."""
    shutil.rmtree(place, ignore_errors=True)
    install = [virtual_python(), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    # What it needs is there already, in the versions that requirements.txt pins.
    install += ["--no-deps", "--no-build-isolation", "--target", place, PACKAGE]
    subprocess.run(install, check=True)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    main()
