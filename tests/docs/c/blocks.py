"""Writes a program for each C and C++ block of README.md and docs/*.md: blocks.py DIRECTORY.

Functions of a block stay functions, everything else becomes the body of `block`. What blocks take for granted is context.h.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def program(place, code):
    functions = re.findall(r"^(?:static|extern) [^;]*?\n\{.*?^\}\n", code, re.MULTILINE | re.DOTALL)
    for function in functions:
        code = code.replace(function, "")
    includes = re.findall(r"^#include .*\n", code, re.MULTILINE)
    for include in includes:
        code = code.replace(include, "")
    parts = [
        *includes,
        f'#define PLACE "{place}"\n#include "context.h"\n',
        *functions,
        f"static void block(void)\n{{\n{code}  finished(error);\n}}\n",
    ]
    return "\n".join(parts)


def main():
    out = Path(sys.argv[1])
    count = 0
    for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]:
        text = page.read_text()
        for block in re.finditer(r"^```(c|cpp)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            line = text.count("\n", 0, block.start()) + 1
            name = f"{page.stem}-{line}".lower()
            (out / f"{name}.{block.group(1)}").write_text(program(f"{page.name}:{line}", block.group(2)))
            count += 1
    if count < 8:
        sys.exit(f"only {count} blocks were found")


main()
