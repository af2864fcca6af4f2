"""Parts become the same HTML for the page and for the stream, and nothing in them can run."""

from __future__ import annotations

from typing import get_args

import pytest

from tests.ui.elements import Elements, PlainBlock, call, render_plainly, show
from web.chats.markdown.blocks import Block
from web.chats.parts.channel import Channel, Clock
from web.chats.parts.condensed_kinds import Condensed
from web.chats.parts.halted_kinds import Halted, HaltedWhy, Recovery
from web.chats.parts.kinds import (
    Answer,
    Attention,
    Call,
    CallStatus,
    ChatState,
    Failure,
    Foot,
    Grant,
    Head,
    MarkdownBlock,
    NestedState,
    Notice,
    PartData,
    Proposal,
    Question,
    Queued,
    Row,
    Server,
    ServerTool,
    ServerTools,
    ShownPart,
    Status,
    Thinking,
    Undo,
    UserMessage,
)
from web.chats.parts.plan_kinds import Plan
from web.chats.parts.skill_kinds import DeletedSkill, DeletedSkills, ShownSkill
from web.harness.mcp.status import LogLine, State
from web.harness.values.events import PartKind, PlanStatus, PlanStep, Resolution, ResultPart
from web.harness.values.messages import JsonObject
from web.harness.values.usage import Usage
from web.paths import templates_dir
from web.ui.rendering.fragments import Fragments
from web.ui.rendering.templating import make_environment

HOSTILE = """</pre></textarea>'"><script>alert(1)</script><img src=x onerror=alert(1)>&"""


def asking(arguments: JsonObject | None = None, preview: JsonObject | None = None) -> Call:
    return call("asking", arguments=arguments, question=Question("key-1", preview))


def block(text: str, key: str = "0") -> MarkdownBlock:
    return MarkdownBlock(Block(key, None, "paragraph", text))


