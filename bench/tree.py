#!/usr/bin/env python3
"""The session-tree benchmark, one command from a fresh clone:  python3 bench/tree.py  (or: make bench-tree)

Sets up pi (tools/setup-peer.sh), builds the limits program and our adapter, generates the inputs, runs pi, ours and the
physical limits interleaved in fresh processes, compares the facts both report, and prints a Markdown table. The exit
status is 1 when a fact differs or a target is missed.

  --quick        one run of everything      --only REGEX   only cases whose id matches, e.g. '^open/'
  --million      also 1,000,000 entries     --no-growth    leave out the table of growth with path and file
"""
import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys

import cases
from run import HERE, PEER, ROOT, load_adapters, make_dirs, run_one

DATA = f"{HERE}/data"


def say(*a):
    print(*a, file=sys.stderr, flush=True)


# --- set up ---------------------------------------------------------------------------------------------------------


def set_up():
    """The peer, both programs; leaves with the peer's own line when it cannot be had."""
    say("peer: pi and its Node")
    p = subprocess.run([f"{ROOT}/tools/setup-peer.sh"], stdout=subprocess.DEVNULL)
    if p.returncode == 75:  # it has said why; without pi there is nothing to compare
        sys.exit(0)
    if p.returncode:
        sys.exit(p.returncode)
    say("build: limits and our adapter")
    build = ["cargo", "build", "--quiet", "--release"]
    subprocess.run([*build, "--locked", "--manifest-path", f"{HERE}/limits/Cargo.toml", "--target-dir", f"{ROOT}/build/limits"], check=True)
    subprocess.run([*build, "-p", "branchline-bench-adapter"], cwd=ROOT, check=True)


def generate(sizes):
    """Make what is missing. The metadata file is written last, so it marks a whole input; a changed generator makes
    everything again."""
    h = hashlib.sha256()
    for f in ["prng.mjs", "sessions.mjs"]:
        with open(f"{HERE}/gen/{f}", "rb") as g:
            h.update(g.read())
    stamp = f"{DATA}/sessions/generator"
    if not os.path.exists(stamp) or open(stamp).read() != h.hexdigest():
        for d in ["sessions", "list1000"]:
            shutil.rmtree(f"{DATA}/{d}", ignore_errors=True)
        if os.path.exists(f"{DATA}/list1000.meta.json"):
            os.remove(f"{DATA}/list1000.meta.json")
        os.makedirs(f"{DATA}/sessions")
        with open(stamp, "w") as f:
            f.write(h.hexdigest())

    def gen(out, *args):
        if not os.path.exists(f"{out}.meta.json"):
            say("generate:", os.path.relpath(out, ROOT))
            subprocess.run([f"{PEER}/node", f"{HERE}/gen/sessions.mjs", args[0], out, *args[1:]], check=True, stdout=subprocess.DEVNULL)

    for n in sizes:
        gen(cases.session_file(n), "one", str(n), "1")
    gen(f"{DATA}/list1000", "dir", "1000", "7")


# --- measure --------------------------------------------------------------------------------------------------------


def measure(case, adapters, runs, out):
    """Run one case: pi, ours and its limits in turn, `runs` times. Adds to `out`, name -> list of results."""
    for _ in range(runs):
        for name in ["pi", "ours"]:
            r = run_one(adapters[name]["cmd"], case["case"], case["params"], case["timeout"])
            out.setdefault(name, []).append(r)
        for label, _, (limit, params) in case["limits"]:
            out.setdefault(label, []).append(run_one(adapters["limits"]["cmd"], limit, params, 600))


def differences(results):
    """Facts in which ours is not pi, as text; empty when all agree."""
    bad = []
    for name in ["pi", "ours"]:
        bad += [f"{name} failed: {str(r.get('error'))[:300]}" for r in results[name] if not r.get("ok")][:1]
    if not bad:
        want = results["pi"][0]["check"]
        for r in results["pi"] + results["ours"]:
            if r["check"] != want:
                return [f"facts differ: pi {json.dumps(want)}, ours {json.dumps(r['check'])}"]
    return bad


def time_of(results, per=1):
    """Median of the processes' medians, in ms."""
    ok = [statistics.median(r["ms"]) for r in results if r.get("ok")]
    return statistics.median(ok) / per if ok else None


def peak_of(results):
    ok = [r["hwm_kb"] for r in results if r.get("ok")]
    return statistics.median(ok) / 1024 if ok else None


def ms(t):
    if t is None:
        return "–"
    return f"{t * 1000:.3g} µs" if t < 1 else f"{t:.3g} ms" if t < 1000 else f"{t / 1000:.2f} s"


def mb(m):
    return "–" if m is None else f"{m:.3g} MB" if m < 1000 else f"{m:.0f} MB"


def percent(x):
    return "–" if x is None else "< 0.01 %" if x < 1e-4 else f"{x * 100:.2g} %" if x < 1 else f"{x * 100:.0f} %"


BEYOND = 1.25  # of the limit: nearer to the bare operation nobody has to come


def judge(ours, pi, most, limit):
    """What was wanted of a time, and what it missed or None. `limit`: what the bare operation took here, if that was measured.

    Where the bare operation takes so much of pi's time that the target's part of it leaves next to nothing, being near the
    operation is enough."""
    ratio = ours / pi if pi and ours else None
    wanted = f"≤ {percent(most)}"
    if ratio is not None and ratio <= most:
        return wanted, None
    if limit and pi and BEYOND * limit > most * pi:
        wanted += f" or {BEYOND} × limit ({percent(BEYOND * limit / pi)})"
        if ours and ours <= BEYOND * limit:
            return wanted, None
    return wanted, f"{percent(ratio)} of pi's, wanted {wanted}"


