#!/usr/bin/env python3
"""How fast calls on huge inputs end when they are cancelled:  python3 bench/cancel.py  (or: make bench-cancel)

Makes a tree of a million empty files (1,000 directories), one directory with 300,000 and one file of 1 GB below
bench/data, starts a call on each, cancels it after a while, and measures the time to its result and to the end of its
threads. The exit status is 1 when a result took more than 100 ms. Needs Linux; pi is not needed.

  --quick        200,000 files, 50,000 in one directory, 200 MB
"""
import argparse
import os
import statistics
import subprocess
import sys

from run import HERE, ROOT, load_adapters, make_dirs, run_one
from tree import DATA, say

LIMIT_MS = 100
DELAYS = [1, 3, 10, 30, 100, 200, 50, 20, 5, 2] * 2


def empty_files(directory, names):
    """A directory with empty files, made once: the last name is its mark."""
    if os.path.exists(f"{directory}/{names[-1]}"):
        return
    os.makedirs(directory, exist_ok=True)
    at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for name in names:
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at))
    os.close(at)


def generate(directories, wide, size):
    tree = f"{DATA}/cancel-tree{directories}k"
    say(f"generate: {directories},000 empty files in {tree}")
    for d in range(directories):
        empty_files(f"{tree}/d{d:04}", [f"file{n:03}.txt" for n in range(1000)])
    one = f"{DATA}/cancel-wide{wide}"
    empty_files(one, [f"file{n:06}.txt" for n in range(wide)])
    big = f"{DATA}/cancel-big{size}.txt"
    line = b"the quick brown fox jumps over the lazy dog 0123456789\n"
    want = size // len(line) * len(line)
    if not os.path.exists(big) or os.path.getsize(big) != want:
        with open(big, "wb") as f:
            for _ in range(want // len(line) // 10000):
                f.write(line * 10000)
            f.write(line * (want // len(line) % 10000))
    return tree, one, big


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--quick", action="store_true")
    o = a.parse_args()
    if not sys.platform.startswith("linux"):
        sys.exit("bench-cancel: needs Linux (threads are watched through /proc)")
    make_dirs()
    os.makedirs(DATA, exist_ok=True)
    tree, wide, big = generate(*((200, 50_000, 200_000_000) if o.quick else (1000, 300_000, 1_000_000_000)))
    say("build: our adapter")
    subprocess.run(["cargo", "build", "--quiet", "--release", "-p", "branchline-bench-adapter"], cwd=ROOT, check=True)
    adapter = load_adapters()["ours"]["cmd"]
    cases = [
        ("grep, a million files" if not o.quick else "grep, 200,000 files", "grep", tree, {"pattern": "absent"}),
        ("find, the same", "find", tree, {"pattern": "absent*"}),
        ("find everything, the same", "find", tree, {"pattern": "*", "limit": 2_000_000}),
        ("grep, one directory", "grep", wide, {"pattern": "absent"}),
        ("find, one directory", "find", wide, {"pattern": "absent*"}),
        ("ls, one directory", "ls", wide, {"limit": 1_000_000}),
        ("grep, one file", "grep", os.path.dirname(big), {"pattern": "absent", "path": big}),
        ("read, one file", "read", os.path.dirname(big), {"path": big, "offset": 10_000_000_000}),
    ]
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}. Times from the cancellation, in ms; `calls` are those still running when they were cancelled.\n")
    print("| case | whole call | calls | result, median | result, longest | threads gone, longest |")
    print("|---|---|---|---|---|---|", flush=True)
    slow = []
    for label, tool, root, args in cases:
        r = run_one(adapter, "cancel", {"tool": tool, "root": root, "args": args, "delays": DELAYS, "full": True}, 600)
        if not r.get("ok"):
            slow.append(f"{label} failed: {r.get('error')}")
            continue
        ms, threads = r["ms"], r["threads_ms"]
        if not ms:
            slow.append(f"{label}: every call ended before it was cancelled")
            continue
        print(f"| {label} | {r['full_ms']:.0f} | {len(ms)} | {statistics.median(ms):.2f} | {max(ms):.1f} | {max(threads):.1f} |", flush=True)
        if max(ms) > LIMIT_MS:
            slow.append(f"{label}: {max(ms):.0f} ms to the result, wanted <= {LIMIT_MS}")
    print("\n" + "\n".join(f"- {s}" for s in slow) if slow else f"\nEvery cancelled call ended within {LIMIT_MS} ms.")
    sys.exit(1 if slow else 0)


if __name__ == "__main__":
    main()
