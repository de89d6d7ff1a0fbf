#!/bin/sh
# Compiles and runs the C and C++ blocks of README.md and docs/*.md, each in a directory of its own, without the network.
set -eu
cd "$(dirname "$0")/../../.."
out=${CARGO_TARGET_DIR:-target}/docs
lib=${CARGO_TARGET_DIR:-target}/debug
cargo build --quiet -p branchline-ffi
rm -rf "$out"
mkdir -p "$out"
ln -sf libbranchline.so "$lib/libbranchline.so.0" # the name programs are linked to
lib=$(cd "$lib" && pwd)
out=$(cd "$out" && pwd)
python3 tests/docs/c/blocks.py "$out"

strict="-Wall -Wextra -Wpedantic -Werror -Wno-unused-function -Wno-unused-variable"
passed=0
failed=0
for source in "$out"/*.c "$out"/*.cpp; do
  [ -f "$source" ] || continue
  case $source in
    *.cpp) compiler="${CXX:-c++} -std=c++11" ;;
    *) compiler="${CC:-cc} -std=c99" ;;
  esac
  program=${source%.*}
  # shellcheck disable=SC2086 # flags are words
  if $compiler $strict -Iinclude -Itests/docs/c "$source" -o "$program" -L"$lib" "-Wl,-rpath,$lib" -lbranchline; then
    mkdir -p "$program.dir/agent"
    cp examples/session.jsonl "$program.dir/recorded.jsonl"
    if (cd "$program.dir" && HOME=$program.dir PI_CODING_AGENT_DIR=$program.dir/agent "$program" >output.txt); then
      passed=$((passed + 1))
      continue
    fi
  fi
  echo "failed: $source"
  failed=$((failed + 1))
done
echo "C and C++ of the pages: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
