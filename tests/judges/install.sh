#!/bin/sh
# install.sh DIR: the official SDKs in a virtual environment in DIR. Exit status 3 and one line when that is not possible.
set -u
dir=$1
skip() { echo "test-judges: skipped: $1"; exit 3; }

here=$(dirname "$0")
cmp -s "$here/requirements.txt" "$dir/installed.txt" && exit 0
command -v python3 >/dev/null 2>&1 || skip "there is no python3"
mkdir -p "$dir" || skip "cannot write to $dir"
log=$dir/install.log
python3 -m venv "$dir/venv" >"$log" 2>&1 || skip "python3 has no venv module (see $log)"
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt" >>"$log" 2>&1 ||
  skip "the SDKs cannot be installed (see $log)"
cp "$here/requirements.txt" "$dir/installed.txt"
