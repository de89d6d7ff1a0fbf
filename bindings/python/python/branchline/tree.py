"""The session tree, to read.

Everything is looked up when asked for: a tree of a hundred thousand entries costs nothing until it is walked, and is
then read in batches.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Union, overload

from . import _branchline as native
from . import _show
from .errors import EntryNotFoundError
from .events import JsonObject, text_of

_BATCH = 256


class Entry:
    """One entry: a line of the session file."""

    __slots__ = ("__dict__", "id", "raw", "role", "type")

    def __init__(self, id: str, type: str, role: Optional[str], raw: bytes) -> None:
        self.id = id
        self.type = type
        """``message``, ``compaction``, ``label``, …; ``unknown`` for a type this version does not know."""
        self.role = role
        """The role of a message: ``user``, ``assistant``, ``toolResult``, ``system``, …"""
        self.raw = raw
        """The line, byte for byte."""

    @cached_property
    def value(self) -> JsonObject:
        """The entry as a dictionary."""
        value: JsonObject = json.loads(self.raw.decode("utf-8", "replace"))
        return value

    @property
    def parent_id(self) -> Optional[str]:
        """The entry it follows, as written."""
        parent: Optional[str] = self.value.get("parentId")
        return parent

    @property
    def timestamp(self) -> str:
        """When it was written, as written."""
        return str(self.value.get("timestamp", ""))

    @property
    def message(self) -> Optional[JsonObject]:
        """The message of a ``message`` entry."""
        message: Optional[JsonObject] = self.value.get("message")
        return message

    @property
    def text(self) -> str:
        """What a person would read: the text of a message or summary, else nothing."""
        if self.message is not None:
            return text_of(self.message.get("content"))
        summary = self.value.get("summary")
        return summary if isinstance(summary, str) else text_of(self.value.get("content"))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Entry) and (self.id, self.raw) == (other.id, other.raw)

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        kind = self.type if self.role is None else f"{self.type}/{self.role}"
        return f"Entry({self.id!r}, {kind}, {_show.shorten(self.text, 40)!r})"


@dataclass(frozen=True)
class Node:
    """An entry's place in the tree."""

    id: str
    type: str
    role: Optional[str]
    depth: int
    """How many entries are above it."""
    label: Optional[str]


@dataclass(frozen=True)
class Diagnostic:
    """A fault of a session file that was opened all the same."""

    line: int
    """Line number from 1."""
    offset: int
    """Position of the line's first byte."""
    kind: str
    message: str


@dataclass(frozen=True)
class Context:
    """What a model sees at a leaf."""

    messages: List[JsonObject]
    entry_ids: List[str]
    """The entry each message comes from."""
    thinking_level: str
    model: Optional[str]
    """``provider/model``, when the path names one."""


class Branch(Sequence[Entry]):
    """The path from the root to a leaf, root first. A list of entries that reads them when they are looked at."""

    def __init__(self, branch: native.Branch) -> None:
        self._branch = branch

    def __len__(self) -> int:
        return self._branch.length()

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> List[Entry]: ...
    def __getitem__(self, index: Union[int, slice]) -> Union[Entry, List[Entry]]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return Entry(*self._branch.entries(at, at + 1)[0])

    def __iter__(self) -> Iterator[Entry]:
        return (Entry(*row) for row in _slices(self._branch.entries))

    def ids(self) -> Iterator[str]:
        """The ids alone; no entry is read."""
        return _slices(self._branch.ids)

    def __contains__(self, item: object) -> bool:
        """Whether an entry, or the entry with an id, is on the path."""
        id = item.id if isinstance(item, Entry) else item
        return isinstance(id, str) and self._branch.contains(id)

    def __repr__(self) -> str:
        return f"<Branch of {len(self)} entries>"


