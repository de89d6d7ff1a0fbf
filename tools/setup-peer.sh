#!/bin/sh
# Installs the real `pi` coding agent, and a Node that runs it, into build/peer/ (git-ignored). Benchmarks and
# interoperability tests run against it; the product never does.
#
#   build/peer/node            the Node to use (22.19 or newer)
#   build/peer/node_modules/   the package, at the versions of tools/peer/package-lock.json
#
# Prints build/peer's path. Quick when it is done already. Exit 75 (EX_TEMPFAIL), with one line on stderr, when the
# package registry cannot be reached: callers skip with that line. Any other failure is an error.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")
peer=$root/build/peer
want=$(cat "$here/peer/package.json" "$here/peer/package-lock.json" | cksum)

ready() { [ -x "$peer/node" ] && [ "$(cat "$peer/.stamp" 2>/dev/null)" = "$want" ]; }
fail() { echo "setup-peer: $2" >&2; exit "$1"; }
node_is_new() { "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 19) ? 0 : 1)' 2>/dev/null; }

if ready; then echo "$peer"; exit 0; fi
command -v npm >/dev/null || fail 69 "npm is missing: install Node.js (it brings npm), for example 'apt-get install npm' or 'brew install node'"

# One installer at a time; test processes may start together. The lock holds the installer's pid, so that a killed one
# does not block the next.
mkdir -p "$root/build"
lock=$root/build/peer.lock
log=$root/build/peer.log
echo $$ >"$lock.$$"
until ln "$lock.$$" "$lock" 2>/dev/null; do
    owner=$(cat "$lock" 2>/dev/null || true)
    if [ -n "$owner" ] && ! kill -0 "$owner" 2>/dev/null; then rm -f "$lock"; else sleep 1; fi
done
trap 'rm -f "$lock" "$lock.$$"' EXIT
trap 'exit 1' HUP INT TERM
if ready; then echo "$peer"; exit 0; fi

mkdir -p "$peer"
rm -f "$peer/.stamp" "$peer/node"
cp "$here/peer/package.json" "$here/peer/package-lock.json" "$peer/"
# No install scripts: pi runs without them, and nothing from a registry runs code here at install time.
if ! (cd "$peer" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error \
    --fetch-retries=2 --fetch-retry-mintimeout=1000 --fetch-retry-maxtimeout=5000) >"$log" 2>&1; then
    # Codes of a network, proxy or registry that is not there. A wrong checksum or a full disk is a real failure.
    if grep -Eq 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|EHOSTUNREACH|ENOTCACHED|ERR_SOCKET|E(403|407|429|5[0-9][0-9])' "$log"; then
        fail 75 "skipped: the npm registry cannot be reached, so pi is not installed"
    fi
    sed 's/^/setup-peer: /' "$log" >&2
    fail 1 "npm could not install pi (see above)"
fi

# The platform's Node from the package list, else a new enough one on PATH.
cd "$peer"
for node in node_modules/node-*/bin/node "$(command -v node || true)"; do
    if [ -x "$node" ] && node_is_new "$node"; then
        ln -sf "$node" node # relative when it can be, so that the folder can move
        break
    fi
done
[ -x "$peer/node" ] || fail 69 "Node 22.19 or newer is needed: no package for this platform, and none on PATH"

rm -f "$log"
echo "$want" >"$peer/.stamp"
echo "$peer"
