"""Trees for people: as text, and as HTML in a notebook.

Chains do not nest: an entry is indented only below an entry with several children, so that a long conversation stays
readable. Entries that are only bookkeeping are left out, unless they are the leaf, are labelled, or begin a branch.
"""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Dict, Iterator, List, NamedTuple, Optional

if TYPE_CHECKING:
    from .tree import Tree

_LIMIT = 200
"""Lines shown: what a person still looks at."""
_WIDTH = 72
_QUIET = {"label", "model_change", "thinking_level_change", "session_info", "usage", "custom"}


class _Line(NamedTuple):
    indent: int
    kind: str
    text: str
    label: Optional[str]
    is_leaf: bool
    id: str


def shorten(text: str, width: int) -> str:
    """The text on one line, cut to a width."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1] + "…"


def _lines(tree: Tree) -> Iterator[_Line]:
    leaf = tree.leaf
    indents: Dict[Optional[str], int] = {}
    families: Dict[Optional[str], bool] = {}
    for node in tree.walk():
        parent = tree.parent(node.id)
        if parent not in families:
            families[parent] = len(tree.roots() if parent is None else tree.children(parent)) > 1
        begins = families[parent]
        indents[node.id] = indents.get(parent, 0) + (1 if begins and parent is not None else 0)
        quiet = node.type in _QUIET or node.role == "system"
        if quiet and not begins and node.label is None and node.id != leaf:
            continue
        text = tree[node.id].text
        yield _Line(indents[node.id], node.role or node.type, text, node.label, node.id == leaf, node.id)


def _shown(tree: Tree) -> List[_Line]:
    lines = []
    for line in _lines(tree):
        lines.append(line)
        if len(lines) > _LIMIT:
            break
    return lines


def tree_text(tree: Tree) -> str:
    """The tree, a line an entry: id, kind, text; the label in brackets, the leaf marked."""
    lines = []
    shown = _shown(tree)
    for line in shown[:_LIMIT]:
        label = f"[{line.label}] " if line.label else ""
        text = shorten(line.text, _WIDTH - 2 * line.indent)
        mark = "  <- leaf" if line.is_leaf else ""
        lines.append(f"{'  ' * line.indent}{line.id[:8]} {line.kind:<10} {label}{text}".rstrip() + mark)
    if len(shown) > _LIMIT:
        lines.append("…")
    return "\n".join(lines)


def tree_html(tree: Tree) -> str:
    """The tree as an HTML fragment without scripts or styles of its own."""
    rows = []
    shown = _shown(tree)
    for line in shown[:_LIMIT]:
        label = f"<mark>{html.escape(line.label)}</mark> " if line.label else ""
        text = html.escape(shorten(line.text, _WIDTH))
        row = (
            f'<div style="margin-left: {line.indent * 1.5}em">'
            f'<code title="{html.escape(line.id)}">{html.escape(line.id[:8])}</code> '
            f"<small>{html.escape(line.kind)}</small> {label}{text}</div>"
        )
        rows.append(f"<b>{row}</b>" if line.is_leaf else row)
    if len(shown) > _LIMIT:
        rows.append("<div>…</div>")
    name = html.escape(tree.name or tree.session_id)
    return f"<div><div><b>{name}</b> <small>{len(tree)} entries</small></div>{''.join(rows)}</div>"