STATES: tuple[ChatState, ...] = get_args(ChatState)
SERVER_STATES: tuple[State, ...] = get_args(State)
LOG = (LogLine(1.0, "error", HOSTILE, HOSTILE), LogLine(1.0, "stray", HOSTILE))
TOOL = ServerTool("t", HOSTILE, HOSTILE, (HOSTILE,), on=True, granted=True, changed=True)
STATUSES: tuple[CallStatus, ...] = get_args(CallStatus)
NESTED: tuple[NestedState, ...] = get_args(NestedState)
PLAN_STATUSES: tuple[PlanStatus, ...] = get_args(PlanStatus)
DIFF = {
    "kind": "diff",
    "path": HOSTILE,
    "note": HOSTILE,
    "lines": [["same", HOSTILE], ["add", HOSTILE], ["cut", HOSTILE], ["gap", HOSTILE]],
}
KINDS: tuple[PartKind, ...] = get_args(PartKind)
PARTS = tuple(
    ShownPart(ResultPart(kind, HOSTILE, HOSTILE, HOSTILE, HOSTILE, size, sha256), host)
    for kind in KINDS
    for size, sha256, host in ((5, "", ""), (50_000, "a" * 64, HOSTILE))
)
EVERY_KIND: list[PartData] = [
    UserMessage(HOSTILE, 1_790_000_000.0),
    Answer(),
    block(HOSTILE),
    Thinking(busy=True),
    Thinking(busy=False),
    Notice(HOSTILE, HOSTILE, until=1_790_000_000.0),
    Failure("r1", "code", HOSTILE, HOSTILE),
    Condensed(7_000, 3_000, cleared=1, summarised=12, dropped=1, shortened=2),
    Foot(1.0, Usage(1200, 3), 0.01, HOSTILE),
    Foot(1.0, Usage(), None, HOSTILE),
    Queued("m1", HOSTILE),
    Queued("m1", HOSTILE, behind="asking"),
    Queued("m1", HOSTILE, behind="halted"),
    Head(HOSTILE, HOSTILE),
    Grant(HOSTILE),
    Undo("c2", HOSTILE, 1_790_000_000.0),
    Undo("c2", HOSTILE, 1_790_000_000.0, "file", "3"),
    Undo("c2", HOSTILE, 1_790_000_000.0, "skill", "server"),
    Undo("c2", HOSTILE, 1_790_000_000.0, "upload"),
    Proposal("p1", HOSTILE, HOSTILE, (HOSTILE, HOSTILE), (HOSTILE,), HOSTILE),
    Attention((HOSTILE, HOSTILE), more=1),
    ShownSkill("ab12", HOSTILE, HOSTILE, "upload", "", True, 1.0, on=False),
    ShownSkill("ab12", HOSTILE, "", "server", HOSTILE, False, 0.0, on=True),
    DeletedSkills((DeletedSkill(HOSTILE, "server"), DeletedSkill(HOSTILE, "upload"))),
    ServerTools("s", (TOOL,), more=1),
    *(
        Server(
            "s-1",
            HOSTILE,
            False,
            HOSTILE,
            state,
            HOSTILE,
            True,
            title=HOSTILE,
            version=HOSTILE,
            protocol=HOSTILE,
            stderr=(HOSTILE,),
            log=LOG,
        )
        for state in SERVER_STATES
    ),
    *(Status(state, HOSTILE, "r1") for state in STATES),
    *(Row("c2", HOSTILE, state, 1_790_000_000.0) for state in STATES),
    *(
        call(
            status,
            name=HOSTILE,
            arguments={HOSTILE: HOSTILE, "b": [HOSTILE]},
            result=HOSTILE,
            result_size=9_000,
            decision="allow_chat",
            edited=True,
        )
        for status in STATUSES
    ),
    *(call("running", name=HOSTILE, nested=nested) for nested in NESTED),
    Plan(tuple(PlanStep(HOSTILE, status) for status in PLAN_STATUSES), is_live=True),
    Plan((PlanStep(HOSTILE, "in_progress"),)),
    call("done", parts=PARTS, hints=(HOSTILE, "read-only")),
    call("asking", parts=(), hints=(HOSTILE,), question=Question("key-1")),
    call("writing", arguments=None, written=0),
    call("unknown", name=HOSTILE, arguments={HOSTILE: HOSTILE}, recovery=Recovery("k-1")),
    *(call("unknown", name=HOSTILE, resolved=how) for how in get_args(Resolution)),
    *(Halted("r1", why, HOSTILE, count) for why in get_args(HaltedWhy) for count in (0, 2)),
    Foot(1.0, Usage(), None, HOSTILE, "r1", 4_000.0),
    Status("working", HOSTILE, "r1", pauses=True),
    call("failed", arguments=None, result="No such tool.", result_size=13),
    asking({HOSTILE: HOSTILE}),
    asking({"a": HOSTILE}, DIFF),
    asking({}, {"kind": "text", "text": HOSTILE}),
    asking(None),
]


@pytest.mark.parametrize("data", EVERY_KIND, ids=lambda data: data.kind)
def test_a_part_is_one_element_with_its_id_and_version_and_nothing_that_runs(
    fragments: Fragments, chat: Channel, data: PartData
) -> None:
    elements = Elements(show(fragments, chat, data, "c1-p1"))
    assert elements.roots == 1
    root = elements.found[0][1]
    assert root["id"] == "c1-p1"
    assert root["data-version"] == "1"
    assert "data-part" in root
    for tag, attributes in elements.found:
        assert tag != "script"
        if tag in ("img", "audio"):
            assert attributes["src"] == f"/chats/c1/blobs/{'a' * 64}"
        assert not [name for name in attributes if name.startswith("on") or name == "style"]


@pytest.mark.parametrize("data", EVERY_KIND, ids=lambda data: data.kind)
def test_a_form_posts_to_the_same_place_with_and_without_script(
    fragments: Fragments, chat: Channel, data: PartData
) -> None:
    elements = Elements(show(fragments, chat, data))
    forms = elements.named("form")
    for form in forms:
        assert form["method"] == "post"
        assert form["action"] == form["hx-post"]
        assert form["hx-target"] == "find [data-error]"
    errors = [each for each in elements.named("div") if "data-error" in each]
    assert len(errors) == len(forms)


def test_the_page_shows_what_the_frames_show(fragments: Fragments, chat: Channel) -> None:
    for number, data in enumerate(EVERY_KIND):
        chat.put(f"p{number}", "log", data)
    frames = [fragments.element("c1", part) for part in chat.slot("log")]
    assert fragments.region(chat, "log") == "".join(frames)


