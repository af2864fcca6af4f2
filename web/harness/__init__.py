"""The harness as a library: `from web.harness import Agent, AgentConfig, ...`.

Each name is loaded from its module at first use (PEP 562), so that `import web.harness` costs next
to nothing. Inside this package everybody imports from the module itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from web.harness.agent.agent import (
        Agent as Agent,
    )
    from web.harness.agent.questions import (
        Answer as Answer,
    )
    from web.harness.host import (
        ExecutionServices as ExecutionServices,
        HarnessRuntime as HarnessRuntime,
    )
    from web.harness.sessions.event_log import (
        EventLog as EventLog,
        InMemoryEventLog as InMemoryEventLog,
    )
    from web.harness.sessions.identity import (
        LOCAL_IDENTITY as LOCAL_IDENTITY,
        HarnessIdentity as HarnessIdentity,
    )
    from web.harness.sessions.in_memory import (
        InMemorySessionStore as InMemorySessionStore,
    )
    from web.harness.sessions.snapshot import (
        SessionSnapshot as SessionSnapshot,
    )
    from web.harness.sessions.store import (
        Guarantees as Guarantees,
        SessionLease as SessionLease,
        SessionStore as SessionStore,
    )
    from web.harness.skills.library import (
        SkillLibrary as SkillLibrary,
        Skills as Skills,
    )
    from web.harness.skills.prompt import (
        skills_prompt as skills_prompt,
    )
    from web.harness.skills.skill import (
        Skill as Skill,
    )
    from web.harness.tools.forms import (
        FormRefused as FormRefused,
    )
    from web.harness.tools.permissions import (
        Permissions as Permissions,
    )
    from web.harness.tools.pictures import (
        image_block as image_block,
    )
    from web.harness.tools.registry import (
        ToolRegistry as ToolRegistry,
    )
    from web.harness.tools.tool import (
        InputAnswer as InputAnswer,
        PermissionLevel as PermissionLevel,
        Tool as Tool,
        ToolContext as ToolContext,
        ToolOutput as ToolOutput,
    )
    from web.harness.values.config import (
        DEMO_MODEL as DEMO_MODEL,
        AgentConfig as AgentConfig,
        Limits as Limits,
        ModelName as ModelName,
        Retry as Retry,
        ToolDefaults as ToolDefaults,
    )
    from web.harness.values.errors import (
        AgentBusy as AgentBusy,
        AgentClosed as AgentClosed,
        ConfigurationError as ConfigurationError,
        DecisionRefused as DecisionRefused,
        HarnessError as HarnessError,
        LeaseLost as LeaseLost,
        LimitExceeded as LimitExceeded,
        NotFound as NotFound,
        PicturesRefused as PicturesRefused,
        ProviderError as ProviderError,
        SessionConflict as SessionConflict,
        SkillRefused as SkillRefused,
        ToolError as ToolError,
    )
    from web.harness.values.events import (
        ApprovalRequired as ApprovalRequired,
        AttemptReset as AttemptReset,
        ContextCondensed as ContextCondensed,
        ErrorReport as ErrorReport,
        Event as Event,
        EventBody as EventBody,
        InputAnswered as InputAnswered,
        InputRequired as InputRequired,
        Note as Note,
        RecoveryRequired as RecoveryRequired,
        RunResult as RunResult,
        TextDelta as TextDelta,
        ThinkingDelta as ThinkingDelta,
        ToolCallDelta as ToolCallDelta,
        ToolCallStart as ToolCallStart,
        ToolProgress as ToolProgress,
        ToolResult as ToolResult,
        UsageReport as UsageReport,
        Waiting as Waiting,
    )
    from web.harness.values.messages import (
        ImageBlock as ImageBlock,
        Message as Message,
        ResourceBlock as ResourceBlock,
        TextBlock as TextBlock,
        ThinkingBlock as ThinkingBlock,
        ToolResultBlock as ToolResultBlock,
        ToolUseBlock as ToolUseBlock,
    )
    from web.harness.values.model import (
        ModelDone as ModelDone,
        ModelRequest as ModelRequest,
        NoteChunk as NoteChunk,
        Provider as Provider,
        TextChunk as TextChunk,
        ThinkingChunk as ThinkingChunk,
        ToolSpec as ToolSpec,
        ToolUseChunk as ToolUseChunk,
    )
    from web.harness.values.usage import (
        Prices as Prices,
        Usage as Usage,
    )

_NAMES = {
    "web.harness.agent.agent": ("Agent",),
    "web.harness.agent.questions": ("Answer",),
    "web.harness.host": (
        "ExecutionServices",
        "HarnessRuntime",
    ),
    "web.harness.sessions.event_log": (
        "EventLog",
        "InMemoryEventLog",
    ),
    "web.harness.sessions.identity": (
        "LOCAL_IDENTITY",
        "HarnessIdentity",
    ),
    "web.harness.sessions.in_memory": ("InMemorySessionStore",),
    "web.harness.sessions.snapshot": ("SessionSnapshot",),
    "web.harness.sessions.store": (
        "Guarantees",
        "SessionLease",
        "SessionStore",
    ),
    "web.harness.skills.library": (
        "SkillLibrary",
        "Skills",
    ),
    "web.harness.skills.prompt": ("skills_prompt",),
    "web.harness.skills.skill": ("Skill",),
    "web.harness.tools.forms": ("FormRefused",),
    "web.harness.tools.permissions": ("Permissions",),
    "web.harness.tools.pictures": ("image_block",),
    "web.harness.tools.registry": ("ToolRegistry",),
    "web.harness.tools.tool": (
        "InputAnswer",
        "PermissionLevel",
        "Tool",
        "ToolContext",
        "ToolOutput",
    ),
    "web.harness.values.config": (
        "DEMO_MODEL",
        "AgentConfig",
        "Limits",
        "ModelName",
        "Retry",
        "ToolDefaults",
    ),
    "web.harness.values.errors": (
        "AgentBusy",
        "AgentClosed",
        "ConfigurationError",
        "DecisionRefused",
        "HarnessError",
        "LeaseLost",
        "LimitExceeded",
        "NotFound",
        "PicturesRefused",
        "ProviderError",
        "SessionConflict",
        "SkillRefused",
        "ToolError",
    ),
    "web.harness.values.events": (
        "ApprovalRequired",
        "AttemptReset",
        "ContextCondensed",
        "ErrorReport",
        "Event",
        "EventBody",
        "InputAnswered",
        "InputRequired",
        "Note",
        "RecoveryRequired",
        "RunResult",
        "TextDelta",
        "ThinkingDelta",
        "ToolCallDelta",
        "ToolCallStart",
        "ToolProgress",
        "ToolResult",
        "UsageReport",
        "Waiting",
    ),
    "web.harness.values.messages": (
        "ImageBlock",
        "Message",
        "ResourceBlock",
        "TextBlock",
        "ThinkingBlock",
        "ToolResultBlock",
        "ToolUseBlock",
    ),
    "web.harness.values.model": (
        "ModelDone",
        "ModelRequest",
        "NoteChunk",
        "Provider",
        "TextChunk",
        "ThinkingChunk",
        "ToolSpec",
        "ToolUseChunk",
    ),
    "web.harness.values.usage": (
        "Prices",
        "Usage",
    ),
}
"""Module to the names it gives; the imports above tell type checkers the same."""

_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
