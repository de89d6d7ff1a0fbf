#!/bin/sh
# Tests branchline with a real model in a real server on loopback: `make test-local-model`.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
sh tests/local_model/install.sh .local-model || { [ $? -eq 3 ] && exit 0; exit 1; }
BRANCHLINE_LOCAL_MODEL=$root/.local-model cargo test --quiet -p branchline --test local_model -- --ignored --test-threads=1