def test_a_call_is_a_slot_for_its_sub_agent_which_is_open_while_that_works(
    fragments: Fragments, chat: Channel
) -> None:
    for nested, is_open, words in (
        ("working", True, "is at work"),
        ("asking", True, "needs your answer"),
        ("done", False, "What the sub-agent did"),
    ):
        chat.put("c", "log", call("running", nested=nested))
        chat.put("c-0", "c", block("inside"))
        html = str(fragments.region(chat, "log"))
        (details,) = [
            at
            for name, at in Elements(html).found
            if name == "details" and at.get("class") == "nested"
        ]
        assert ("open" in details) is is_open
        assert words in html
        assert html.index("nested-log") < html.index("inside")
        assert html.count('data-status="asking"') == (nested == "asking")
    assert "nested" not in show(fragments, chat, call("running"))


def test_the_page_holds_children_where_a_frame_has_an_empty_slot(
    fragments: Fragments, chat: Channel
) -> None:
    chat.put("a", "log", Answer())
    chat.put("t", "a", Thinking(busy=False))
    chat.put("t-0", "t", block("thought"))
    chat.put("b-0", "a", block("said"))
    chat.put("b-1", "a", MarkdownBlock(Block("1", None, "table", "head")))
    chat.put("b-1-0", "b-1", MarkdownBlock(Block("1-0", "1", "rows", "row")))
    for id, slot in (("a", "log"), ("t", "a"), ("b-1", "a")):
        part = chat.get(id)
        assert part is not None
        frame = fragments.element("c1", part)
        assert [at["data-slot"] for _, at in Elements(frame).found if "data-slot" in at] == [id]
        children = str(fragments.region(chat, id))
        assert children
        assert frame in str(fragments.region(chat, slot)).replace(children, "", 1)
    whole = str(fragments.region(chat, "log"))
    assert Elements(whole).roots == 1
    assert whole.index("thought") < whole.index("said") < whole.index("head") < whole.index("row")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            Condensed(7_000, 3_000, summarised=12),
            ("Earlier messages were", "7\u202f000 → 3\u202f000", "In place of 12 messages"),
        ),
        (Condensed(9, 5, summarised=1), ("In place of one message",)),
        (Condensed(9, 5, cleared=1), ("Old results of tools", "1 old result of a tool was taken")),
        (Condensed(9, 5, dropped=2), ("The oldest messages are not", "2 messages were left out")),
        (Condensed(9, 5, shortened=1), ("Long results were cut", "1 message was cut")),
    ],
)
def test_what_the_model_is_not_sent_any_more_is_one_line_that_opens(
    fragments: Fragments, chat: Channel, data: Condensed, words: tuple[str, ...]
) -> None:
    elements = Elements(show(fragments, chat, data, "s-r-1"))
    assert elements.found[0][0] == "details"
    assert "open" not in elements.found[0][1]
    text = " ".join(elements.text.split(" "))
    for each in words:
        assert each in text
    assert "stays on this page" in text


def test_a_block_that_talks_about_slots_gets_none(fragments: Fragments, chat: Channel) -> None:
    shell = MarkdownBlock(Block("0", None, "table", '<b data-slot=""></table>'))
    html = show(fragments, chat, shell, "s")
    assert html.count('data-slot="s"') == 1
    assert 'data-slot="p"' not in show(fragments, chat, block(' data-slot=""'), "p")


def test_a_part_is_rendered_once_a_version(chat: Channel) -> None:
    rendered: list[str] = []

    def render(block: Block) -> PlainBlock:
        rendered.append(block.source)
        return render_plainly(block)

    fragments = Fragments(make_environment(templates_dir()), render)
    for text in ("one", "one", "two"):
        html = show(fragments, chat, block(text))
        assert str(fragments.region(chat, "log")) == html
    assert rendered == ["one", "two"]


@pytest.mark.anyio
async def test_what_takes_long_is_done_before_and_only_for_what_changed(chat: Channel) -> None:
    order: list[str] = []

    async def prepare(block: Block) -> None:
        order.append(f"prepare {block.source}")

    def render(block: Block) -> PlainBlock:
        order.append(f"render {block.source}")
        return render_plainly(block)

    fragments = Fragments(make_environment(templates_dir()), render, prepare)
    for text in ("one", "two"):
        chat.put("p1", "log", block(text))
        chat.put("p2", "log", block("other"))
        await fragments.warm("c1", chat.parts())
    assert sorted(order[:4]) == ["prepare one", "prepare other", "render one", "render other"]
    assert order[4:] == ["prepare two", "render two"]
    for number in range(4):
        assert order[number].startswith("prepare" if number % 2 == 0 else "render")


