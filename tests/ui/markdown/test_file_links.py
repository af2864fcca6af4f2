"""Relative links in answers, which lead to files of the chat."""

from __future__ import annotations

import pytest

from web.ui.markdown import render, with_files

FILES = "/chats/c1/files/"


def shown(text: str) -> str:
    return with_files(render(text), FILES)


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("notes/plan.md", "notes/plan.md"),
        ("./plan.md", "plan.md"),
        ("<my plan.md>", "my%20plan.md"),
        ("my%20plan.md", "my%20plan.md"),
        ("a%23b.md#part", "a%23b.md"),
        ("a.md?x=1", "a.md"),
        ("notes/été.md", "notes/%C3%A9t%C3%A9.md"),
        ("<a'b&c.md>", "a%27b%26c.md"),
    ],
)
def test_a_relative_link_opens_the_file_that_it_names(written: str, path: str) -> None:
    assert shown(f"[x]({written})") == f'<p><a href="{FILES}{path}">x</a></p>'


@pytest.mark.parametrize(
    "written",
    [
        *("../plan.md", "a/../../b.md", "/etc/passwd", "//x.example/a.md", "www.example.com"),
        *("#part", "?q=a.md", ".harness/lock", "a%2F..%2Fb.md", "a%00.md", "%2e%2e/a.md"),
        *("C:/a.md", "word"),
    ],
)
def test_what_could_be_no_file_is_no_link(written: str) -> None:
    assert "<a" not in shown(f"[x]({written})")


def test_an_image_of_the_chat_is_a_link_to_it_that_says_its_path() -> None:
    assert shown("![a chart](out/chart.png)") == (
        f'<p><a href="{FILES}out/chart.png" class="image-link">a chart <small>out/chart.png</small>'
        "</a></p>"
    )


def test_where_there_are_no_files_the_words_of_the_link_stay() -> None:
    html = with_files(render('[**bold** plan](plan.md "t") and [web](http://x.y)'), "")
    assert html.startswith("<p><strong>bold</strong> plan and <a href=")
    assert "plan.md" not in html


def test_words_that_look_like_such_a_link_lead_nowhere() -> None:
    text = '`<a href="/chats/-/files/a.md">` and <a href="/chats/-/files/b.md">b</a>'
    assert FILES not in shown(text)
