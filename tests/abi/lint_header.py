"""Every function of the header says who owns what, from which threads it may be called, and how it fails; header and
symbol list name the same functions; and every exported function of ffi/src goes through the boundary.

    python3 lint_header.py include/branchline.h ffi/symbols.txt ffi/src
"""

import re
import sys
from pathlib import Path

header, symbols, sources = map(Path, sys.argv[1:])
faults = []

comment = []
declared = []
for line in header.read_text(encoding="ascii").splitlines():
    if line.startswith("///"):
        comment.append(line[3:].strip())
        continue
    function = re.match(r"[a-z].*?\b(branchline_\w+)\(", line)
    if function and "typedef" not in line:
        declared.append(function[1])
        for word in ("Ownership:", "Threads:", "Errors:"):
            if not any(text.startswith(word) for text in comment):
                faults.append(f"{function[1]}: no line begins with {word}")
        if not comment or comment[0].startswith("Ownership:"):
            faults.append(f"{function[1]}: nothing says what it does")
    comment = []

listed = symbols.read_text(encoding="ascii").split()
faults += [f"{name}: declared, but not in {symbols}" for name in declared if name not in listed]
faults += [f"{name}: exported, but not declared" for name in listed if name not in declared]

# Functions that touch nothing that could fail or belong to another process.
STATIC = {"branchline_version", "branchline_version_number", "branchline_status_name"}
for source in sorted(sources.glob("*.rs")):
    for function in re.finditer(r'extern "C" fn (\w+)\((.*?)\n}\n', source.read_text(encoding="utf-8"), re.S):
        if function[1] not in STATIC and not re.search(r"\bexport!\(|\bgives_(json|text)!\(|\bpeek\(|\bstring\(event, ", function[2]):
            faults.append(f"{source}: {function[1]} does not go through the boundary")

for fault in faults:
    print(fault)
sys.exit(bool(faults) or len(declared) < 40)
