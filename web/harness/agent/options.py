"""What an agent may be made with, for those who pass it on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from web.harness.agent.extensions import Extension
from web.harness.agent.given import Tools
from web.harness.agent.inputs import Answerer
from web.harness.agent.questions import Approver
from web.harness.tools.permissions import Permissions
from web.harness.tools.resource import GetResource
from web.harness.values.learned_limits import LearnedLimits
from web.harness.values.messages import Message
from web.harness.values.model import Provider


class AgentOptions(TypedDict, total=False):
    """The keyword arguments of `Agent` beside `config` and `session_id`, all of them optional."""

    provider: Provider | None
    tools: Tools | None
    permissions: Permissions | None
    messages: Iterable[Message]
    approver: Approver | None
    answerer: Answerer | None
    state: dict[str, Any] | None
    resource: GetResource
    extensions: Iterable[Extension]
    metadata: Mapping[str, Any]
    learned_limits: LearnedLimits | None
