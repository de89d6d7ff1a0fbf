"""What both kinds of session share: the native session and its operations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, List, Optional, Sequence, Tuple, Union

from . import _branchline as native
from ._calls import Call
from ._serving import refuse_to_wait_for_session
from .context import ContextOperations
from .errors import Error
from .events import JsonObject
from .options import capacity_of, images_json, json_text
from .resources import ResourceOperations
from .run import Events, Run
from .siblings import SiblingOperations, tool_names
from .tools import Tool
from .tree import Tree


@dataclass(frozen=True)
class SessionState:
    """A snapshot of a session."""

    phase: str
    """``idle``, ``running``, ``retrying``, ``compacting`` or ``closed``."""
    running: bool
    """A run is active, whatever it is doing just now: a prompt must be queued."""
    sibling: int
    """Which of the sessions over its file it is; 0 for the one that opened it."""
    leaf: Optional[str]
    model: Optional[str]
    thinking_level: str
    tools: List[str]
    """Names of the active tools."""
    steering: List[str]
    """Texts waiting to steer the run."""
    follow_up: List[str]
    """Texts waiting for its end."""
    pending_bash: int
    """Shell runs that wait for the end of what runs."""
    context_messages: int
    """Messages in the model's context."""
    model_notice: Optional[str] = None
    """Why it is another model than the file says, if it is: that one is not known or has no key."""


@dataclass(frozen=True)
class NavigateResult:
    """Where ``navigate`` arrived."""

    leaf: Optional[str]
    editor_text: Optional[str]
    """The text of the user message that was chosen, to be edited and sent again."""
    cancelled: bool
    """Nothing was changed, because the summary was aborted."""
    summary_entry: Optional[str]


class SessionCore(SiblingOperations, ContextOperations, ResourceOperations):
    """The native session and its operations."""

    editor_text: Optional[str]
    """The text of the user message a forked session was forked before, to be edited and sent."""

    def __init__(self, session: native.Session, editor_text: Optional[str] = None) -> None:
        self._native = session
        self.editor_text = editor_text

    @property
    def id(self) -> str:
        """The session's id."""
        return self._native.id()

    @property
    def path(self) -> Optional[Path]:
        """The session's file, which appears with the first message; None in memory."""
        return self._native.path()

    @property
    def cwd(self) -> Path:
        """The working directory."""
        return self._native.cwd()

    @property
    def leaf(self) -> Optional[str]:
        """The entry the session stands on; None before the first one."""
        return self._native.leaf()

    @property
    def state(self) -> SessionState:
        """A snapshot of what the session is doing."""
        return SessionState(**self._native.state())

    @property
    def tree(self) -> Tree:
        """The session's tree, live. It stays readable when the session is closed."""
        return Tree(self._native.tree(), self._native.leaf)

    def prompt(
        self,
        text: str,
        *,
        images: Sequence[JsonObject] = (),
        when_running: str = "refuse",
        expand: bool = True,
        forced_prompt: Optional[str] = None,
        capacity: int = 1024,
    ) -> Run:
        """Sends a prompt and returns its run once it is accepted, which takes no time to speak of.

        Iterate the run for its events (``for`` or ``async for``); ``run.result()`` or ``await run`` waits for the end.
        ``images``: blocks ``{"type": "image", "data": base64, "mimeType": …}``. ``when_running``: what happens when a
        run is active: ``"refuse"`` (``RunningError``), ``"steer"`` or ``"follow_up"``. ``expand``: a skill or template
        that the text calls is put in its place. ``forced_prompt``: a system prompt for this run alone, in the place of
        the session's and stored nowhere; only for a prompt that begins a run. ``capacity``: events held before the
        session waits for the reader.
        """
        pending = self._native.prompt(
            text, images_json(images), when_running, expand, forced_prompt, capacity_of(capacity)
        )
        return Run(Call[native.Run](pending).accepted(), self._native)

    def subscribe(self, *, capacity: int = 1024) -> Events:
        """The session's events from now on, of all runs, until it is closed."""
        return Events(self._native.subscribe(capacity_of(capacity)))

    def _steer(self, text: str) -> Call[None]:
        return Call(self._native.steer(text))

    def _follow_up(self, text: str) -> Call[None]:
        return Call(self._native.follow_up(text))

    def _clear_queues(self) -> Call[Tuple[List[str], List[str]]]:
        return Call(self._native.clear_queues())

    def _abort(self) -> Call[None]:
        return Call(self._native.abort())

    def _wait_idle(self) -> Call[None]:
        refuse_to_wait_for_session(self._native)
        return Call(self._native.wait_idle())

    def _navigate(
        self,
        entry_id: str,
        label: Optional[str],
        summarize: bool,
        instructions: Optional[str],
        replace_instructions: bool,
    ) -> Call[NavigateResult]:
        pending = self._native.navigate(entry_id, label, summarize, instructions, replace_instructions)
        return Call(pending, lambda row: NavigateResult(*row))

    def _fork(self, entry_id: str, position: str) -> Call[Tuple[native.Session, Optional[str]]]:
        return Call(self._native.fork(entry_id, position))

    def _clone(self) -> Call[native.Session]:
        return Call(self._native.clone())

    def _label(self, entry_id: str, label: Optional[str]) -> Call[str]:
        return Call(self._native.set_label(entry_id, label))

    def _set_name(self, name: str) -> Call[None]:
        return Call(self._native.set_name(name))

    def _set_model(self, model: str) -> Call[None]:
        return Call(self._native.set_model(model))

    def _set_thinking_level(self, level: str) -> Call[None]:
        return Call(self._native.set_thinking_level(level))

    def _set_tools(self, names: Sequence[Union[str, Tool]]) -> Call[None]:
        return Call(self._native.set_tools(tool_names(names)))

    def _append_custom(self, custom_type: str, data: Any) -> Call[str]:
        return Call(self._native.append_custom(custom_type, None if data is None else json_text(data)))

    def _append_custom_message(
        self, custom_type: str, content: Any, display: bool, details: Any
    ) -> Call[Optional[str]]:
        details_json = None if details is None else json_text(details)
        return Call(self._native.append_custom_message(custom_type, json_text(content), display, details_json))

    def _close(self) -> Call[None]:
        return Call(self._native.close())

    def __repr__(self) -> str:
        try:
            return f"<{type(self).__name__} {self.id}, {self.state.phase}, leaf {self.leaf}>"
        except Error as error:
            return f"<{type(self).__name__}, {error.code}>"

    def _repr_html_(self) -> str:
        return self.tree._repr_html_()
