#!/usr/bin/env python3
"""The streaming benchmark, one command from a fresh clone:  python3 bench/stream.py  (or: make bench-stream)

Sets up pi (tools/setup-peer.sh), builds our adapter, starts a chat-completions emulator on loopback, runs pi and ours
interleaved in fresh processes, compares the facts both report, and prints a Markdown table: processor time for each token,
and the time from a prompt to its first text, on an empty session and on long ones. The exit status is 1 when a fact differs
or a target is missed. Reading answers from memory is measured without pi: what of our time is parsing and assembling.

  --quick        one run of everything      --only REGEX   only cases whose id matches, e.g. '^sse/'
"""
import argparse
import json
import os
import re
import statistics
import sys
import urllib.request

import cases
from run import load_adapters, make_dirs, run_one, start_server
from tree import generate, judge, mb, ms, peak_of, percent, say, set_up, time_of

# id -> (what is shown, most of ours as a part of pi's)
TARGETS = {
    "sse/10k": ("cpu_us_per_token", None),
    "sse/100k": ("cpu_us_per_token", 0.06),
    "sse/ttft": ("ttft", 0.10),
}
LONG_CONTEXT = 0.05  # the first text on a long session, as a part of pi's
FLAT = 1.5  # and so many ms more than on an empty session at the most, the bytes of the conversation aside
APIS = ["anthropic-messages", "google-generative-ai", "openai-completions"]


def plan():
    for c in cases.build([n for n in cases.SIZES if n <= 100000], groups=("loop",)):
        if c["id"] in TARGETS or c["case"] == "loop.longctx":
            yield c
    for api in APIS:
        yield {"id": f"read/{api}", "case": "stream.read", "params": {"api": api, "tokens": 100000}, "size": "100k tokens from memory", "runs": 3, "timeout": 120, "alone": True}


def value(results, key):
    of = (lambda r: r["ttft_ms"]["p50"]) if key == "ttft" else (lambda r: r[key])
    values = [of(r) for r in results if r.get("ok")]
    return statistics.median(values) if values else None


def size_of_request(port):
    """Bytes of the body the server got last."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats", timeout=10) as answer:
        return json.load(answer)["bytes"]


def wrong(results):
    for name, runs in results.items():
        for r in runs:
            if not r.get("ok"):
                return f"{name} failed: {str(r.get('error'))[:300]}"
    if "pi" in results:
        want, got = results["pi"][0]["check"], results["ours"][0]["check"]
        facts = [k for k in want if k in got and want[k] != got[k]]
        if facts:
            return f"facts differ: pi {want}, ours {got}"
    return None


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--quick", action="store_true")
    a.add_argument("--only", default="", metavar="REGEX")
    o = a.parse_args()
    if not sys.platform.startswith("linux"):
        sys.exit("bench-stream: needs Linux (peak memory is read from /proc)")
    set_up()
    make_dirs()
    generate([n for n in cases.SIZES if n <= 100000])
    adapters = load_adapters()
    server, port = start_server()
    problems, empty = [], None
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}. Medians; peak is the highest resident memory of the process. The limit is a bare socket that sends as many bytes.\n")
    print("| case | input | pi | pi peak | ours | ours peak | limit | ours/pi | target | met |")
    print("|---|---|---|---|---|---|---|---|---|---|", flush=True)
    try:
        for c in plan():
            if o.only and not re.search(o.only, c["id"]):
                continue
            say("measure:", c["id"])
            params = {k: (port if v == "$PORT" else v) for k, v in c["params"].items()}
            long = c["case"] == "loop.longctx"
            key, most = ("ttft", LONG_CONTEXT) if long else TARGETS.get(c["id"], ("cpu_us_per_token", None))
            results = {}
            for _ in range(1 if o.quick else c["runs"]):
                for name in ["ours"] if c.get("alone") else ["pi", "ours"]:
                    results.setdefault(name, []).append(run_one(adapters[name]["cmd"], c["case"], params, c["timeout"]))
                if key == "ttft":
                    bare = {"port": port, "prompts": params["prompts"], "bytes": size_of_request(port)}
                    results.setdefault("limit", []).append(run_one(adapters["limits"]["cmd"], "ttft_ref", bare, 60))
            error = wrong(results)
            if error:
                print(f"| {c['id']} | {c['size']} | | | | | | | | **wrong** |", flush=True)
                problems.append(f"{c['id']}: {error}")
                continue
            unit = "ms" if key == "ttft" else "µs CPU a token"
            pi, ours, limit = value(results.get("pi", []), key), value(results["ours"], key), time_of(results.get("limit", []))
            wanted, missed = [], []
            if most:
                asked, lacking = judge(ours, pi, most, limit)
                wanted.append(asked)
                missed += [lacking] if lacking else []
            if c["id"] == "sse/ttft":
                empty = ours - limit
            if long and empty is not None:
                wanted.append("flat")
                if ours - limit > empty + FLAT:
                    missed.append(f"{ours:.2f} ms, {ours - limit:.2f} more than the bytes take; on an empty session {empty:.2f}")
            cells = [c["id"], c["size"], f"{pi:.3g} {unit}" if pi else "–", mb(peak_of(results.get("pi", []))), f"{ours:.3g} {unit}", mb(peak_of(results["ours"])), ms(limit), percent(ours / pi if pi else None), ", ".join(wanted), "" if not wanted else "**no**" if missed else "yes"]
            print("| " + " | ".join(cells) + " |", flush=True)
            problems += [f"{c['id']}: {m}" for m in missed]
    finally:
        server.kill()
    print("\n" + "\n".join(f"- {p}" for p in problems) if problems else "\nFacts agree, every target is met.")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
