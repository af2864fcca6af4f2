"""Does an agent fit a run that it did not begin: what is written down of it, and what differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from web.harness.agent.agent import Agent
from web.harness.loop.state import CallState, RunState
from web.harness.sessions.journal import CallRecord
from web.harness.tools.tool import Tool
from web.harness.values.config_form import config_to_dict
from web.harness.values.errors import HarnessError
from web.harness.values.messages import JsonObject
from web.harness.values.text import sayable

MAX_DIFFERENCES = 5
"""That an error names; of further ones it says the number."""

_OPEN = ("asking", "ready", "running", "waiting")


def needed_tools(state: RunState | None, records: Mapping[str, CallRecord]) -> tuple[str, ...]:
    """The tools of open calls that may still run by themselves.

    Of a call that was cut off and is not to be repeated, a person says what becomes of it.
    """
    calls = state.calls if state is not None else ()
    return tuple(dict.fromkeys(each.name for each in calls if _may_run(each, records.get(each.id))))


def _may_run(call: CallState, record: CallRecord | None) -> bool:
    if call.status not in _OPEN or call.verdict != "run":
        return False
    cut_off = call.status == "running" and record is not None and record.input is None
    return not (cut_off and record is not None and record.replay == "manual")


def fitting_of(agent: Agent) -> JsonObject:
    """What a run needs to go on with another agent.

    `{"model": "provider:name", "extensions": [names], "tools": {name: {"schema": digest, "replay",
    "version"}}, "configuration": the whole of it, for whoever looks at the run later}`. The tools
    are those of this moment: what comes and goes during a run is not among them.
    """
    return {
        "model": str(agent.config.model),
        "extensions": list(agent.extensions.names),
        "tools": {tool.name: _form(tool) for tool in agent.tools},
        "configuration": config_to_dict(agent.config),
    }


def check_fitting(fitting: JsonObject, agent: Agent, needed: Iterable[str] = ()) -> None:
    """Raises HarnessError (`runtime_differs`), saying what differs, for an agent that a run cannot
    go on with. An empty `fitting` fits any: nothing was written down. `needed` are tools that the
    agent has to have in any case: see `needed_tools`."""
    found = list(_differences(fitting, agent)) if fitting else []
    for name in needed:
        words = f"the tool {name} is missing"
        if name not in agent.tools and words not in found:
            found.append(f"{words}, which an open call needs")
    if not found:
        return
    shown = "; ".join(found[:MAX_DIFFERENCES])
    more = f"; and {len(found) - MAX_DIFFERENCES} more" if len(found) > MAX_DIFFERENCES else ""
    raise HarnessError(
        sayable(f"This agent does not fit the run: {shown}{more}."),
        hint="Nothing was done, and the run is as it was. Resume it with an agent that fits, or "
        "cancel it.",
        code="runtime_differs",
    )


def _differences(fitting: JsonObject, agent: Agent) -> Iterable[str]:
    now = fitting_of(agent)
    if fitting.get("model") != now["model"]:
        yield f"its model is {now['model']}, and was {fitting.get('model')}"
    before, names = list(fitting.get("extensions") or ()), list(now["extensions"])
    for name in sorted(set(before) - set(names)):
        yield f"the extension {name} is missing"
    for name in sorted(set(names) - set(before)):
        yield f"the extension {name} is new"
    tools: dict[str, Any] = now["tools"]
    for name, form in (fitting.get("tools") or {}).items():
        yield from _of_tool(name, form, tools.get(name))


def _of_tool(name: str, before: JsonObject, now: JsonObject | None) -> Iterable[str]:
    """A tool that is new does no harm."""
    if now is None:
        yield f"the tool {name} is missing"
        return
    if before.get("schema") != now["schema"]:
        yield f"the tool {name} takes other arguments"
    if before.get("replay") != now["replay"]:
        yield f"the tool {name} is {now['replay']} to repeat, and was {before.get('replay')}"
    if before.get("version") != now["version"]:
        was = before.get("version") or "without one"
        yield f"the tool {name} has the version {now['version'] or 'none'}, and was {was}"


def _form(tool: Tool) -> JsonObject:
    schema = json.dumps(tool.input_schema, sort_keys=True)
    digest = hashlib.sha256(schema.encode(errors="surrogatepass")).hexdigest()
    return {"schema": digest[:32], "replay": tool.replay, "version": tool.version}
