#!/bin/sh
# Compiles core, C library and Node binding for systems that are not this one, tests included, with clippy's warnings as
# errors. Nothing is run. The C parts of dependencies are compiled by Zig's compiler, a Python package, below build/.
set -eu
cd "$(dirname "$0")/.."
ZIG=build/zig
CROSS="${CARGO_TARGET_DIR:-target}/cross"

sh tools/need.sh rustup "install Rust with rustup (https://rustup.rs): it brings the standard library of other systems"
[ -x "$ZIG/bin/python" ] || python3 -m venv "$ZIG"
"$ZIG/bin/python" -c "import ziglang" 2>/dev/null || "$ZIG/bin/pip" install --quiet ziglang

printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$PWD/$ZIG/bin/python" >"$ZIG/ar"
chmod +x "$ZIG/ar"

# check TARGET ZIG_TARGET PACKAGES…
check() {
	rust=$1 zig=$2
	shift 2
	rustup --quiet target add "$rust"
	# What cargo says of the target is said in Zig's words here.
	cat >"$ZIG/$rust-cc" <<-EOF
		#!/bin/sh
		for word; do
			shift
			case \$word in --target=* | -arch | arm64) ;; *) set -- "\$@" "\$word" ;; esac
		done
		exec "$PWD/$ZIG/bin/python" -m ziglang cc -target $zig "\$@"
	EOF
	chmod +x "$ZIG/$rust-cc"
	name=$(printf %s "$rust" | tr - _)
	env "CC_$name=$PWD/$ZIG/$rust-cc" "AR_$name=$PWD/$ZIG/ar" CRATE_CC_NO_DEFAULTS=1 \
		cargo clippy --quiet --target-dir "$CROSS" --target "$rust" --all-targets "$@" -- -D warnings
	echo "$rust: compiles without a warning"
}

check aarch64-apple-darwin aarch64-macos -p branchline -p branchline-ffi -p branchline-node
check aarch64-unknown-linux-gnu aarch64-linux-gnu -p branchline -p branchline-ffi -p branchline-node
# Without the shared libraries, which this target has not.
check x86_64-unknown-linux-musl x86_64-linux-musl -p branchline
