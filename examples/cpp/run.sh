#!/bin/sh
# Builds libbranchline and the C++ demo and runs it in a temporary directory.
set -eu
cd "$(dirname "$0")/../.."
lib=${CARGO_TARGET_DIR:-target}/debug
cargo build --quiet -p branchline-ffi
ln -sf libbranchline.so "$lib/libbranchline.so.0" # the name programs are linked to
lib=$(cd "$lib" && pwd)
${CXX:-c++} -std=c++11 -Wall -Wextra -Wpedantic -Werror -Iinclude examples/cpp/demo.cpp -o "$lib/demo-cpp" \
  -L"$lib" -Wl,-rpath,"$lib" -lbranchline
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cp README.md "$directory"
"$lib/demo-cpp" "$directory"
