"""Pages keep what was typed, work under a strict policy, and say what the server's state is."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any, get_args

import pytest
from jinja2 import Environment
from markupsafe import Markup

from web.chats.parts.kinds import Foot
from web.chats.steps.step_kinds import ShownStep, StepCall
from web.harness.sessions.journal import StepKind
from web.harness.skills.skill import Skill, SkillFile, SkillText
from web.harness.values.errors import HarnessError
from web.harness.values.usage import Usage
from web.paths import templates_dir
from web.ui.markdown.code import plain_code
from web.ui.pages.typed_text import Typed
from web.ui.rendering.templating import make_environment
from web.ui.runs.run_pages import StepsPage, Timed
from web.ui.skills.skill_pages import ShownFile

HOSTILE = """</title></textarea>'"><script>alert(1)</script><b onclick=alert(1)>"""


@pytest.fixture(scope="module")
def environment() -> Environment:
    return make_environment(templates_dir())


def shell(**more: Any) -> dict[str, Any]:
    """What pages/shell.html documents, filled with text that tries to break out."""
    context: dict[str, Any] = {
        "theme": "auto",
        "title": HOSTILE,
        "chat": {"id": "c1", "title": HOSTILE, "model": "demo:demo"},
        "models": ("demo:demo", HOSTILE),
        "model": "demo:demo",
        "tools": [
            {"name": HOSTILE, "description": HOSTILE, "permission": level, "always_asks": always}
            for level, always in (("allow", False), ("ask", False), ("ask", True), ("deny", False))
        ],
        "version": 42,
        "epoch": "ab12",
        "region": lambda channel, slot: Markup("[{} {}]").format(channel, slot),
        "draft": "",
        "who": {"key": "0a1b", "name": HOSTILE, "signs_out": True},
        "request_id": "request-1",
        "working": False,
        "memory": HOSTILE,
        "demo": True,
        "most": {"chars": 1_000, "draft": 2_000, "files": 10, "bytes": 1_000_000},
        "skills": [HOSTILE, HOSTILE],
        "remembers": True,
        "begun": False,
        "suggestions": [{"label": HOSTILE, "text": HOSTILE}],
        "servers": {
            "names": [HOSTILE],
            "demo": "demo",
            "has_demo": True,
            "suggestions": [{"label": HOSTILE, "text": HOSTILE}],
        },
    }
    return context | more


def error_page(**more: Any) -> dict[str, Any]:
    context: dict[str, Any] = {
        "theme": "auto",
        "title": HOSTILE,
        "status": 413,
        "error": {"code": "limit_exceeded", "message": HOSTILE, "hint": HOSTILE},
        "back": "/chats/c1",
        "typed": Typed("text", HOSTILE, {HOSTILE: HOSTILE}),
        "action": "/chats",
        "request_id": "request-1",
    }
    return context | more


def skill_page(**more: Any) -> dict[str, Any]:
    skill = Skill(
        *(HOSTILE, HOSTILE, HOSTILE, HOSTILE, ((HOSTILE, HOSTILE),), (HOSTILE,)),
        writable=True,
    )
    context: dict[str, Any] = {
        "theme": "auto",
        "title": HOSTILE,
        "chat": {"id": "c1", "title": HOSTILE},
        "base": "/chats/c1/skills/ab12",
        "skill": skill,
        "fault": HOSTILE,
        "text": SkillText(skill, HOSTILE, HOSTILE, "ab12", (SkillFile(HOSTILE, 5),), 2),
        "file": ShownFile(HOSTILE, 5, text=Markup(plain_code(HOSTILE)), more=7),
        "typed": HOSTILE,
        "seen": HOSTILE,
        "now": HOSTILE,
        "error": HarnessError(HOSTILE, hint=HOSTILE),
    }
    return context | more


def steps_page(**more: Any) -> dict[str, Any]:
    """Every kind of step, with all that one can have."""
    odd = {HOSTILE: HOSTILE}
    call = StepCall(
        HOSTILE, HOSTILE, odd, HOSTILE, HOSTILE, HOSTILE, HOSTILE, True, {"message": [HOSTILE]},
        HOSTILE, True, 2, 0.5,
    )  # fmt: skip
    about = {"messages": 1, "tokens": HOSTILE, "attempt": 2, "tools": 5}
    steps = [
        ShownStep(
            number, 1_790_000_000.0, kind, 0, HOSTILE, 1.5, Usage(1, 2), 0.5, (HOSTILE,), HOSTILE,
            HOSTILE, (HOSTILE,), (call, call), HOSTILE, HOSTILE, 2.0, about, True,
        )
        for number, kind in enumerate(get_args(StepKind), 1)
    ]  # fmt: skip
    context: dict[str, Any] = {
        "theme": "auto",
        "title": HOSTILE,
        "chat": {"id": "c1", "title": HOSTILE},
        "of": HOSTILE,
        "page": StepsPage([Timed(step, 1.0, 2.0) for step in steps], 1, 200),
        "foot": Foot(1.0, Usage(1, 2), 0.5, HOSTILE, "r1"),
        "address": "/chats/c1/runs/r1",
        "most": 10,
        "request_id": "request-1",
    }
    return context | more


