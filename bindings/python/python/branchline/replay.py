"""Replay: a session file as a model, whose recorded answers are given again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, List, Optional

from . import _branchline as native
from .errors import InvalidArgumentError
from .events import JsonObject
from .models import Models, read_models
from .tools import Tool


@dataclass(frozen=True)
class RecordedMessage:
    """A message of a recording."""

    entry_id: str
    """Its entry."""
    message: JsonObject


@dataclass(frozen=True)
class Divergence:
    """Where a conversation left the recording."""

    at: int
    """Which message of the conversation it is, system messages not counted, from 0."""
    recorded: List[RecordedMessage]
    """What follows there in the recording; empty if it ends there."""
    actual: Optional[JsonObject]
    """What the session had instead; None if it asked for an answer that was not recorded."""
    text: str = field(repr=False)
    """Both sides in a sentence."""

    def __str__(self) -> str:
        return self.text


class RecordedTool(Tool):
    """A tool whose calls give the recorded results. One of ``Replay.tools``."""

    def __init__(self, tool: native.PythonTool) -> None:
        definition: JsonObject = json.loads(tool.definition_json())
        super().__init__(
            _recorded,
            name=definition["name"],
            description=definition.get("description", ""),
            parameters=definition.get("parameters", {}),
        )
        self._native = tool

    def __repr__(self) -> str:
        return f"<RecordedTool {self.name}>"


def _recorded(**_arguments: Any) -> Any:
    """Gives the results of a recording."""
    raise InvalidArgumentError("a recorded tool answers the calls of its recording, which only a session makes")


class Replay:
    """A recorded session that answers again. Made by ``Engine.add_replay``."""

    def __init__(self, replay: native.Replay) -> None:
        self._native = replay

    @property
    def name(self) -> str:
        """The provider's name."""
        return self._native.name()

    @property
    def models(self) -> Models:
        """The models that answered in the recording."""
        return read_models(self._native.models())

    @property
    def tools(self) -> List[RecordedTool]:
        """The tools of the recording, with their recorded results: ``create_session(tools=[*replay.tools])``.

        Without them tools run.
        """
        return [RecordedTool(tool) for tool in self._native.tools()]

    @property
    def divergence(self) -> Optional[Divergence]:
        """The first place where a conversation left the recording; None while none has."""
        told = self._native.divergence()
        if told is None:
            return None
        value, text = json.loads(told[0]), told[1]
        recorded = [RecordedMessage(item["entryId"], item["message"]) for item in value["recorded"]]
        return Divergence(value["at"], recorded, value.get("actual"), text)

    def __repr__(self) -> str:
        return f"<Replay {self.name}: {', '.join(self.models)}>"
