"""What a tool returned, as a person sees it in its call."""

from __future__ import annotations

from tests.ui.elements import Elements, call, show
from web.chats.parts.channel import Channel
from web.chats.parts.kinds import Call, ShownPart
from web.harness.values.events import PartKind, ResultPart
from web.ui.rendering.fragments import Fragments


def shown(part: ResultPart, host: str = "") -> Call:
    return call(parts=(ShownPart(part, host),), result="what the model reads")


def test_parts_stand_in_the_place_of_the_text_for_the_model(
    fragments: Fragments, chat: Channel
) -> None:
    html = show(fragments, chat, shown(ResultPart("text", "what a person reads")))
    assert ">what a person reads</pre>" in html
    assert html.count("what the model reads") == 1  # On the closed line.


def test_a_picture_has_words_for_those_who_do_not_see_it(
    fragments: Fragments, chat: Channel
) -> None:
    part = ResultPart("image", media_type="image/png", size=34_000, sha256="a" * 64)
    elements = Elements(show(fragments, chat, shown(part)))
    [image] = elements.named("img")
    assert image["alt"] == "Image 1 returned by write_file"
    assert "image/png, 34 KB" in elements.text
    assert [link["href"] for link in elements.named("a")] == [image["src"], image["src"]]


def test_what_is_to_be_seen_or_heard_stands_outside_the_fold(
    fragments: Fragments, chat: Channel
) -> None:
    text = ShownPart(ResultPart("text", "some words"))
    media: tuple[PartKind, ...] = ("image", "audio")
    kept = [ShownPart(ResultPart(kind, size=4_000, sha256="a" * 64)) for kind in media]
    for status in ("done", "failed"):
        html = show(fragments, chat, call(status, parts=(text, *kept), result="words"))
        folded, _, below = html.rpartition("</details>")
        assert "some words" in folded
        assert ("<img" in below, "<audio" in below) == (status == "done",) * 2
        assert (html.count("<img"), html.count("<audio")) == (1, 1)
        assert "4 KB" in html


def test_data_that_was_not_kept_is_not_asked_for(fragments: Fragments, chat: Channel) -> None:
    kinds: tuple[PartKind, ...] = ("image", "audio", "file")
    for kind in kinds:
        elements = Elements(show(fragments, chat, shown(ResultPart(kind, size=9_000_000))))
        assert not {"img", "audio", "a"} & {tag for tag, _ in elements.found}
        assert "too large to be kept" in elements.text


def test_a_link_names_its_host_and_opens_apart_or_not_at_all(
    fragments: Fragments, chat: Channel
) -> None:
    part = ResultPart("link", "About it", "The page", "https://a.example/x")
    elements = Elements(show(fragments, chat, shown(part, "a.example")))
    [link] = elements.named("a")
    assert link["href"] == "https://a.example/x"
    assert (link["target"], link["rel"]) == ("_blank", "noopener noreferrer nofollow")
    assert "a.example" in elements.text
    closed = Elements(show(fragments, chat, shown(ResultPart("link", "", "It", "demo://x"))))
    assert closed.named("a") == []
    assert "demo://x" in closed.text


def test_a_resource_is_folded_and_says_how_much_there_is(
    fragments: Fragments, chat: Channel
) -> None:
    part = ResultPart(
        "resource", "x" * 100, uri="file:///a.md", media_type="text/markdown", size=50_000
    )
    elements = Elements(show(fragments, chat, shown(part)))
    fold = elements.named("details")[1]
    assert fold["data-keep"] == "part-1"
    assert "open" not in fold
    assert "the first 100 characters of 50 KB" in elements.text
