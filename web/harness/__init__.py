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
    from web.harness.agent.extensions import (
        BaseExtension as BaseExtension,
        Extension as Extension,
        Instructing as Instructing,
    )
    from web.harness.agent.options import (
        AgentOptions as AgentOptions,
    )
    from web.harness.agent.pausing import (
        RunPaused as RunPaused,
    )
    from web.harness.agent.questions import (
        Answer as Answer,
    )
    from web.harness.agent.sessions import (
        agent_of as agent_of,
        snapshot_of as snapshot_of,
    )
    from web.harness.host import (
        Driver as Driver,
        ExecutionServices as ExecutionServices,
        HarnessRuntime as HarnessRuntime,
    )
    from web.harness.memory.fact_lines import (
        Fact as Fact,
    )
    from web.harness.memory.facts import (
        LongTermMemory as LongTermMemory,
    )
    from web.harness.memory.limits import (
        MemoryLimits as MemoryLimits,
    )
    from web.harness.memory.notes import (
        AgentMemory as AgentMemory,
    )
    from web.harness.memory.prompt import (
        memory_prompt as memory_prompt,
    )
    from web.harness.providers import (
        make_provider as make_provider,
    )
    from web.harness.resources import (
        ResourceLease as ResourceLease,
        ResourcePool as ResourcePool,
    )
    from web.harness.runtime.agent_runtime import (
        AgentRuntime as AgentRuntime,
    )
    from web.harness.runtime.backend import (
        Backend as Backend,
        Performed as Performed,
        Turn as Turn,
    )
    from web.harness.runtime.handle import (
        RunHandle as RunHandle,
    )
    from web.harness.runtime.run_info import (
        RunInfo as RunInfo,
    )
    from web.harness.runtime.sql import (
        PostgresBackend as PostgresBackend,
        SqlBackend as SqlBackend,
        SQLiteBackend as SQLiteBackend,
    )
    from web.harness.runtime.temporal.backend import (
        TemporalBackend as TemporalBackend,
    )
    from web.harness.sessions.event_log import (
        EventLog as EventLog,
        InMemoryEventLog as InMemoryEventLog,
    )
    from web.harness.sessions.identity import (
        LOCAL_IDENTITY as LOCAL_IDENTITY,
        HarnessIdentity as HarnessIdentity,
        check_scope as check_scope,
    )
    from web.harness.sessions.in_memory import (
        InMemoryHarnessSessionStore as InMemoryHarnessSessionStore,
        InMemorySessionStore as InMemorySessionStore,
    )
    from web.harness.sessions.journal import (
        CallRecord as CallRecord,
        Execution as Execution,
        Executions as Executions,
        GivenAnswer as GivenAnswer,
        NumberedStep as NumberedStep,
        Recorded as Recorded,
        RunJournal as RunJournal,
        Step as Step,
        Submission as Submission,
    )
    from web.harness.sessions.opening import (
        Stores as Stores,
        open_stores as open_stores,
    )
    from web.harness.sessions.process import (
        ProcessSessionStore as ProcessSessionStore,
    )
    from web.harness.sessions.records import (
        Blobs as Blobs,
        KeptBlob as KeptBlob,
        Record as Record,
        Records as Records,
    )
    from web.harness.sessions.snapshot import (
        SessionSnapshot as SessionSnapshot,
        import_legacy as import_legacy,
    )
    from web.harness.sessions.snapshot_form import (
        snapshot_from_json as snapshot_from_json,
        snapshot_to_json as snapshot_to_json,
    )
    from web.harness.sessions.sql.event_log import (
        SqlEventLog as SqlEventLog,
    )
    from web.harness.sessions.sql.store import (
        SqlSessionStore as SqlSessionStore,
    )
    from web.harness.sessions.store import (
        BaseLease as BaseLease,
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
    from web.harness.snapshots.folder import (
        SnapshotFolder as SnapshotFolder,
    )
    from web.harness.snapshots.form import (
        read_snapshot as read_snapshot,
        write_snapshot as write_snapshot,
    )
    from web.harness.snapshots.snapshot import (
        Snapshot as Snapshot,
    )
    from web.harness.subagents import (
        sub_agent_tool as sub_agent_tool,
    )
    from web.harness.tools.forms import (
        FormRefused as FormRefused,
    )
    from web.harness.tools.hooks import (
        Happening as Happening,
        HookEvent as HookEvent,
        Hooks as Hooks,
    )
    from web.harness.tools.inside import (
        Inside as Inside,
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
    from web.harness.tools.resource import (
        GetResource as GetResource,
        Resource as Resource,
    )
    from web.harness.tools.tool import (
        InputAnswer as InputAnswer,
        PermissionLevel as PermissionLevel,
        Tool as Tool,
        ToolContext as ToolContext,
        ToolOutput as ToolOutput,
    )
    from web.harness.values.codec import (
        message_from_json as message_from_json,
        message_to_json as message_to_json,
    )
    from web.harness.values.config import (
        DEMO_MODEL as DEMO_MODEL,
        SMALL_DEMO_MODEL as SMALL_DEMO_MODEL,
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
        ContextTooLong as ContextTooLong,
        DecisionRefused as DecisionRefused,
        HarnessError as HarnessError,
        HarnessSessionConflict as HarnessSessionConflict,
        LeaseLost as LeaseLost,
        LimitExceeded as LimitExceeded,
        MemoryRefused as MemoryRefused,
        NotFound as NotFound,
        PicturesRefused as PicturesRefused,
        ProviderError as ProviderError,
        SessionConflict as SessionConflict,
        SkillRefused as SkillRefused,
        SnapshotRefused as SnapshotRefused,
        StoreError as StoreError,
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
        NestedEvent as NestedEvent,
        Note as Note,
        PlanStep as PlanStep,
        RecoveryAnswered as RecoveryAnswered,
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
    from web.harness.values.json_form import (
        JsonRefused as JsonRefused,
        NotSerialisable as NotSerialisable,
    )
    from web.harness.values.learned_limits import (
        LearnedLimits as LearnedLimits,
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
    module: names.split()
    for module, names in {
        "web.harness.agent.agent": "Agent",
        "web.harness.agent.extensions": "BaseExtension Extension Instructing",
        "web.harness.agent.options": "AgentOptions",
        "web.harness.agent.pausing": "RunPaused",
        "web.harness.agent.questions": "Answer",
        "web.harness.agent.sessions": "agent_of snapshot_of",
        "web.harness.host": "Driver ExecutionServices HarnessRuntime",
        "web.harness.memory.fact_lines": "Fact",
        "web.harness.memory.facts": "LongTermMemory",
        "web.harness.memory.limits": "MemoryLimits",
        "web.harness.memory.notes": "AgentMemory",
        "web.harness.memory.prompt": "memory_prompt",
        "web.harness.providers": "make_provider",
        "web.harness.resources": "ResourceLease ResourcePool",
        "web.harness.runtime.agent_runtime": "AgentRuntime",
        "web.harness.runtime.backend": "Backend Performed Turn",
        "web.harness.runtime.handle": "RunHandle",
        "web.harness.runtime.run_info": "RunInfo",
        "web.harness.runtime.sql": "PostgresBackend SqlBackend SQLiteBackend",
        "web.harness.runtime.temporal.backend": "TemporalBackend",
        "web.harness.sessions.event_log": "EventLog InMemoryEventLog",
        "web.harness.sessions.identity": "LOCAL_IDENTITY HarnessIdentity check_scope",
        "web.harness.sessions.in_memory": "InMemoryHarnessSessionStore InMemorySessionStore",
        "web.harness.sessions.journal": (
            "CallRecord Execution Executions GivenAnswer NumberedStep Recorded RunJournal Step "
            "Submission"
        ),
        "web.harness.sessions.opening": "Stores open_stores",
        "web.harness.sessions.process": "ProcessSessionStore",
        "web.harness.sessions.records": "Blobs KeptBlob Record Records",
        "web.harness.sessions.snapshot": "SessionSnapshot import_legacy",
        "web.harness.sessions.snapshot_form": "snapshot_from_json snapshot_to_json",
        "web.harness.sessions.sql.event_log": "SqlEventLog",
        "web.harness.sessions.sql.store": "SqlSessionStore",
        "web.harness.sessions.store": "BaseLease Guarantees SessionLease SessionStore",
        "web.harness.skills.library": "SkillLibrary Skills",
        "web.harness.skills.prompt": "skills_prompt",
        "web.harness.skills.skill": "Skill",
        "web.harness.snapshots.folder": "SnapshotFolder",
        "web.harness.snapshots.form": "read_snapshot write_snapshot",
        "web.harness.snapshots.snapshot": "Snapshot",
        "web.harness.subagents": "sub_agent_tool",
        "web.harness.tools.forms": "FormRefused",
        "web.harness.tools.hooks": "Happening HookEvent Hooks",
        "web.harness.tools.inside": "Inside",
        "web.harness.tools.permissions": "Permissions",
        "web.harness.tools.pictures": "image_block",
        "web.harness.tools.registry": "ToolRegistry",
        "web.harness.tools.resource": "GetResource Resource",
        "web.harness.tools.tool": "InputAnswer PermissionLevel Tool ToolContext ToolOutput",
        "web.harness.values.codec": "message_from_json message_to_json",
        "web.harness.values.config": (
            "DEMO_MODEL SMALL_DEMO_MODEL AgentConfig Limits ModelName Retry ToolDefaults"
        ),
        "web.harness.values.errors": (
            "AgentBusy AgentClosed ConfigurationError ContextTooLong DecisionRefused "
            "HarnessError HarnessSessionConflict LeaseLost LimitExceeded MemoryRefused NotFound "
            "PicturesRefused ProviderError SessionConflict SkillRefused SnapshotRefused "
            "StoreError ToolError"
        ),
        "web.harness.values.events": (
            "ApprovalRequired AttemptReset ContextCondensed ErrorReport Event EventBody "
            "InputAnswered InputRequired NestedEvent Note PlanStep RecoveryAnswered "
            "RecoveryRequired RunResult TextDelta ThinkingDelta ToolCallDelta ToolCallStart "
            "ToolProgress ToolResult UsageReport Waiting"
        ),
        "web.harness.values.json_form": "JsonRefused NotSerialisable",
        "web.harness.values.learned_limits": "LearnedLimits",
        "web.harness.values.messages": (
            "ImageBlock Message ResourceBlock TextBlock ThinkingBlock ToolResultBlock ToolUseBlock"
        ),
        "web.harness.values.model": (
            "ModelDone ModelRequest NoteChunk Provider TextChunk ThinkingChunk ToolSpec "
            "ToolUseChunk"
        ),
        "web.harness.values.usage": "Prices Usage",
    }.items()
}
"""Module to the names it gives; the imports above tell type checkers the same."""

_HOME = {name: module for module, names in _NAMES.items() for name in names}

# What needs an extra is not in here: `import *` works without.
__all__ = sorted(_HOME.keys() - {"TemporalBackend"})


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
