"""Writes docs/modules.md: every module of the Rust code with the first sentence of its introduction. --check compares."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/modules.md"
HEAD = """# Every module, in one line

Made from the first sentence of each module by `make map`; `make lint` tells when it is old. The tour is in
[architecture.md](architecture.md). The code of a rule: `grep -rn 'S94' core/src`.
"""


def sentence(path):
    """The first sentence of a module's introduction."""
    lines = []
    for line in path.read_text().splitlines():
        if not line.startswith("//!") or (lines and line.strip() == "//!"):
            break
        lines.append(line[3:].strip())
    text = " ".join(lines)
    text = re.split(r"(?<=[^.]\.) (?=[A-Z`\[])", text, maxsplit=1)[0]
    return re.sub(r"\[(`[^`]+`)\](?:\([^)]*\))?", r"\1", text).replace("|", r"\|")


def directories(source):
    """A directory and those below it, each with its modules."""
    yield source, sorted(path for path in source.glob("*.rs") if path.name not in ("mod.rs", "tests.rs"))
    for below in sorted(path for path in source.iterdir() if path.is_dir()):
        yield from directories(below)


def page():
    parts = [HEAD]
    # Without the directories that hold no code.
    for crate in ("core/src", "ffi/src", "bindings/python/src", "bindings/node/src"):
        for directory, modules in directories(ROOT / crate):
            if not modules:
                continue
            own = directory / "mod.rs"
            name = directory.relative_to(ROOT)
            parts.append(f"\n## {name}\n")
            if own.exists():
                parts.append(f"\n{sentence(own)}\n")
            parts.append("\n| module | is |\n|---|---|\n")
            parts.extend(f"| `{path.name}` | {sentence(path)} |\n" for path in modules)
    return "".join(parts)


def main():
    text = page()
    if "--check" not in sys.argv:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit("docs/modules.md is old: run `make map`")


main()
