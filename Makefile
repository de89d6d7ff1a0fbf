# branchline: `make demo` shows it, `make test` tests it. Both install what they need below this folder.
#
#   make demo                 C, C++, Python, Node and Rust hosts, each with a session, a second branch and a fork
#   make test                 everything: Rust, C, Python, Node, the conformance cases, pi as a peer
#   make lint                 formatting, clippy, docs, drift of the header and of the type stubs
#   make conformance DIR=…    any folder of conformance cases; ends with `N passed, 0 failed`
#   make bench-tree           the session tree side by side with pi and with the physical limits
#   make bench-tools          the tools side by side with pi, rg, fd and the physical limits
#   make bench-loop           turns, deltas and start-up side by side with pi
#   make bench-stream         answers of a service on loopback side by side with pi
#   make fuzz                 a minute of random input for each reader of what services send (FUZZ_SECONDS=60)
#   make bench-cancel         how fast searches of a million files end when they are cancelled
#   make check-targets        compiles for macOS, arm64 and musl: clippy without warnings, nothing is run
#   make header               writes include/branchline.h anew
#   make map                  writes docs/modules.md anew
#   make test-long            the 10,000-command test, which takes half a minute
#   make test-local-model     a real small model in llama.cpp's server (200 MB, once)
#   make test-judges          the official SDKs of OpenAI, Anthropic and Google read the same streams (150 MB, once)
#   make test-rust test-docs test-abi test-python test-node test-crash test-interop     parts of `make test`

SHELL := /bin/sh
VENV  := .venv
PY    := $(VENV)/bin/python
DIR   ?= tests/conformance/cases
NEED  := sh tools/need.sh

.PHONY: help demo test lint conformance bench-tree bench-tools bench-loop bench-stream bench-cancel fuzz header check-targets clean \
	need-rust need-cc need-cxx need-python need-node \
	demo-rust demo-c demo-python demo-node \
	test-rust test-doc test-docs test-demo test-abi test-python test-node test-crash test-interop test-long test-local-model test-judges lint-rust lint-map lint-header lint-python lint-node map

help:
	@sed -n '2,21s/^# \{0,1\}//p' Makefile

need-rust: ; @$(NEED) cargo "install Rust 1.89 or newer with rustup (https://rustup.rs)"
need-cc: ; @$(NEED) cc "install a C compiler, for example 'apt-get install build-essential'"
need-cxx: ; @$(NEED) c++ "install a C++ compiler, for example 'apt-get install build-essential'"
need-python: ; @$(NEED) python3 "install Python 3.9 or newer with venv, for example 'apt-get install python3-venv'"
need-node: ; @$(NEED) npm "install Node.js 20 or newer, for example from your system's packages"

# --- demo ------------------------------------------------------------------------------------------------------------

demo: demo-rust demo-c demo-python demo-node

demo-rust: need-rust
	cargo run --quiet -p branchline --example demo

demo-c: need-rust need-cc need-cxx
	sh examples/c/run.sh
	sh examples/cpp/run.sh

demo-python: bindings/python/.built
	PYTHONPATH=bindings/python/python $(PY) examples/python/demo.py

demo-node: bindings/node/.built
	node examples/node/demo.mjs

# --- test ------------------------------------------------------------------------------------------------------------

test: test-rust test-doc conformance test-abi test-python test-node test-demo

# Also the crash, interoperability and committed conformance tests: all of the workspace's Rust.
test-rust: need-rust need-node
	@if cargo nextest --version >/dev/null 2>&1; then cargo nextest run; else cargo test --tests --quiet; fi

# What a newcomer runs first.
test-demo:
	@$(MAKE) --no-print-directory demo >/dev/null && echo "demo: every host ran"

# Examples in the documentation of the code, and the Rust, C and C++ of the pages.
test-docs: test-doc
	cargo test --quiet -p branchline-docs

# What of it `test-rust` does not run.
test-doc: need-rust need-cc need-cxx need-python
	cargo test --quiet --doc -p branchline
	@sh tests/docs/c/run.sh

test-crash: need-rust
	cargo test -p branchline-crash

# Tests too long for every run: 10,000 commands started and ended.
test-long: need-rust
	cargo test -p branchline --test tools_run_many -- --ignored

# Both install what they need below this folder, and say in one line why when they cannot.
test-local-model: need-rust
	@sh tests/local_model/run.sh

test-judges: need-rust
	@sh tests/judges/run.sh

test-interop: need-rust need-node
	cargo test -p branchline-interop -- --nocapture

test-abi: need-rust need-cc
	sh tests/abi/run.sh

test-python: bindings/python/.built
	PYTHONPATH=bindings/python/python $(PY) -m pytest -q bindings/python/tests

test-node: bindings/node/.built
	cd bindings/node && npm test --silent

# A minute for each target, two at a time; the same seeds are run by `make test` as well. FUZZ_SECONDS=0 only builds.
fuzz: need-rust need-cxx
	@sh fuzz/run.sh

conformance: need-rust
	cargo run --quiet -p branchline-conformance -- $(DIR)

# --- lint ------------------------------------------------------------------------------------------------------------

lint: lint-rust lint-map lint-header lint-python lint-node

lint-rust: need-rust
	cargo fmt --all --check
	cargo clippy --quiet --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --quiet --no-deps -p branchline

lint-header: need-rust need-cc need-cxx need-python
	cargo run --quiet -p branchline-header -- --check
	sh tests/abi/check.sh

lint-map: need-python
	@python3 tools/modules.py --check

lint-python: bindings/python/.built
	cd bindings/python && PYTHONPATH=python ../../$(PY) -m mypy.stubtest branchline
	cd bindings/python && ../../$(VENV)/bin/mypy
	cd bindings/python && ../../$(VENV)/bin/ruff check --quiet --config pyproject.toml . ../../examples/python
	cd bindings/python && ../../$(VENV)/bin/ruff format --quiet --check --config pyproject.toml . ../../examples/python

lint-node: bindings/node/.built
	cd bindings/node && npm run --silent types

# Needs rustup and python3 with venv; brings the standard libraries and a C compiler for those systems (half a GB, once).
check-targets: need-rust need-python
	@sh tools/check-targets.sh

header: need-rust
	cargo run --quiet -p branchline-header

map: need-python
	python3 tools/modules.py

# --- build -----------------------------------------------------------------------------------------------------------

$(VENV)/.ready: bindings/python/requirements-dev.txt | need-python
	test -x $(PY) || python3 -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -r bindings/python/requirements-dev.txt
	touch $@

bindings/node/node_modules/.ready: bindings/node/package-lock.json | need-node
	cd bindings/node && npm ci --silent --no-audit --no-fund
	touch $@

# Cargo knows what is up to date; these always ask it.
.PHONY: bindings/python/.built bindings/node/.built
bindings/python/.built: $(VENV)/.ready | need-rust
	sh bindings/python/build.sh
bindings/node/.built: bindings/node/node_modules/.ready | need-rust
	sh bindings/node/build.sh

bench-tree: need-rust need-python need-node
	python3 bench/tree.py $(ARGS)

bench-tools: need-rust need-python need-node
	python3 bench/tools.py $(ARGS)

bench-loop: need-rust need-python need-node
	python3 bench/loop.py $(ARGS)

bench-stream: need-rust need-python need-node
	python3 bench/stream.py $(ARGS)

bench-cancel: need-rust need-python
	python3 bench/cancel.py $(ARGS)

clean:
	rm -rf target build fuzz/target fuzz/found $(VENV) .local-model .judges bindings/node/node_modules bench/data bench/results