PAGES = [
    ("steps", steps_page()),
    ("steps", steps_page(chat=None, foot=None, most=None)),
    ("skill", skill_page()),
    ("skill_edit", skill_page()),
    ("chat", shell()),
    ("new", shell(chat=None)),
    ("new", shell(chat=None, demo=False, tools=[])),
    (
        "delete",
        {
            "theme": "auto",
            "title": "",
            "chat": {"id": "c1", "title": HOSTILE},
            "files": {"count": 2, "bytes": 2_000},
        },
    ),
    ("error", error_page()),
    ("error", error_page(typed=Typed(), back="/")),
]


class Attributes(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def render(environment: Environment, name: str, given: dict[str, Any]) -> str:
    return environment.get_template(f"pages/{name}.html").render(given)


@pytest.mark.parametrize(("name", "given"), PAGES)
def test_a_page_has_no_inline_script_or_style(
    environment: Environment, name: str, given: dict[str, Any]
) -> None:
    for tag, attributes in Attributes(render(environment, name, given)).found:
        assert tag != "style"
        assert tag != "script" or (attributes.get("src") or "").startswith("/static/")
        assert not [each for each in attributes if each == "style" or re.match("on|hx-on", each)]


@pytest.mark.parametrize(("name", "given"), PAGES)
def test_each_id_is_used_once_and_each_label_names_a_field(
    environment: Environment, name: str, given: dict[str, Any]
) -> None:
    html = render(environment, name, given)
    ids = re.findall(r'\sid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'\sfor="([^"]+)"', html)) <= set(ids)
    assert set(re.findall(r'\spopovertarget="([^"]+)"', html)) <= set(ids)


def test_the_chat_page_holds_every_region(environment: Environment) -> None:
    html = render(environment, "chat", shell())
    for channel, slot in (
        ("chats", "chats"),
        ("chats", "undo"),
        ("c1", "head"),
        ("c1", "log"),
        ("c1", "status"),
        ("c1", "attention"),
        ("c1", "queue"),
        ("c1", "skills"),
        ("c1", "deleted-skills"),
        ("c1", "memories"),
        ("c1", "memory-state"),
    ):
        found = re.search(f'data-channel="{channel}" data-slot="{slot}"[^>]*>([^<]*)<', html)
        assert found, slot
        assert found[1] == f"[{channel} {slot}]"


@pytest.mark.parametrize("name", ["chat", "new"])
def test_a_draft_comes_back_as_it_was_typed(environment: Environment, name: str) -> None:
    draft = "\n  first line\n\nlast line\n"
    chat = None if name == "new" else shell()["chat"]
    html = render(environment, name, shell(draft=draft, chat=chat))
    # A browser drops the line break right after the tag, and only that one.
    assert f">\n{draft}</textarea>" in html


def test_an_error_page_keeps_what_was_typed(environment: Environment) -> None:
    html = render(
        environment,
        "error",
        error_page(typed=Typed("text", "\nmy text", {"model": "m", "request_id": "old"})),
    )
    assert ">\n\nmy text</textarea>" in html
    assert 'action="/chats"' in html
    assert '<input type="hidden" name="model" value="m">' in html
    assert re.findall('name="request_id" value="(.*?)"', html) == ["request-1"]


def test_text_that_can_not_be_sent_again_can_still_be_copied(environment: Environment) -> None:
    html = render(environment, "error", error_page(typed=Typed("text", "my text"), action=""))
    assert "my text</textarea>" in html
    assert "Send once more" not in html


@pytest.mark.parametrize("working", [True, False])
def test_without_script_a_page_reloads_only_while_a_run_works(
    environment: Environment, working: bool
) -> None:
    html = render(environment, "chat", shell(working=working))
    assert ('<noscript><meta http-equiv="refresh"' in html) is working
    assert f'aria-busy="{str(working).lower()}"' in html


@pytest.mark.parametrize(
    ("theme", "attribute"),
    [("dark", ' data-theme="dark"'), ("light", ' data-theme="light"'), ("auto", "")],
)
def test_the_theme_is_there_before_any_script(
    environment: Environment, theme: str, attribute: str
) -> None:
    assert f'<html lang="en"{attribute}>' in render(environment, "chat", shell(theme=theme))


def test_suggestions_start_one_chat_each(environment: Environment) -> None:
    tries = [{"label": "A", "text": "first"}, {"label": "B", "text": "second"}]
    html = render(environment, "new", shell(chat=None, suggestions=tries))
    assert re.findall(r'name="text" value="([^"]+)"', html) == ["first", "second"]
    ids = re.findall(r'name="request_id" value="([^"]+)"', html)
    # One more connects the demo server, one is of commands, one the message box's, and one loads
    # a snapshot.
    assert len(ids) == len(set(ids)) == 6


def test_only_the_demo_asks_for_a_key(environment: Environment) -> None:
    assert "OPENAI_API_KEY" in render(environment, "new", shell(chat=None))
    assert "OPENAI_API_KEY" not in render(environment, "new", shell(chat=None, demo=False))
