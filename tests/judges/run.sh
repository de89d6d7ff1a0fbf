#!/bin/sh
# The official SDKs and branchline read the same streams from the same server: `make test-judges`.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"
sh tests/judges/install.sh .judges || { [ $? -eq 3 ] && exit 0; exit 1; }
BRANCHLINE_JUDGES=$root/.judges/venv/bin/python cargo test --quiet -p branchline --test judges -- --ignored
