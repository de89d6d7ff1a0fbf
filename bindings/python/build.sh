#!/bin/sh
# Builds the native half and puts it where Python imports it from this tree: set PYTHONPATH to bindings/python/python.
# For a real installation: pip install ./bindings/python
set -eu
cd "$(dirname "$0")/../.."
target=${CARGO_TARGET_DIR:-target}
cargo build --quiet -p branchline-python "$@"
profile=debug
for argument in "$@"; do
  if [ "$argument" = --release ]; then profile=release; fi
done
case $(uname -s) in
  Darwin) library=libbranchline_python.dylib ;;
  *) library=libbranchline_python.so ;;
esac
# A new file, not new bytes in the old one: a process may have the old one mapped.
package=bindings/python/python/branchline
cp "$target/$profile/$library" "$package/.building"
mv "$package/.building" "$package/_branchline.abi3.so"
