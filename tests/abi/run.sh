#!/bin/sh
# Builds libbranchline and the C tests, runs them, and runs them again under valgrind where there is one.
# Topics can be named: tests/abi/run.sh events callbacks
set -eu
cd "$(dirname "$0")/../.."
out=${CARGO_TARGET_DIR:-target}/abi
lib=${CARGO_TARGET_DIR:-target}/debug
cargo build --quiet -p branchline-ffi
mkdir -p "$out"
# The name programs record when they are linked.
ln -sf libbranchline.so "$lib/libbranchline.so.0"
lib=$(cd "$lib" && pwd)

${CC:-cc} -std=c99 -g -Wall -Wextra -Wpedantic -Werror -Iinclude \
  tests/abi/*.c -o "$out/tests" -L"$lib" -Wl,-rpath,"$lib" -lbranchline -lpthread

ABI_TEST_DIR=$(mktemp -d)
export ABI_TEST_DIR
trap 'rm -rf "$ABI_TEST_DIR"' EXIT

status=0
"$out/tests" "$@" > "$out/plain.txt" || status=$?
if command -v valgrind > /dev/null; then
  # Deep stacks, for the suppressions to be told by whom a block was made.
  valgrind --quiet --suppressions=tests/abi/valgrind.supp --num-callers=200 --error-exitcode=99 --leak-check=full \
    --errors-for-leak-kinds=definite,indirect,possible --show-leak-kinds=definite,indirect,possible --child-silent-after-fork=yes \
    --fair-sched=yes "$out/tests" "$@" > "$out/valgrind.txt" || status=$?
  echo "valgrind: $(tail -n 1 "$out/valgrind.txt")"
else
  echo "valgrind is not installed: memory was not checked"
fi
tail -n 1 "$out/plain.txt"
exit $status
