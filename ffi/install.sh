#!/bin/sh
# install.sh PREFIX: builds libbranchline and installs headers, libraries and branchline.pc below PREFIX.
# PROFILE=dev installs the debug build.
set -eu
[ $# -eq 1 ] || { echo "usage: install.sh PREFIX" >&2; exit 2; }
mkdir -p "$1/include" "$1/lib/pkgconfig"
prefix=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
profile=${PROFILE:-release}
cargo build --quiet --profile "$profile" -p branchline-ffi
[ "$profile" = dev ] && profile=debug
built=${CARGO_TARGET_DIR:-target}/$profile
version=$(sed -n 's/^#define BRANCHLINE_VERSION "\(.*\)"$/\1/p' include/branchline.h)

cp include/branchline.h include/*.hpp "$prefix/include/"
cp "$built/libbranchline.a" "$prefix/lib/"
case $(uname -s) in
Darwin)
  cp "$built/libbranchline.dylib" "$prefix/lib/libbranchline.0.dylib"
  ln -sf libbranchline.0.dylib "$prefix/lib/libbranchline.dylib"
  ;;
*)
  cp "$built/libbranchline.so" "$prefix/lib/libbranchline.so.$version"
  ln -sf "libbranchline.so.$version" "$prefix/lib/libbranchline.so.0"
  ln -sf libbranchline.so.0 "$prefix/lib/libbranchline.so"
  ;;
esac
sed -e "s|@prefix@|$prefix|" -e "s|@version@|$version|" ffi/branchline.pc.in > "$prefix/lib/pkgconfig/branchline.pc"