def test_the_open_chat_is_marked_on_its_page_only(fragments: Fragments) -> None:
    chats = Channel("chats", Clock("ab12"))
    for id in ("c1", "c2"):
        chats.put(f"row-{id}", "chats", Row(id, f"Chat {id}", "idle", 0.0))
    region = fragments.regions(chats, current="c2")
    marked = [
        link["href"]
        for link in Elements(str(region("chats", "chats"))).named("a")
        if "aria-current" in link
    ]
    assert marked == ["/chats/c2"]
    assert "aria-current" not in fragments.region(chats, "chats")


def test_a_question_offers_each_decision_and_the_exact_arguments(
    fragments: Fragments, chat: Channel
) -> None:
    arguments = {"path": "a.txt", "content": "</textarea>\n"}
    elements = Elements(show(fragments, chat, asking(arguments)))
    assert elements.buttons() == {
        ("decision", "allow"),
        ("decision", "allow_chat"),
        ("decision", "deny"),
    }
    assert {form["action"] for form in elements.named("form")} == {"/chats/c1/approvals/key-1"}
    assert '"content": "</textarea>\\n"' in elements.text
    assert [field["name"] for field in elements.named("textarea")] == ["arguments"]
    assert [field["name"] for field in elements.named("input")] == ["reason"]


def test_a_question_of_what_always_asks_is_not_answered_for_the_chat(
    fragments: Fragments, chat: Channel
) -> None:
    data = call("asking", question=Question("key-1", always_asks=True))
    buttons = Elements(show(fragments, chat, data)).buttons()
    assert buttons == {("decision", "allow"), ("decision", "deny")}


def test_the_line_of_a_call_says_which_skill_was_used(fragments: Fragments, chat: Channel) -> None:
    text = Elements(
        show(fragments, chat, call(name="use_skill", arguments={"name": "greeting"}, result="Long"))
    ).text
    assert "use_skill" in text
    assert "skill greeting" in text
    assert "→ Long" not in text


@pytest.mark.parametrize("status", [each for each in STATUSES if each != "asking"])
def test_a_call_that_does_not_ask_offers_no_decision(
    fragments: Fragments, chat: Channel, status: CallStatus
) -> None:
    data = call(status, question=Question("key-1"))
    assert Elements(show(fragments, chat, data)).buttons() == set()


def test_a_diff_says_in_words_what_its_colours_say(fragments: Fragments, chat: Channel) -> None:
    lines = [["same", "one"], ["cut", "two"], ["add", "three"]]
    preview = {"kind": "diff", "path": "a.txt", "lines": lines}
    text = Elements(show(fragments, chat, asking({"path": "a.txt"}, preview))).text
    assert "removed: two" in text
    assert "added: three" in text


def test_a_shortened_result_says_how_much_there_is(fragments: Fragments, chat: Channel) -> None:
    data = call(result="x" * 2_000, result_size=50_000)
    assert "the first 2.0 KB of 50 KB" in Elements(show(fragments, chat, data)).text
    assert "the first" not in show(fragments, chat, call(result="x", result_size=1))


@pytest.mark.parametrize(
    ("state", "run_id", "busy", "stops"),
    [
        ("working", "r1", "true", True),
        ("asking", "r1", "false", True),
        ("idle", "r1", "false", False),
        ("failed", "r1", "false", False),
        ("working", None, "true", False),
    ],
)
def test_a_run_that_goes_on_can_be_stopped(
    fragments: Fragments,
    chat: Channel,
    state: ChatState,
    run_id: str | None,
    busy: str,
    stops: bool,
) -> None:
    elements = Elements(show(fragments, chat, Status(state, "words", run_id)))
    assert elements.found[0][1]["data-busy"] == busy
    assert [form["action"] for form in elements.named("form")] == ["/chats/c1/stop"] * stops


def test_a_message_keeps_its_white_space(fragments: Fragments, chat: Channel) -> None:
    text = "  one\n\n\ttwo  \n"
    assert f">{text}</div>" in show(fragments, chat, UserMessage(text, 0.0))
