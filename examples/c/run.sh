#!/bin/sh
# Builds libbranchline and the C demo and runs it on a copy of a session in a temporary directory.
set -eu
cd "$(dirname "$0")/../.."
lib=${CARGO_TARGET_DIR:-target}/debug
cargo build --quiet -p branchline-ffi
ln -sf libbranchline.so "$lib/libbranchline.so.0" # the name programs are linked to
lib=$(cd "$lib" && pwd)
${CC:-cc} -std=c99 -Wall -Wextra -Wpedantic -Werror -Iinclude examples/c/demo.c -o "$lib/demo-c" \
  -L"$lib" -Wl,-rpath,"$lib" -lbranchline
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cp README.md Makefile "$directory"
"$lib/demo-c" examples/session.jsonl "$directory"
