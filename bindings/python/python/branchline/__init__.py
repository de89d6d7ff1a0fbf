"""branchline: a coding agent in your own process, with sessions as trees.

::

    import branchline as bl

    with bl.Session.create(cwd=".", model="scripted/demo") as session:
        for event in session.prompt("What is here?"):
            match event:
                case bl.TextDelta(text=text): print(text, end="")
        print(session.tree)

Calls block and may be interrupted by Ctrl-C; ``branchline.aio`` has the same classes with calls to be awaited. Every
error derives from ``branchline.Error``.
"""

from . import aio, errors
from ._branchline import __version__, sanitize_for_display
from ._engine import ScriptControl, SessionInfo
from ._session import NavigateResult, SessionState
from .budget import Budget, BudgetLimits, BudgetUse
from .context import CompactionResult, ContextUsage, CostGroup, ForkMessage, SessionStats, TokenTotals, UserCommand
from .engine_options import NetworkOptions
from .errors import Error, ToolError
from .events import (
    AgentEnd,
    AgentSettled,
    AgentStart,
    AutoRetryEnd,
    AutoRetryStart,
    BashExecutionUpdate,
    BudgetExceeded,
    CompactionEnd,
    CompactionStart,
    EntryAppended,
    Event,
    MessageEnd,
    MessageStart,
    MessageUpdate,
    PermissionDecision,
    QueueUpdate,
    SessionInfoChanged,
    SummarizationRetryAttemptStart,
    SummarizationRetryFinished,
    SummarizationRetryScheduled,
    TextDelta,
    ThinkingDelta,
    ThinkingLevelChanged,
    ToolCallDelta,
    ToolExecutionEnd,
    ToolExecutionStart,
    ToolExecutionUpdate,
    TurnEnd,
    TurnStart,
)
from .hooks import Block, Change, HookedCall, ToolHook
from .host_models import KeyRequest, ModelRequest, PayloadRequest
from .models import Key, Model, ModelChoice, ModelProblem, Models, ModelScope, StoredEntry
from .options import CreateOptions, OpenOptions, SessionOptions
from .permissions import (
    Allow,
    AllowAlways,
    Deny,
    PermissionRequest,
    Permissions,
    RequestedPath,
)
from .replay import Divergence, RecordedMessage, RecordedTool, Replay
from .resources import (
    ContextFile,
    ExtraContext,
    PromptTemplate,
    ResourceDiagnostic,
    ResourceOptions,
    Resources,
    Section,
    Skill,
)
from .run import Cost, Events, ExceededLimit, Run, RunResult, Usage
from .session import Engine, Session, list_sessions
from .siblings import START, Exploration, ExploreResult, Start
from .toolbox import Toolbox
from .tools import Tool, ToolContext, ToolResult, tool
from .tree import Branch, Context, Diagnostic, Entry, Node, Tree, read_session

__all__ = [
    "START",
    "AgentEnd",
    "AgentSettled",
    "AgentStart",
    "Allow",
    "AllowAlways",
    "AutoRetryEnd",
    "AutoRetryStart",
    "BashExecutionUpdate",
    "Block",
    "Branch",
    "Budget",
    "BudgetExceeded",
    "BudgetLimits",
    "BudgetUse",
    "Change",
    "CompactionEnd",
    "CompactionResult",
    "CompactionStart",
    "Context",
    "ContextFile",
    "ContextUsage",
    "Cost",
    "CostGroup",
    "CreateOptions",
    "Deny",
    "Diagnostic",
    "Divergence",
    "Engine",
    "Entry",
    "EntryAppended",
    "Error",
    "Event",
    "Events",
    "ExceededLimit",
    "Exploration",
    "ExploreResult",
    "ExtraContext",
    "ForkMessage",
    "HookedCall",
    "Key",
    "KeyRequest",
    "MessageEnd",
    "MessageStart",
    "MessageUpdate",
    "Model",
    "ModelChoice",
    "ModelProblem",
    "ModelRequest",
    "ModelScope",
    "Models",
    "NavigateResult",
    "NetworkOptions",
    "Node",
    "OpenOptions",
    "PayloadRequest",
    "PermissionDecision",
    "PermissionRequest",
    "Permissions",
    "PromptTemplate",
    "QueueUpdate",
    "RecordedMessage",
    "RecordedTool",
    "Replay",
    "RequestedPath",
    "ResourceDiagnostic",
    "ResourceOptions",
    "Resources",
    "Run",
    "RunResult",
    "ScriptControl",
    "Section",
    "Session",
    "SessionInfo",
    "SessionInfoChanged",
    "SessionOptions",
    "SessionState",
    "SessionStats",
    "Skill",
    "Start",
    "StoredEntry",
    "SummarizationRetryAttemptStart",
    "SummarizationRetryFinished",
    "SummarizationRetryScheduled",
    "TextDelta",
    "ThinkingDelta",
    "ThinkingLevelChanged",
    "TokenTotals",
    "Tool",
    "ToolCallDelta",
    "ToolContext",
    "ToolError",
    "ToolExecutionEnd",
    "ToolExecutionStart",
    "ToolExecutionUpdate",
    "ToolHook",
    "ToolResult",
    "Toolbox",
    "Tree",
    "TurnEnd",
    "TurnStart",
    "Usage",
    "UserCommand",
    "__version__",
    "aio",
    "errors",
    "list_sessions",
    "read_session",
    "sanitize_for_display",
    "tool",
]
