#!/bin/sh
# Builds the native half and puts it next to the JavaScript. PROFILE=release for a release build.
set -eu
cd "$(dirname "$0")/../.."
profile="${PROFILE:-dev}"
cargo build --quiet -p branchline-node --profile "$profile"
directory=$profile
[ "$profile" = dev ] && directory=debug
target="${CARGO_TARGET_DIR:-target}/$directory"
for name in libbranchline_node.so libbranchline_node.dylib branchline_node.dll; do
  if [ -f "$target/$name" ]; then
    # A new file, not new content: a running process may have the old one mapped.
    cp "$target/$name" bindings/node/branchline.node.new
    mv bindings/node/branchline.node.new bindings/node/branchline.node
    exit 0
  fi
done
echo "no library in $target" >&2
exit 1
