#!/usr/bin/env bash
# Programs that show what a machine allows, as columns of `quorate bench ceiling`.
#
#   prototypes.sh build SOURCES TARGET       builds SOURCES/*/{Cargo.toml,main.rs} in TARGET
#   prototypes.sh start PROGRAM PORT [DIR]   starts three hosts and prints where they are
#
# A program is called with its number (0 to 2), the first port, and a directory of its own if one is
# given; its clients' port is the first port plus its number.
set -euo pipefail

build() {
    local sources=$1 target from name
    target=$(realpath -m "$2")
    for from in "$sources"/*/; do
        name=$(basename "$from")
        mkdir -p "$target/$name/src"
        cp "$from/Cargo.toml" "$target/$name/Cargo.toml"
        # It stands below another workspace and belongs to none.
        printf '\n[workspace]\n' >>"$target/$name/Cargo.toml"
        cp "$from/main.rs" "$target/$name/src/main.rs"
        (cd "$target/$name" && cargo build --quiet --release --target-dir "$target/built")
    done
}

start() {
    local program=$1 port=$2 directory=${3:-} hosts= pids=() index
    for index in 0 1 2; do
        "$program" "$index" "$port" ${directory:+"$directory/$index"} >&2 &
        pids+=($!)
        hosts+="${hosts:+,}{\"pid\":$!,\"resp\":\"127.0.0.1:$((port + index))\"}"
    done
    trap 'kill "${pids[@]}" 2>/dev/null || true; exit 0' INT TERM EXIT
    for index in 0 1 2; do
        until (exec 3<>"/dev/tcp/127.0.0.1/$((port + index))") 2>/dev/null; do
            kill -0 "${pids[$index]}" || { echo "host $index of $program has ended" >&2; exit 1; }
            sleep 0.05
        done
    done
    echo "{\"hosts\":[$hosts]}"
    wait
}

"$@"
