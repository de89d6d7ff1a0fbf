#!/bin/sh
# Random input for the readers of what services send: `make fuzz`. A stable Rust and a C++ compiler are all it takes.
#
#   FUZZ_SECONDS=60   how long each target runs
#   FUZZ_JOBS=2       how many run at a time
#   FUZZ_TARGETS=…    which; all of `targets/` unless said
#
# What a target fails on is kept in fuzz/found/, and the last lines say how to run it again. Inputs found to be interesting
# stay below the target directory, so that the next run goes on from there.
set -eu
cd "$(dirname "$0")/.."
out=${CARGO_TARGET_DIR:-$PWD/target}
seconds=${FUZZ_SECONDS:-60}
targets=${FUZZ_TARGETS:-$(ls fuzz/targets | sed 's/\.rs$//')}

# The compiler wrapper decides what is instrumented; the rest is shared with the other builds.
CARGO_TARGET_DIR=$out RUSTC_WRAPPER=$PWD/fuzz/rustc.sh \
  cargo build --quiet --locked --manifest-path fuzz/Cargo.toml --bins
[ "$seconds" -gt 0 ] || exit 0

one() {
  target=$1
  mkdir -p "$out/fuzz/corpus/$target" fuzz/found
  log=$out/fuzz/$target.log
  # The shell's own words about a process that aborted are noise beside the target's.
  if { "$out/debug/fuzz_$target" "$out/fuzz/corpus/$target" "fuzz/seeds/$target" "-artifact_prefix=fuzz/found/$target-" \
    "-max_total_time=$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=8192 -print_final_stats=1; } >"$log" 2>&1; then
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    seen=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    echo "fuzz $target: $seconds s, $runs inputs, $seen places of the code seen, nothing found"
    return 0
  fi
  input=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
  echo "fuzz $target: FAILED: $(grep -aE -m 1 -A 1 'panicked at|^==.*ERROR' "$log" | tr '\n' ' ')"
  echo "fuzz $target: the whole story is in $log; to run it again: $out/debug/fuzz_$target ${input:-fuzz/found/…}"
  return 1
}

# Some lanes, each with every so many-th target.
jobs=${FUZZ_JOBS:-2}
lane=0
pids=
while [ "$lane" -lt "$jobs" ]; do
  (
    failed=0
    at=0
    for target in $targets; do
      [ $((at % jobs)) -ne "$lane" ] || one "$target" || failed=1
      at=$((at + 1))
    done
    exit "$failed"
  ) &
  pids="$pids $!"
  lane=$((lane + 1))
done
failed=0
for pid in $pids; do wait "$pid" || failed=1; done
exit "$failed"
