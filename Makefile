# What people type. A Rust toolchain with rustfmt and clippy is assumed to be there; whatever else
# the tests need is installed by `make tools`, which says what it installs.

TARGET := $(or $(CARGO_TARGET_DIR),target)
SEEDS ?= 0..200000
ROUNDS ?= 200
ARGS ?=

.PHONY: help build example test tools test-clients test-clients-redis proto soak fuzz bench \
	bench-redis bench-ceiling bench-zookeeper bench-log

help:
	@echo "make build               the release binary, $(TARGET)/release/quorate"
	@echo "make example             the same with the example engine, $(TARGET)/release/quorate-counter"
	@echo "make test                everything CI runs: install tools, rules, tests, simulator,"
	@echo "                         mutants, real clients"
	@echo "make test-clients        only the real clients, against a three-host cluster"
	@echo "make test-clients-redis  the same suites against a plain redis-server"
	@echo "make proto               the code that is generated from the native API's schema, anew"
	@echo "make soak SEEDS=A..B     every scenario of the simulator over many seeds"
	@echo "make fuzz SEEDS=A..B     frames with odd contents among real ones: does a host end by one;"
	@echo "                         then requests of ZooKeeper's clients, changed at random, and at"
	@echo "                         real doors, so many clusters as ROUNDS says"
	@echo "make bench ARGS=...      quorate bench"
	@echo "make bench-redis         quorate and one redis-server in turn, medians and the ratio"
	@echo "make bench-zookeeper     the engine coordination and ZooKeeper 3.9 in turn, over its wire"
	@echo "make bench-log           the store's log and raft-engine in turn, and what each says of damage"
	@echo "make bench-ceiling       what an operation costs; beside it, if given, another version"
	@echo "                         (OTHER=FILE) and programs that do less (PROTOTYPES=DIR)"

build:
	cargo build --release --package quorate-server

example:
	cargo build --release --package quorate-counter

# Nothing is built twice in a fresh clone, so what would make a second build shorter only costs.
test: tools
	CARGO_INCREMENTAL=$(or $(CARGO_INCREMENTAL),0) cargo xtask ci

test-clients: tools
	cargo xtask clients

test-clients-redis: tools
	python3 tests/clients/run.py --against redis

proto: tools
	cargo xtask proto
	python3 tests/clients/run.py --generate

soak:
	cargo build --profile sim --package quorate-sim
	$(TARGET)/sim/quorate-sim --seeds $(SEEDS) $(ARGS)

fuzz:
	cargo build --profile sim --package quorate-sim
	$(TARGET)/sim/quorate-sim forge --seeds $(SEEDS) $(ARGS)
	QUORATE_ZOOKEEPER_ROUNDS=$(ROUNDS) cargo test --package quorate-doors --test zookeeper fuzz::
	QUORATE_FORGED_ROUNDS=$(ROUNDS) cargo test --package quorate-server --test it forged:: -- --nocapture

bench: build
	$(TARGET)/release/quorate bench $(ARGS)

bench-redis: build tools
	$(TARGET)/release/quorate bench compare $(ARGS)

bench-zookeeper: build tools
	mvn -q -B -ntp -f crates/bench/zookeeper.xml dependency:copy-dependencies \
		-DoutputDirectory=$(abspath $(TARGET))/zookeeper
	$(TARGET)/release/quorate bench zookeeper --keyspace coordination \
		--peer $(TARGET)/zookeeper $(ARGS)

# A program with dependencies of its own, which are no part of the product. It writes to the disk
# that the target directory is on, and takes about six minutes.
bench-log:
	cargo build --release --locked --manifest-path examples/logs/Cargo.toml \
		--target-dir $(TARGET)/logs
	$(TARGET)/logs/release/quorate-logs damage --directory $(TARGET)/logs
	$(TARGET)/logs/release/quorate-logs measure --directory $(TARGET)/logs $(ARGS)

# The programs' directories are named by what they promise; see crates/bench/prototypes.sh.
BUILT = $(TARGET)/prototypes/built/release
THREE = bash crates/bench/prototypes.sh start
bench-ceiling: build
	$(if $(PROTOTYPES),bash crates/bench/prototypes.sh build $(PROTOTYPES) $(TARGET)/prototypes)
	ADV_STORE=log ADV_GATE=key $(TARGET)/release/quorate bench ceiling --keyspace linearizable \
		$(if $(OTHER),--other $(OTHER)) \
		$(if $(PROTOTYPES),--beside "prototype:memory:$(THREE) $(BUILT)/proto 7900") \
		$(if $(PROTOTYPES),--beside "prototype:sync:$(THREE) $(BUILT)/adv 8300 {directory}") $(ARGS)

# Installs a package only for a command that is missing. The tests start servers of their own on
# ports of their own; a Redis that runs as a service is neither used nor stopped.
tools:
	@command -v cargo >/dev/null || { echo "install Rust first: https://rustup.rs"; exit 1; }
	@set -e; packages=; \
	need() { command -v "$$1" >/dev/null 2>&1 || packages="$$packages $$2"; }; \
	need redis-cli redis-tools; \
	need redis-benchmark redis-tools; \
	need redis-server redis-server; \
	need go golang-go; \
	need javac default-jdk-headless; \
	need mvn maven; \
	need node nodejs; \
	need npm npm; \
	need ip iproute2; \
	need nft nftables; \
	need faketime faketime; \
	need python3 python3; \
	python3 -c 'import ensurepip, venv' 2>/dev/null || packages="$$packages python3-venv"; \
	compiles() { echo '#include <stdio.h>' | cc -x c -fsyntax-only - 2>/dev/null; }; \
	compiles || packages="$$packages gcc libc6-dev"; \
	if [ -n "$$packages" ]; then \
		echo "== tools: installing$$packages"; \
		sudo=; [ "$$(id -u)" = 0 ] || sudo=sudo; \
		$$sudo apt-get update -qq; \
		$$sudo env DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends $$packages; \
	else \
		echo "== tools: all there"; \
	fi; \
	compiles || { echo "== tools: cc, a C compiler with the headers of the system's library, is" \
		"missing or broken; the tests in which hosts lose power need it"; exit 1; }
