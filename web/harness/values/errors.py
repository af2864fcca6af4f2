"""The one tree of errors: each has a stable code, a message and a hint on what to do."""

from __future__ import annotations


class HarnessError(Exception):
    """Base of every error this library raises on purpose.

    `code` is stable and meant for programs, `message` says what happened, `hint` what to do
    (may be empty). Neither ever holds a secret.
    """

    code = "harness_error"
    hint = ""

    def __init__(self, message: str, *, hint: str | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        if hint is not None:
            self.hint = hint
        if code is not None:
            self.code = code

    def as_dict(self) -> dict[str, str]:
        """`{"code", "message", "hint"}`, the shape every program sees."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


class ConfigurationError(HarnessError):
    """A setting cannot be used as it is."""

    code = "configuration_error"


class LimitExceeded(HarnessError):
    """Something is larger, longer or more than a limit allows; the message says the limit."""

    code = "limit_exceeded"


class AgentBusy(HarnessError):
    """A second run was asked of an agent that has one under way."""

    code = "agent_busy"


class AgentClosed(HarnessError):
    """An agent was used after it was closed."""

    code = "agent_closed"


class SessionConflict(HarnessError):
    """Another holder has the lease of this session."""

    code = "session_conflict"
    hint = "This chat is busy. Try again when its answer has ended."


HarnessSessionConflict = SessionConflict
"""The same under its full name."""


class LeaseLost(SessionConflict):
    """The lease was released or taken over; nothing of the commit was written."""

    code = "lease_lost"


class NotFound(HarnessError):
    """There is no such chat, run, tool, message or file, or it belongs to somebody else."""

    code = "not_found"


class DecisionRefused(HarnessError):
    """An approval was answered twice, too late, or for other arguments than were shown."""

    code = "decision_refused"


class ToolError(HarnessError):
    """A tool could not do what was asked; the message is written for the model to act on."""

    code = "tool_error"


class SkillRefused(HarnessError):
    """A skill, or a file of it, is not as it must be; the message says why in one line."""

    code = "skill_refused"


class MemoryRefused(HarnessError):
    """A note or a fact is not as it must be, or was changed meanwhile; the message says why."""

    code = "memory_refused"


class SnapshotRefused(HarnessError):
    """A snapshot cannot be read, saved or used as it is; the message says where and why."""

    code = "snapshot_refused"


class StoreError(HarnessError):
    """A store could not read or write; the hint says what was kept.

    `transient` tells whether the same may succeed in a moment, and may be tried again.
    """

    code = "store_failed"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        transient: bool = False,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.transient = transient


class ProviderError(HarnessError):
    """A model could not be reached or refused.

    `transient` tells whether the same request may succeed later; `retry_after` is the number of
    seconds the provider asked for, if it did.
    """

    code = "provider_error"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        code: str | None = None,
        transient: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint=hint, code=code)
        self.transient = transient
        self.retry_after = retry_after


class ContextTooLong(ProviderError):
    """A model refused a request for its length.

    `limit` is the context in tokens that the refusal named, `counted` how many tokens the model
    counted in the request; None where it did not say.
    """

    code = "context_too_long"

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        limit: int | None = None,
        counted: int | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.limit = limit
        self.counted = counted


class PicturesRefused(ProviderError):
    """A model or its server does not take the pictures of a request; without them it may work."""

    code = "provider_pictures_refused"


def first_error(error: BaseException) -> BaseException:
    """The error itself, or the first one of a group, however deep."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
