#!/bin/sh
# need.sh COMMAND HOW: one clear line when a tool is missing.
command -v "$1" >/dev/null 2>&1 && exit 0
echo "$1 is missing: $2" >&2
exit 69