def limit_of(case, time):
    """The quickest of a case's limits, in ms."""
    return min((time[label] for label, kind, _ in case["limits"] if kind == "limits" and time[label]), default=None)


def row(case, results):
    """One line of the table, and what it missed."""
    per = case["params"].get("count", 1)  # appends are shown for one
    time = {k: time_of(v, per) for k, v in results.items()}
    peak = {k: peak_of(results[k]) for k in ["pi", "ours"]}
    ratio = [x["ours"] / x["pi"] if x["pi"] and x["ours"] else None for x in (time, peak)]
    wanted, missed = [], []
    of_time, of_memory = case["target"]
    if of_time:
        asked, lacking = judge(time["ours"], time["pi"], of_time, limit_of(case, time))
        wanted.append(f"{asked} time")
        missed += [lacking] if lacking else []
    if of_memory:
        wanted.append(f"≤ {percent(of_memory)} memory")
        if ratio[1] is None or ratio[1] > of_memory:
            missed.append(f"memory {percent(ratio[1])}, wanted ≤ {percent(of_memory)}")
    verdict = "" if not wanted else "**no**" if missed else "yes"
    limits = "; ".join(f"{label} {ms(time[label])}" for label, _, _ in case["limits"])
    each = " each" if per > 1 else ""
    cells = [case["id"], case["size"], ms(time["pi"]) + each, mb(peak["pi"]), ms(time["ours"]) + each, mb(peak["ours"]), limits, *map(percent, ratio), ", ".join(wanted), verdict]
    return "| " + " | ".join(cells) + " |", missed


def growth(adapters, sizes, runs):
    """Ours only: branch and context at leaves of different depth in files of different size. A row's cost must follow
    its path, not its file."""
    print("\nHow ours grows: the same operation at leaves of different depth, in files of different size.\n")
    print("| file | leaf at entry | path | branch | context | context messages |")
    print("|---|---|---|---|---|---|")
    for at in [n for n in sizes]:
        for n in [n for n in sizes if n >= at]:
            with open(cases.session_file(n)) as f:
                for i, line in enumerate(f):
                    if i == at:  # line 0 is the header
                        break
            leaf = json.loads(line)["id"]
            r = {}
            for op in ["branch", "context"]:
                big = n >= 1000000  # a context opens the file again each time, which takes seconds there
                params = {"file": cases.session_file(n), "op": op, "iters": 5 if big else 15, "leaf": leaf}
                r[op] = [run_one(adapters["ours"]["cmd"], "session.op", params, 300) for _ in range(1 if big else runs)]
            if not all(x.get("ok") for v in r.values() for x in v):
                print(f"| {n:,} entries | {at:,} | failed | | | |")
                continue
            path, messages = r["branch"][0]["check"]["path"], r["context"][0]["check"]["messages"]
            print(f"| {n:,} entries | {at:,} | {path:,} | {ms(time_of(r['branch']))} | {ms(time_of(r['context']))} | {messages} |", flush=True)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--quick", action="store_true")
    a.add_argument("--million", action="store_true")
    a.add_argument("--only", default="", metavar="REGEX")
    a.add_argument("--no-growth", action="store_true")
    o = a.parse_args()
    if not sys.platform.startswith("linux"):
        sys.exit("bench-tree: needs Linux (peak memory is read from /proc)")
    sizes = [n for n in cases.SIZES if o.million or n < 1000000]
    set_up()
    make_dirs()
    generate(sizes)
    adapters = load_adapters()

    node = subprocess.run([f"{PEER}/node", "--version"], capture_output=True, text=True).stdout.strip()
    with open(f"{PEER}/node_modules/@earendil-works/pi-coding-agent/package.json") as f:
        pi = json.load(f)["version"]
    print(f"pi {pi} on Node {node}; {os.cpu_count()} cores, {platform.machine()}, load {os.getloadavg()[0]:.1f}. Medians; peak is the highest resident memory of the process.\n")
    if os.getloadavg()[0] > os.cpu_count():
        print("The machine is busy: what runs on several threads (open, list) looks slower than it is.\n")
    print("| case | input | pi | pi peak | ours | ours peak | limit | time ours/pi | memory ours/pi | target | met |")
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    problems = []
    for c in cases.build(sizes, groups=("session",)):
        if o.only and not re.search(o.only, c["id"]):
            continue
        say("measure:", c["id"])
        results = {}
        for attempt in range(1 if o.quick else 3):
            measure(c, adapters, 1 if o.quick else c["runs"], results)
            wrong = differences(results)
            line, missed = row(c, results)
            # On a shared machine a neighbour can spoil a row. A miss is measured again, and all runs count: medians
            # over three times as many cannot hide a real one.
            if wrong or not missed:
                break
        print(line if not wrong else line.rsplit("|", 2)[0] + "| **wrong** |", flush=True)
        problems += [f"{c['id']}: {x}" for x in wrong or missed]
    if not o.no_growth and (not o.only or re.search(o.only, "growth")):
        say("measure: growth")
        growth(adapters, sizes, 1 if o.quick else 3)
    if problems:
        print("\n" + "\n".join(f"- {p}" for p in problems))
    else:
        print("\nFacts agree, every target is met.")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
