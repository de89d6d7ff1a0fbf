"""What a blocking session can do besides prompts: siblings, other sessions, context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union

from ._calls import Aborting
from ._session import NavigateResult, SessionCore
from .budget import Budgets
from .context import CompactionResult, ContextUsage, ForkMessage, SessionStats, UserCommand
from .events import JsonObject
from .options import PathLike
from .resources import ResourceOptions, Resources
from .siblings import At, Exploration, ExploreResult, Prompt
from .tools import Tool

if TYPE_CHECKING:
    from typing_extensions import Self


class BlockingOperations(SessionCore):
    """Part of ``branchline.Session``."""

    def branch(
        self,
        at: At = None,
        *,
        model: Optional[str] = None,
        thinking_level: Optional[str] = None,
        tools: Optional[Sequence[Union[str, Tool]]] = None,
        budget: Optional[Budgets] = None,
    ) -> Self:
        """Opens another live session over the same tree and file, a sibling, that begins at an entry.

        ``at``: an entry's id, None for the leaf, ``START`` for a new root. From then on neither moves the other, and
        both may run at once. What is not given is as the path says, else as in this session. ``budget``: limits
        besides this session's, which it shares. The file is free when the last sibling is closed.
        """
        return type(self)(self._branch(at, model, thinking_level, tools, budget).wait())

    def exploration(
        self,
        prompts: Sequence[Prompt],
        *,
        at: At = None,
        limit: int = 4,
        capacity: int = 1024,
        model: Optional[str] = None,
        thinking_level: Optional[str] = None,
        tools: Optional[Sequence[Union[str, Tool]]] = None,
        budget: Optional[Budgets] = None,
    ) -> Exploration[Self]:
        """Tries several prompts at once: an iterator of the events of all, and then their results.

        As ``explore``, whose results ``exploration.results()`` gives. ``capacity``: events held before the
        siblings wait for the reader.
        """
        exploration = self._explore(prompts, at, limit, capacity, model, thinking_level, tools, budget)
        return Exploration(exploration, type(self))

    def explore(
        self,
        prompts: Sequence[Prompt],
        *,
        at: At = None,
        limit: int = 4,
        model: Optional[str] = None,
        thinking_level: Optional[str] = None,
        tools: Optional[Sequence[Union[str, Tool]]] = None,
        budget: Optional[Budgets] = None,
    ) -> List[ExploreResult[Self]]:
        """Tries several prompts at once and waits for all results, in the order of the prompts.

        Each gets a sibling that begins at the same entry, ``limit`` of them run at a time. What fails is a result, too.
        This session stays where it is; ``adopt`` goes on with one of them. ``budget``: what all of them together may
        spend. Ctrl-C aborts all. ``exploration`` takes the same and gives the events as well.
        """
        exploration = self._explore(prompts, at, limit, 1024, model, thinking_level, tools, budget)
        return Exploration(exploration, type(self)).results()

    def adopt(
        self,
        winner: Union[SessionCore, ExploreResult[Any]],
        *,
        summarize_others: bool = False,
        others: Optional[Sequence[str]] = None,
        instructions: Optional[str] = None,
        replace_instructions: bool = False,
    ) -> NavigateResult:
        """Moves this session to where a sibling stands, to go on from there.

        ``summarize_others`` stores one summary of what the others did, at the new leaf: the other siblings of the
        winner's exploration, or the leaves in ``others``. ``instructions`` say what it should pay attention to. Ctrl-C
        aborts it.
        """
        call = self._adopt(winner, summarize_others, others, instructions, replace_instructions)
        with Aborting(lambda: self._abort().wait()):
            return call.wait()

    def new_session(self, *, record_parent: bool = False, name: Optional[str] = None) -> Self:
        """Makes a new, empty session in the same directory, as this one is set up. This one stays open.

        ``record_parent``: record this session's file as the one it came from.
        """
        return type(self)(self._new_session(record_parent, name).wait())

    def switch(self, path: PathLike, *, cwd: Optional[PathLike] = None) -> Self:
        """Opens another session file in place of this session, which is closed when that is done.

        ``cwd``: the working directory, for a file whose own does not exist. On any error this session is as it was.
        """
        return type(self)(self._switch(path, cwd).wait())

    def import_session(self, path: PathLike, *, cwd: Optional[PathLike] = None) -> Self:
        """Copies a session file into this session's directory and opens the copy in place of this session."""
        return type(self)(self._import_session(path, cwd).wait())

    def compact(self, instructions: Optional[str] = None) -> CompactionResult:
        """Replaces the older part of the context by a summary. The history itself stays in the tree.

        ``instructions`` say what the summary should pay attention to. A run is aborted first. Ctrl-C aborts it.
        """
        call = self._compact(instructions)
        with Aborting(lambda: self._abort().wait()):
            return call.wait()

    def stats(self) -> SessionStats:
        """Counts and costs of the whole session, all branches. Reads every entry."""
        return self._stats().wait()

    def context_usage(self) -> ContextUsage:
        """How full the model's context is. Reads the context, so it is not for every event."""
        return self._context_usage().wait()

    def fork_messages(self) -> List[ForkMessage]:
        """The user messages that ``fork`` can go before: of all branches, in the order of the file."""
        return self._fork_messages().wait()

    def set_queue_modes(self, *, steer_all: Optional[bool] = None, follow_up_all: Optional[bool] = None) -> None:
        """Whether a queue is delivered all at once instead of one text at a time; None leaves it as it is."""
        self._set_queue_modes(steer_all, follow_up_all).wait()

    def send_custom_message(
        self,
        custom_type: str,
        content: Union[str, List[JsonObject]],
        *,
        display: bool = True,
        details: Any = None,
        delivery: str = "store",
    ) -> Optional[str]:
        """Gives a message of the host to the model without starting a run; ``prompt_custom`` starts one.

        ``delivery``: ``"store"`` (after the current turn), ``"steer"`` (before the next request), ``"follow_up"`` (when
        the run would end), ``"next_turn"`` (behind the next prompt). On an idle session all but the last store it at
        once. Returns the entry's id when it was.
        """
        return self._send_custom_message(custom_type, content, display, details, delivery).wait()

    def record_bash(
        self,
        command: str,
        output: str = "",
        *,
        exit_code: Optional[int] = None,
        cancelled: bool = False,
        truncated: bool = False,
        full_output_path: Optional[str] = None,
        exclude_from_context: bool = False,
        timestamp: Optional[int] = None,
    ) -> Optional[str]:
        """Stores a shell run of the user that is over, so that the model sees it unless it is excluded.

        ``timestamp`` is in milliseconds since 1970, now unless given. Returns the entry's id; None when something runs,
        as it is stored after that.
        """
        return self._record_bash(
            command, output, exit_code, cancelled, truncated, full_output_path, exclude_from_context, timestamp
        ).wait()

    def run_bash(self, command: str, *, id: Optional[str] = None, exclude_from_context: bool = False) -> UserCommand:
        """Runs a command of the user in the working directory, and stores what came of it.

        Its output comes as ``BashExecutionUpdate`` events, with ``id``. ``exclude_from_context``: the model never sees
        it. Permissions are not asked: a person typed it. Ctrl-C ends it, and stores nothing.
        """
        return self._run_bash(command, id, exclude_from_context).wait()

    def edit_context(self, entry_id: str, replacement: Optional[JsonObject]) -> str:
        """Changes what the model sees of an entry on the path, from the next request on. What is stored stays.

        ``None`` leaves it out, ``{"content": …}`` replaces its content. Returns the id of the edit's entry.
        """
        return self._edit_context(entry_id, replacement).wait()

    def reload_resources(self) -> Resources:
        """Reads the files again that the session was allowed to read. The model is told what changed.

        That is stored before its next request.
        """
        return self._reload_resources().wait()

    def set_resources(self, options: ResourceOptions) -> Resources:
        """Chooses anew what the session reads and tells the model, and reads it: see ``ResourceOptions``."""
        return self._set_resources(options).wait()
