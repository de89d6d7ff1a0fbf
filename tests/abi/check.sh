#!/bin/sh
# What must hold of the header and the libraries without running anything:
# the header compiles everywhere, documents every function, and libbranchline.so exports exactly ffi/symbols.txt.
set -eu
cd "$(dirname "$0")/../.."
out=${CARGO_TARGET_DIR:-target}/abi
lib=${CARGO_TARGET_DIR:-target}/debug
passed=0
failed=0

report() { # result of the last command, what it checked
  if [ "$1" -eq 0 ]; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "failed: $2"; fi
}

cargo build --quiet -p branchline-ffi
mkdir -p "$out"
ln -sf libbranchline.so "$lib/libbranchline.so.0"

# Two translation units that include the header twice, linked into one program.
cat > "$out/unit.inc" << 'END'
#include <branchline.h>
#include <branchline.h>
END
for macro in ENGINE SESSION PROMPT EVENTS NAVIGATE LIST TOOLBOX; do
  type=$(echo "$macro" | tr '[:upper:]' '[:lower:]')
  echo "static const branchline_${type}_options ${type}_options = BRANCHLINE_${macro}_OPTIONS_INIT;"
done >> "$out/unit.inc"
cat >> "$out/unit.inc" << 'END'
static const branchline_callbacks callbacks = BRANCHLINE_CALLBACKS_INIT;
static const branchline_tool_callbacks tool_callbacks = BRANCHLINE_TOOL_CALLBACKS_INIT;
static const branchline_call_callbacks call_callbacks = BRANCHLINE_CALL_CALLBACKS_INIT;
static size_t sizes(void)
{
  return engine_options.struct_size + session_options.struct_size + prompt_options.struct_size +
         events_options.struct_size + navigate_options.struct_size + list_options.struct_size + callbacks.struct_size +
         toolbox_options.struct_size + tool_callbacks.struct_size + call_callbacks.struct_size;
}
END
matrix() { # compiler, standard, suffix, extra include
  command -v "$1" > /dev/null || { echo "$1 is not installed: left out"; return 0; }
  { cat "$out/unit.inc"; echo "$4"; echo "size_t other(void); size_t other(void) { return sizes(); }"; } > "$out/one.$3"
  { cat "$out/unit.inc"; echo "$4"
    echo "size_t other(void);"
    echo "int main(void) { return sizes() == other() && branchline_version_number() == BRANCHLINE_VERSION_NUMBER ? 0 : 1; }"
  } > "$out/two.$3"
  result=0
  "$1" "-std=$2" -Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror -Iinclude "$out/one.$3" "$out/two.$3" -o "$out/matrix" \
    "-L$lib" "-Wl,-rpath,$(cd "$lib" && pwd)" -lbranchline && "$out/matrix" || result=1
  report $result "$1 -std=$2"
}
for standard in c99 c11; do
  matrix gcc $standard c ''
  matrix clang $standard c ''
done
for standard in c++11 c++17; do
  matrix g++ $standard cpp '#include <branchline.hpp>'
  matrix clang++ $standard cpp '#include <branchline.hpp>'
done

# Exactly these symbols. A new one is added to the list by hand; none is ever taken away.
nm -D --defined-only "$lib/libbranchline.so" | awk '{ print $3 }' | LC_ALL=C sort > "$out/symbols.txt"
result=0
diff ffi/symbols.txt "$out/symbols.txt" || result=1
report $result "symbols of libbranchline.so"
result=0
! grep -v '^branchline_' "$out/symbols.txt" || result=1
report $result "the prefix of all symbols"
# The C++ wrapper has all of it, but for what C++ says in another way.
result=0
while read -r name; do
  case $name in
    *_n | branchline_version* | branchline_test_panic | branchline_error_status) continue ;;
    branchline_event_clone | branchline_event_free) continue ;;
  esac
  grep -qE "\\b$name(_n)?\\b" include/*.hpp || { echo "not in C++: $name"; result=1; }
done < ffi/symbols.txt
report $result "the C++ wrapper"
if command -v readelf > /dev/null; then
  result=0
  readelf -d "$lib/libbranchline.so" | grep -q 'SONAME.*\[libbranchline\.so\.0\]' || result=1
  report $result "SONAME"
fi

# An outside project: installed, found by pkg-config, linked to the shared and to the static library.
if command -v pkg-config > /dev/null; then
  rm -rf "$out/prefix"
  PROFILE=dev sh ffi/install.sh "$out/prefix"
  prefix=$(cd "$out/prefix" && pwd)
  PKG_CONFIG_PATH=$prefix/lib/pkgconfig
  export PKG_CONFIG_PATH
  result=0
  # shellcheck disable=SC2046 # flags are words
  ${CC:-cc} -std=c99 examples/c/demo.c -o "$out/outside" $(pkg-config --cflags --libs branchline) \
    "-Wl,-rpath,$prefix/lib" && { "$out/outside" > /dev/null 2>&1 || [ $? -eq 2 ]; } || result=1
  report $result "an outside project, by pkg-config"
  result=0
  private=$(sed -n 's/^Libs.private: //p' "$prefix/lib/pkgconfig/branchline.pc")
  # shellcheck disable=SC2086
  ${CC:-cc} -std=c99 "-I$prefix/include" examples/c/demo.c -o "$out/static" "$prefix/lib/libbranchline.a" $private \
    && { "$out/static" > /dev/null 2>&1 || [ $? -eq 2 ]; } || result=1
  report $result "the static library"
else
  echo "pkg-config is not installed: left out"
fi

result=0
python3 tests/abi/lint_header.py include/branchline.h ffi/symbols.txt ffi/src || result=1
report $result "documentation of the header"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
