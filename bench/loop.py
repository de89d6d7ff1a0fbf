#!/usr/bin/env python3
"""The agent-loop benchmark, one command from a fresh clone:  python3 bench/loop.py  (or: make bench-loop)

Sets up pi (tools/setup-peer.sh), builds our adapter, generates the inputs, runs pi and ours interleaved in fresh
processes with models that answer at once, compares the facts both report, and prints a Markdown table. The exit status
is 1 when a fact differs or a target is missed.

  --quick        one run of everything      --only REGEX   only cases whose id matches, e.g. '^turns/'
"""
import argparse
import json
import os
import re
import statistics
import sys

import cases
from run import load_adapters, make_dirs, run_one
from tree import generate, mb, ms, peak_of, percent, say, set_up, time_of

# What a case shows besides its time: key of the report -> (column text, most of ours in the key's unit)
PER_TURN, PER_DELTA = "per_turn_ms", "cpu_us_per_delta"
UNIT = {PER_TURN: "ms a turn", PER_DELTA: "µs CPU a delta"}
# id -> (key, most of it for ours)
TARGETS = {
    "turns/100": (PER_TURN, None),
    "turns/1000": (PER_TURN, 0.1),
    "turns/3000": (PER_TURN, 0.1),
    "turns/100000": (PER_TURN, 0.1),
    "turns/1000-persist": (PER_TURN, None),
    "turns/100-on-1000": (PER_TURN, 0.2),
    "turns/100-on-10000": (PER_TURN, 0.2),
    "turns/100-on-100000": (PER_TURN, 0.2),
    "deltas/10k": (PER_DELTA, None),
    "deltas/100k": (PER_DELTA, 0.5),
}
# A turn at the end of a run may cost this many times one at its beginning.
FLAT = 1.5
# id -> (most time as a part of pi's, most memory in MB)
START = {"startup/import+session": (0.01, 8)}


def plan():
    for c in cases.build([n for n in cases.SIZES if n <= 100000], groups=("startup", "loop")):
        if c["id"] in TARGETS or c["id"] in START:
            yield c
        if c["id"] == "turns/3000":  # where pi would need an hour
            yield {**c, "id": "turns/100000", "params": {"turns": 100000}, "size": "100,000 turns, in memory", "runs": 1, "alone": True}


def checks(result):
    """What must agree. A full queue merges deltas, so their number is not compared."""
    check = dict(result["check"])
    check.pop("got", None)
    return check


def differences(results, startup):
    for name, runs in results.items():
        for r in runs:
            if not r.get("ok"):
                return [f"{name} failed: {str(r.get('error'))[:300]}"]
    if startup or "pi" not in results:
        return []
    want = checks(results["pi"][0])
    for r in results["pi"] + results["ours"]:
        if checks(r) != want:
            return [f"facts differ: pi {json.dumps(want)}, ours {json.dumps(checks(r))}"]
    return []


def median(results, key):
    values = [r[key] for r in results if r.get("ok") and key in r]
    return statistics.median(values) if values else None


def row(case, results):
    """One line of the table, and what it missed."""
    pi, ours = results.get("pi", []), results["ours"]
    time = {"pi": time_of(pi), "ours": time_of(ours)}
    wanted, missed = [], []
    if case["id"] in START:
        shown = {k: ms(v) for k, v in time.items()}
        part, memory = START[case["id"]]
        wanted = [f"≤ {percent(part)} time", f"≤ {memory} MB"]
        if time["ours"] > part * time["pi"]:
            missed.append(f"time {percent(time['ours'] / time['pi'])}, wanted ≤ {percent(part)}")
        if peak_of(ours) > memory:
            missed.append(f"peak {mb(peak_of(ours))}, wanted ≤ {memory} MB")
    else:
        key, most = TARGETS[case["id"]]
        value = {k: median(v, key) for k, v in results.items()}
        shown = {k: f"{v:.3g} {UNIT[key]}" for k, v in value.items() if v is not None}
        time = value
        if most:
            wanted.append(f"≤ {most} {UNIT[key]}")
            if value["ours"] > most:
                missed.append(f"{value['ours']:.3g} {UNIT[key]}, wanted ≤ {most}")
        if case.get("alone"):
            first, last = median(ours, "turn_first10pct_ms"), median(ours, "turn_last10pct_ms")
            shown["ours"] += f" (first tenth {first:.3g}, last tenth {last:.3g})"
            wanted.append("flat")
            if last > FLAT * first:
                missed.append(f"the last turns cost {last / first:.1f} times the first")
    ratio = time["ours"] / time["pi"] if time.get("pi") and time.get("ours") else None
    verdict = "" if not wanted else "**no**" if missed else "yes"
    cells = [case["id"], case["size"], shown.get("pi", "–"), mb(peak_of(pi)), shown["ours"], mb(peak_of(ours)), percent(ratio), ", ".join(wanted), verdict]
    return "| " + " | ".join(cells) + " |", missed


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--quick", action="store_true")
    a.add_argument("--only", default="", metavar="REGEX")
    o = a.parse_args()
    if not sys.platform.startswith("linux"):
        sys.exit("bench-loop: needs Linux (peak memory is read from /proc)")
    set_up()
    make_dirs()
    generate([n for n in cases.SIZES if n <= 100000])
    adapters = load_adapters()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}. Medians; peak is the highest resident memory of the process.\n")
    print("| case | input | pi | pi peak | ours | ours peak | ours/pi | target | met |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    problems = []
    for c in plan():
        if o.only and not re.search(o.only, c["id"]):
            continue
        say("measure:", c["id"])
        results = {}
        for attempt in range(1 if o.quick else 3):
            for _ in range(1 if o.quick else c["runs"]):
                for name in ["ours"] if c.get("alone") else ["pi", "ours"]:
                    r = run_one(adapters[name]["cmd"], c["case"], c["params"], c["timeout"])
                    results.setdefault(name, []).append(r)
            wrong = differences(results, c["id"] in START)
            line, missed = row(c, results) if not wrong else (f"| {c['id']} | {c['size']} | | | | | | | **wrong** |", [])
            # On a shared machine a neighbour can spoil a row: a miss is measured again, and all runs count.
            if wrong or not missed:
                break
        print(line, flush=True)
        problems += [f"{c['id']}: {x}" for x in wrong or missed]
    print("\n" + "\n".join(f"- {p}" for p in problems) if problems else "\nFacts agree, every target is met.")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
