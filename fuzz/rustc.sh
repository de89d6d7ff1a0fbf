#!/bin/sh
# Cargo's compiler while the fuzz targets are built (RUSTC_WRAPPER): the core and the targets tell libFuzzer which of their
# branches ran, everything else is compiled as usual and shared with the other builds. This is what cargo-fuzz does, with
# a stable compiler.
set -eu
rustc=$1
shift
case " $* " in
*" --crate-name build_script_"*) ;;
*" --crate-name branchline "* | *" targets/"*)
  set -- "$@" --cfg fuzzing -Coverflow-checks=on -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares
  ;;
esac
exec "$rustc" "$@"
