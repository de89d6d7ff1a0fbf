"""What a session knows of its project: context files, skills, prompt templates.

By default nothing is read from disk. ``resources={…}`` of the calls that make a session says what may be read.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, TypedDict

from . import _branchline as native
from ._calls import Call
from ._names import camel_keys, path, paths
from .errors import InvalidArgumentError
from .options import PathLike, json_text

if TYPE_CHECKING:
    from typing import Literal


class Section(TypedDict):
    """A section of the system prompt."""

    name: str
    """A lower-case letter, then such letters, digits, ``_`` and ``-``. The name of one that is there replaces that."""
    text: str
    """Its text, without the tag around it."""


class ExtraContext(TypedDict):
    """A text of the program's own among the context files."""

    path: PathLike
    """Where it comes from; the model is told."""
    content: str
    """The text."""


class ResourceOptions(TypedDict, total=False):
    """What a session reads, and tells the model besides its tools. camelCase names are taken as well.

    Relative paths are relative to the session's working directory; a leading ``~`` is the home directory.
    """

    context_files: bool
    """Read ``AGENTS.md`` and its relatives: the agent directory's, and those from the root down to the working
    directory."""
    extra_context: Sequence[ExtraContext]
    """Texts of your own, behind those that were read."""
    discover: Literal["nothing", "user", "project"]
    """The usual places are searched as well. ``project`` only where the person trusts the project."""
    skills: Sequence[PathLike]
    """Directories with skills, or single skill files."""
    prompt_templates: Sequence[PathLike]
    """Directories with prompt templates, or single files."""
    append_system_prompt: str
    """Text behind the system prompt."""
    documentation: str
    """Where the documentation of your program is, for a model that is asked about it."""
    guidelines: Sequence[str]
    """Further rules, one line each."""
    sections: Sequence[Section]
    """Further sections, in this order."""


@dataclass(frozen=True)
class ContextFile:
    """A text for the model, and where it comes from."""

    path: Path
    content: str = field(repr=False)


@dataclass(frozen=True)
class Skill:
    """Instructions for a kind of work, which the model reads when it needs them."""

    name: str
    """What stands behind ``/skill:``."""
    description: str
    """What it is for and when to use it."""
    path: Path
    """Its file."""
    disable_model_invocation: bool = field(default=False, repr=False)
    """The model is not told of it; only people can call it."""


@dataclass(frozen=True)
class PromptTemplate:
    """A text for ``/name arguments``."""

    name: str
    description: str
    """What it is for, for people."""
    argument_hint: Optional[str]
    """Which arguments it takes, for people."""
    path: Optional[Path]
    """Its file."""
    content: str = field(repr=False)
    """The text with its placeholders."""


@dataclass(frozen=True)
class ResourceDiagnostic:
    """What was wrong with a file, or with what it says."""

    fault: str
    """``warning``, or ``collision``: its name was taken, and it is not in use."""
    path: Path
    """The file or directory it is about."""
    message: str
    winner: Optional[Path] = None
    """Of a collision the file that has the name."""

    def __str__(self) -> str:
        return f"{self.message} ({self.path})"


@dataclass(frozen=True)
class Resources:
    """What a session knows of its project and its people. It does not change by itself."""

    context_files: List[ContextFile]
    """The last one is the nearest."""
    skills: List[Skill]
    """Those included that the model is not told of."""
    prompt_templates: List[PromptTemplate]
    diagnostics: List[ResourceDiagnostic]
    """What was wrong."""
    system_prompt: Optional[str] = field(default=None, repr=False)
    """The text of ``SYSTEM.md``; a prompt of your own goes before it."""
    append_system_prompt: Optional[str] = field(default=None, repr=False)
    documentation: Optional[str] = field(default=None, repr=False)
    guidelines: List[str] = field(default_factory=list, repr=False)
    sections: List[Section] = field(default_factory=list, repr=False)
    skill_commands: bool = field(default=True, repr=False)
    """``/skill:name`` calls a skill."""

    @staticmethod
    def _from_json(text: str) -> Resources:
        value = json.loads(text)
        return Resources(
            [ContextFile(Path(file["path"]), file["content"]) for file in value["contextFiles"]],
            [
                Skill(skill["name"], skill["description"], Path(skill["path"]), skill["disableModelInvocation"])
                for skill in value["skills"]
            ],
            [
                PromptTemplate(
                    template["name"],
                    template["description"],
                    template.get("argumentHint"),
                    _maybe_path(template.get("path")),
                    template["content"],
                )
                for template in value["promptTemplates"]
            ],
            [
                ResourceDiagnostic(item["fault"], Path(item["path"]), item["message"], _maybe_path(item.get("winner")))
                for item in value["diagnostics"]
            ],
            value.get("systemPrompt"),
            value.get("appendSystemPrompt"),
            value.get("documentation"),
            value["guidelines"],
            value["sections"],
            value["skillCommands"],
        )

    def _repr_html_(self) -> str:
        rows = [
            *(("context file", "", "", file.path) for file in self.context_files),
            *(("skill", skill.name, skill.description, skill.path) for skill in self.skills),
            *(
                ("template", "/" + template.name, template.description, template.path)
                for template in self.prompt_templates
            ),
            *((item.fault, "", item.message, item.path) for item in self.diagnostics),
        ]
        cells = ("".join(f"<td>{html.escape(str(cell or ''))}</td>" for cell in row) for row in rows)
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"


def _maybe_path(text: Optional[str]) -> Optional[Path]:
    return None if text is None else Path(text)


def resources_json(options: Mapping[str, Any]) -> str:
    """Options as the native half takes them."""
    given = camel_keys(options, "resources")
    for name in ("skills", "promptTemplates"):
        if name in given:
            given[name] = paths(given[name])
    for name in ("extraContext", "guidelines", "sections"):
        if name in given:
            if isinstance(given[name], (str, Mapping)):
                raise InvalidArgumentError(f"{name} of resources is a list")
            given[name] = [_plain(item) for item in given[name]]
    return json_text(given)


def _plain(item: Any) -> Any:
    if not isinstance(item, Mapping):
        return item
    plain: Dict[str, Any] = dict(item)
    if "path" in plain:
        plain["path"] = path(plain["path"])
    return plain


class ResourceOperations:
    """The operations, as calls."""

    _native: native.Session

    @property
    def resources(self) -> Resources:
        """What the session knows: context files, skills, prompt templates, and what was wrong with them."""
        return Resources._from_json(native.resources(self._native))

    def _reload_resources(self) -> Call[Resources]:
        return Call(native.reload_resources(self._native), Resources._from_json)

    def _set_resources(self, options: Mapping[str, Any]) -> Call[Resources]:
        return Call(native.set_resources(self._native, resources_json(options)), Resources._from_json)
