#!/usr/bin/env python3
"""The tools benchmark, one command from a fresh clone:  python3 bench/tools.py  (or: make bench-tools)

Sets up pi (tools/setup-peer.sh), builds the limits program and our adapter, generates the inputs (about 1.2 GB), runs pi,
ours, bare rg and fd and the physical limits interleaved in fresh processes, compares the facts they report, and prints a
Markdown table. The exit status is 1 when a fact differs or a target is missed.

  --quick        one run of everything      --only REGEX   only cases whose id matches, e.g. '^grep/'

pi runs rg and fd: Debian's packages `ripgrep` and `fd-find`. Without them the cases that need them are left out.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys

import cases
from run import HERE, PEER, ROOT, load_adapters, make_dirs, run_cmd, run_one
from tree import DATA, judge, limit_of, mb, ms, peak_of, percent, say, set_up, time_of

# id -> (most time as a part of pi's, most memory as a part of pi's, most time as a multiple of the bare program)
TARGETS = {
    "read/first2000": (0.08, None, None),
    "read/near-end": (0.08, None, None),
    "edit/50": (0.04, 0.15, None),
    "grep/rare": (None, None, 1.1),
    "grep/none": (None, None, 1.1),
    "grep/regex-i": (None, None, 1.1),
    "grep/common-limit100000": (None, None, 1.2),
    "grep/common-limit100": (None, None, 1.0),
    "find/ts-limit1000": (None, None, 1.1),
    "find/rare": (None, None, 1.1),
    "find/all-limit100000": (None, None, 1.1),
    "find/path-glob": (None, None, 1.1),
    "ls/20k": (0.50, None, None),
    "ls/20k-limit20000": (0.08, None, None),
    "bash/200MB": (0.30, None, None),
    "bash/true": (0.30, None, None),
    "write/10k": (0.06, None, None),
}
# The most our process may grow while it runs the case, in MB.
GROWTH = {"bash/200MB": 10}


def programs():
    """rg and fd where pi looks for them; a line about each that is missing."""
    missing = False
    for name, package in [("rg", "ripgrep"), ("fdfind", "fd-find")]:
        if not shutil.which(name):
            print(f"{name} is missing: apt-get install {package}. grep and find are left out.")
            missing = True
    return not missing


def generate():
    """Make the inputs unless they are there, whole, from the present generator."""
    h = hashlib.sha256()
    for f in ["prng.mjs", "files.mjs"]:
        with open(f"{HERE}/gen/{f}", "rb") as g:
            h.update(g.read())
    stamp = f"{DATA}/files.generator"
    if os.path.exists(f"{DATA}/files.meta.json") and os.path.exists(stamp) and open(stamp).read() == h.hexdigest():
        return
    say("generate: files and trees (1.2 GB)")
    for name in ["tree50k", "ls20k"]:
        shutil.rmtree(f"{DATA}/{name}", ignore_errors=True)
    subprocess.run([f"{PEER}/node", f"{HERE}/gen/files.mjs", DATA], check=True, stdout=subprocess.DEVNULL)
    with open(stamp, "w") as f:
        f.write(h.hexdigest())


def measure(case, adapters, runs):
    """pi, ours and the limits in turn, `runs` times. Returns name -> list of results."""
    out = {}
    for _ in range(runs):
        for name in ["pi", "ours"]:
            out.setdefault(name, []).append(run_one(adapters[name]["cmd"], case["case"], case["params"], case["timeout"]))
        for label, kind, spec in case["limits"]:
            r = run_cmd(spec) if kind == "cmd" else run_one(adapters["limits"]["cmd"], *spec, 600)
            out.setdefault(label, []).append(r)
    return out


def facts(case, result):
    """What must agree: everything but the order of search results, which is pi's programs' own and changes."""
    check = dict(result["check"])
    check.pop("updates", None)
    if case["case"] in ("tools.grep", "tools.find"):
        tail = check.pop("tail").split("\n\n[")
        check["notice"] = tail[1] if len(tail) > 1 else ""
        # How many lines fit into 50 KB depends on the order as well.
        if "50.0KB" in check["notice"]:
            check.pop("lines")
    return check


def differences(case, results):
    for name in ["pi", "ours"]:
        for r in results[name]:
            if not r.get("ok"):
                return [f"{name} failed: {str(r.get('error'))[:300]}"]
    want = facts(case, results["pi"][0])
    for r in results["pi"] + results["ours"]:
        if facts(case, r) != want:
            return [f"facts differ: {json.dumps(want)} and {json.dumps(facts(case, r))}"]
    return []


def row(case, results):
    """One line of the table, and what it missed."""
    time = {k: time_of(v) for k, v in results.items()}
    peak = {k: peak_of(results[k]) for k in ["pi", "ours"]}
    of_pi, of_memory, of_bare = TARGETS.get(case["id"], (None, None, None))
    part = lambda a, b: a / b if a and b else None  # noqa: E731
    bare = next(((label, time[label]) for label, kind, _ in case["limits"] if kind == "cmd"), None)
    judged = [
        ("memory of pi's", part(peak["ours"], peak["pi"]), of_memory),
        (f"time of {bare[0]}'s" if bare else "", part(time["ours"], bare[1]) if bare else None, of_bare),
    ]
    wanted = [f"≤ {percent(limit)} {what}" for what, _, limit in judged if limit]
    missed = [f"{percent(r)} {what}, wanted ≤ {percent(limit)}" for what, r, limit in judged if limit and (r is None or r > limit)]
    if of_pi:
        asked, lacking = judge(time["ours"], time["pi"], of_pi, limit_of(case, time))
        wanted.insert(0, f"{asked} time of pi's")
        missed += [lacking] if lacking else []
    if case["id"] in GROWTH:
        limit = GROWTH[case["id"]]
        grown = max((r["hwm_kb"] - r["base_kb"] for r in results["ours"] if r.get("ok")), default=0) / 1024
        wanted.append(f"≤ +{limit} MB")
        if grown > limit:
            missed.append(f"grew by {grown:.1f} MB, wanted ≤ {limit}")
    verdict = "" if not wanted else "**no**" if missed else "yes"
    limits = "; ".join(f"{label} {ms(time[label])}" for label, _, _ in case["limits"])
    cells = [case["id"], case["size"], ms(time["pi"]), mb(peak["pi"]), ms(time["ours"]), mb(peak["ours"]), limits, percent(part(time["ours"], time["pi"])), percent(judged[1][1]), ", ".join(wanted), verdict]
    return "| " + " | ".join(cells) + " |", missed


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--quick", action="store_true")
    a.add_argument("--only", default="", metavar="REGEX")
    o = a.parse_args()
    if not sys.platform.startswith("linux"):
        sys.exit("bench-tools: needs Linux (peak memory is read from /proc)")
    searching = programs()
    set_up()
    make_dirs()
    generate()
    adapters = load_adapters()
    node = subprocess.run([f"{PEER}/node", "--version"], capture_output=True, text=True).stdout.strip()
    with open(f"{PEER}/node_modules/@earendil-works/pi-coding-agent/package.json") as f:
        pi = json.load(f)["version"]
    print(f"pi {pi} on Node {node}; {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}. Medians; peak is the highest resident memory of the process (pi's without that of rg and fd).\n")
    print("| case | input | pi | pi peak | ours | ours peak | limit | ours/pi | ours/bare | target | met |")
    print("|---|---|---|---|---|---|---|---|---|---|---|", flush=True)
    problems = []
    for c in cases.build([], groups=("tools",)):
        if (o.only and not re.search(o.only, c["id"])) or (not searching and c["case"] in ("tools.grep", "tools.find")):
            continue
        say("measure:", c["id"])
        results = measure(c, adapters, 1 if o.quick else c["runs"])
        wrong = differences(c, results)
        line, missed = row(c, results)
        print(line if not wrong else line.rsplit("|", 2)[0] + "| **wrong** |", flush=True)
        problems += [f"{c['id']}: {x}" for x in wrong or missed]
    print("\n" + "\n".join(f"- {p}" for p in problems) if problems else "\nFacts agree, every target is met.")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