class Tree:
    """A session's tree. It is live: entries that are appended later appear.

    ``len(tree)``, ``id in tree``, ``tree[id]`` and iteration over all entries in file order work as for a dictionary of
    entries. ``print(tree)`` draws it.
    """

    def __init__(self, tree: native.Tree, leaf: Callable[[], Optional[str]]) -> None:
        self._tree = tree
        self._leaf = leaf

    @property
    def leaf(self) -> Optional[str]:
        """The entry the session stands on."""
        return self._leaf()

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._tree.session_id()

    @property
    def path(self) -> Optional[Path]:
        """The session file, which may not exist yet; None in memory."""
        return self._tree.path()

    @property
    def is_saved(self) -> bool:
        """Whether the session file exists."""
        return self._tree.is_saved()

    @property
    def name(self) -> Optional[str]:
        """The session's name."""
        return self._tree.name()

    @property
    def header(self) -> JsonObject:
        """The first line of the file."""
        header: JsonObject = json.loads(self._tree.header_json())
        return header

    def __len__(self) -> int:
        return self._tree.entry_count()

    def __bool__(self) -> bool:
        return True

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self._tree.contains(id)

    def __getitem__(self, id: str) -> Entry:
        entry = self.entry(id)
        if entry is None:
            raise EntryNotFoundError(f"no entry has the id {id!r}")
        return entry

    def __iter__(self) -> Iterator[Entry]:
        return self.entries()

    def _at(self, leaf: Optional[str]) -> Optional[str]:
        """The leaf that is meant. The core is lenient with ids that it does not know; a program has mistaken itself."""
        if leaf is None:
            return self.leaf
        self._check(leaf)
        return leaf

    def _check(self, id: str) -> None:
        if not self._tree.contains(id):
            raise EntryNotFoundError(f"no entry has the id {id!r}")

    def entry(self, id: str) -> Optional[Entry]:
        """The entry with this id, or None."""
        row = self._tree.entry(id)
        return None if row is None else Entry(*row)

    def entries(self, after: Optional[str] = None) -> Iterator[Entry]:
        """All entries in file order, or those after one: an id is a position to come back to."""
        entries = self._tree.entries(after)
        return (Entry(*row) for batch in iter(lambda: entries.next_batch(_BATCH), []) for row in batch)

    def parent(self, id: str) -> Optional[str]:
        """The parent's id; None for roots and unknown ids."""
        return self._tree.parent(id)

    def roots(self) -> List[str]:
        """Ids of the entries without a parent."""
        return self._tree.children(None)

    def children(self, id: str) -> List[str]:
        """Ids of the children of an entry, oldest first.

        In a damaged file entries may name a parent that is not there; it has children, too.
        """
        children = self._tree.children(id)
        if not children:
            self._check(id)
        return children

    def branch(self, leaf: Optional[str] = None) -> Branch:
        """The path to an entry; by default to the session's leaf."""
        return Branch(self._tree.branch(self._at(leaf)))

    @property
    def labels(self) -> Dict[str, str]:
        """All labels, by the id of the entry they mark."""
        return {id: text for id, text, _time in self._tree.labels()}

    def label(self, id: str) -> Optional[str]:
        """The label of an entry."""
        label = self._tree.label(id)
        return None if label is None else label[0]

    def walk(self) -> Iterator[Node]:
        """All entries as nodes, each after its parent, siblings by age. No entry is read."""
        structure = self._tree.structure()
        return (Node(*row) for row in _slices(structure.rows))

    def context(self, leaf: Optional[str] = None) -> Context:
        """What a model sees at an entry; by default at the session's leaf."""
        rows, level, model = self._tree.context(self._at(leaf))
        return Context(
            messages=[json.loads(message) for _id, _role, message in rows],
            entry_ids=[id for id, _role, _message in rows],
            thinking_level=level,
            model=None if model is None else "/".join(model),
        )

    def export_branch(self, leaf: Optional[str] = None) -> bytes:
        """The path to an entry as the bytes of a session file; by default to the session's leaf."""
        return self._tree.export_branch(self._at(leaf))

    @property
    def diagnostics(self) -> List[Diagnostic]:
        """What was found wrong with the file; at most the first thousand faults."""
        return [Diagnostic(*row) for row in self._tree.diagnostics()]

    def __repr__(self) -> str:
        return f"<Tree of {len(self)} entries, leaf {self.leaf}>"

    def __str__(self) -> str:
        return _show.tree_text(self)

    def _repr_html_(self) -> str:
        return _show.tree_html(self)


def read_session(path: Union[str, "os.PathLike[str]"]) -> Tree:
    """The tree of a session file, to read: without an engine and without the lock, so also while a session has it.

    It holds what was in the file when it was opened, and its leaf is the last entry. No body is kept in memory.
    """
    tree = native.read_session(path)
    return Tree(tree, tree.last_id)


def _slices(rows: Callable[[int, int], List[Any]]) -> Iterator[Any]:
    """Everything a function gives by slices."""
    start = 0
    while True:
        batch = rows(start, start + _BATCH)
        yield from batch
        if len(batch) < _BATCH:
            return
        start += _BATCH
