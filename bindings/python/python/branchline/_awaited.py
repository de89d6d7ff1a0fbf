"""What an awaited session can do besides prompts: siblings, other sessions, context."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, List, Optional, Sequence, Union

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


class AwaitedOperations(SessionCore):
    """Part of ``branchline.aio.Session``. As ``branchline.Session``, to be awaited."""

    async def branch(
        self,
        at: At = None,
        *,
        model: Optional[str] = None,
        thinking_level: Optional[str] = None,
        tools: Optional[Sequence[Union[str, Tool]]] = None,
        budget: Optional[Budgets] = None,
    ) -> Self:
        """Opens another live session over the same tree and file, a sibling, that begins at an entry."""
        return type(self)(await self._branch(at, model, thinking_level, tools, budget))

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

        As ``explore``, whose results ``await exploration`` gives.
        """
        exploration = self._explore(prompts, at, limit, capacity, model, thinking_level, tools, budget)
        return Exploration(exploration, type(self))

    async def explore(
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
        """Tries several prompts at once and waits for all results. Cancelling the task aborts all."""
        exploration = self._explore(prompts, at, limit, 1024, model, thinking_level, tools, budget)
        return await Exploration(exploration, type(self))

    async def adopt(
        self,
        winner: Union[SessionCore, ExploreResult[Any]],
        *,
        summarize_others: bool = False,
        others: Optional[Sequence[str]] = None,
        instructions: Optional[str] = None,
        replace_instructions: bool = False,
    ) -> NavigateResult:
        """Moves this session to where a sibling stands. Cancelling the task aborts the summary."""
        try:
            return await self._adopt(winner, summarize_others, others, instructions, replace_instructions)
        except asyncio.CancelledError:
            await self._abort()
            raise

    async def new_session(self, *, record_parent: bool = False, name: Optional[str] = None) -> Self:
        """Makes a new, empty session in the same directory, as this one is set up. This one stays open."""
        return type(self)(await self._new_session(record_parent, name))

    async def switch(self, path: PathLike, *, cwd: Optional[PathLike] = None) -> Self:
        """Opens another session file in place of this session, which is closed when that is done."""
        return type(self)(await self._switch(path, cwd))

    async def import_session(self, path: PathLike, *, cwd: Optional[PathLike] = None) -> Self:
        """Copies a session file into this session's directory and opens the copy in place of this session."""
        return type(self)(await self._import_session(path, cwd))

    async def compact(self, instructions: Optional[str] = None) -> CompactionResult:
        """Replaces the older part of the context by a summary. Cancelling the task aborts it."""
        try:
            return await self._compact(instructions)
        except asyncio.CancelledError:
            await self._abort()
            raise

    async def stats(self) -> SessionStats:
        """Counts and costs of the whole session, all branches. Reads every entry."""
        return await self._stats()

    async def context_usage(self) -> ContextUsage:
        """How full the model's context is. Reads the context, so it is not for every event."""
        return await self._context_usage()

    async def fork_messages(self) -> List[ForkMessage]:
        """The user messages that ``fork`` can go before: of all branches, in the order of the file."""
        return await self._fork_messages()

    async def set_queue_modes(self, *, steer_all: Optional[bool] = None, follow_up_all: Optional[bool] = None) -> None:
        """Whether a queue is delivered all at once instead of one text at a time; None leaves it as it is."""
        await self._set_queue_modes(steer_all, follow_up_all)

    async def send_custom_message(
        self,
        custom_type: str,
        content: Union[str, List[JsonObject]],
        *,
        display: bool = True,
        details: Any = None,
        delivery: str = "store",
    ) -> Optional[str]:
        """Gives a message of the host to the model without starting a run; ``prompt_custom`` starts one."""
        return await self._send_custom_message(custom_type, content, display, details, delivery)

    async def record_bash(
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
        """Stores a shell run of the user that is over, so that the model sees it unless it is excluded."""
        return await self._record_bash(
            command, output, exit_code, cancelled, truncated, full_output_path, exclude_from_context, timestamp
        )

    async def run_bash(
        self, command: str, *, id: Optional[str] = None, exclude_from_context: bool = False
    ) -> UserCommand:
        """Runs a command of the user in the working directory, and stores what came of it.

        Its output comes as ``BashExecutionUpdate`` events, with ``id``. ``exclude_from_context``: the model never sees
        it. Permissions are not asked: a person typed it. Cancelling the task ends it, and stores nothing.
        """
        return await self._run_bash(command, id, exclude_from_context)

    async def edit_context(self, entry_id: str, replacement: Optional[JsonObject]) -> str:
        """Changes what the model sees of an entry on the path, from the next request on."""
        return await self._edit_context(entry_id, replacement)

    async def reload_resources(self) -> Resources:
        """Reads the files again that the session was allowed to read. The model is told what changed."""
        return await self._reload_resources()

    async def set_resources(self, options: ResourceOptions) -> Resources:
        """Chooses anew what the session reads and tells the model, and reads it: see ``ResourceOptions``."""
        return await self._set_resources(options)
