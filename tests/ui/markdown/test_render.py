"""What each construct looks like."""

from __future__ import annotations

import time

import pytest

from web.chats.markdown import Block, Limits, MarkdownStream
from web.ui.markdown import prepare_block, render, render_block
from web.ui.markdown.code import highlighted

OUT = 'rel="noopener noreferrer nofollow" target="_blank"'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("# A *b*", "<h1>A <em>b</em></h1>"),
        ("a\nb  \nc", "<p>a\nb<br>c</p>"),
        ("a<br>b <b>c</b>", "<p>a<br>b &lt;b&gt;c&lt;/b&gt;</p>"),
        ("~~a~~", "<p><s>a</s></p>"),
        ("[a](http://x.y 'T')", f'<p><a href="http://x.y" title="T" {OUT}>a</a></p>'),
        ("<http://x.y>", f'<p><a href="http://x.y" {OUT}>http://x.y</a></p>'),
        ("www.x.y.com", f'<p><a href="http://www.x.y.com" {OUT}>www.x.y.com</a></p>'),
        ("readme.md and a.com", "<p>readme.md and a.com</p>"),
        ("me@x.org", f'<p><a href="mailto:me@x.org" {OUT}>me@x.org</a></p>'),
        (
            "![alt](https://u.v/w.png)",
            f'<p><a class="image-link" href="https://u.v/w.png" {OUT}>'
            "alt <small>u.v</small></a></p>",
        ),
        ("- a\n- b", "<ul><li>a</li><li>b</li></ul>"),
        ("3. a\n\n4. b", '<ol start="3"><li><p>a</p></li><li><p>b</p></li></ol>'),
        (
            "- [x] a\n- [ ] b",
            '<ul><li class="task"><input type="checkbox" disabled checked aria-label="Done"> a</li>'
            '<li class="task"><input type="checkbox" disabled aria-label="To do"> b</li></ul>',
        ),
        (
            "|a|b|\n|-|-:|\n|1|2|",
            '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table><thead><tr>'
            '<th>a</th><th class="align-right">b</th></tr></thead><tbody><tr><td>1</td>'
            '<td class="align-right">2</td></tr></tbody></table></div>',
        ),
        (
            "```nosuch\na < b\n```",
            '<div class="code"><header><span>nosuch</span><button type="button" class="btn quiet"'
            ' data-copy>Copy</button></header><pre tabindex="0"><code class="language-nosuch">'
            "a &lt; b\n</code></pre></div>",
        ),
        ("it costs $5 and $6, or 7$", "<p>it costs $5 and $6, or 7$</p>"),
        ("US$5 to US$6", "<p>US$5 to US$6</p>"),
        ("> a\nb", "<blockquote><p>a\nb</p></blockquote>"),
        ("---", "<hr>"),
    ],
)
def test_a_construct_becomes_its_html(text: str, html: str) -> None:
    assert render(text) == html


@pytest.mark.parametrize("text", ["$x^2$", "$$x^2$$", "\\(x^2\\)", "\\[x^2\\]", "$$\nx^2\n$$"])
def test_math_becomes_mathml(text: str) -> None:
    assert "<msup><mi>x</mi><mn>2</mn></msup>" in render(text)


def test_a_formula_that_is_not_understood_is_shown_as_its_source() -> None:
    assert render("$\\frac$") == '<p><code class="math-source">\\frac</code></p>'
    assert render("$$" + "x+" * 400 + "$$").startswith('<p><code class="math-source">x+x+')


def test_known_languages_are_highlighted_by_classes_and_long_code_is_not() -> None:
    assert '<span class="k">def</span>' in render("```python\ndef f(): pass\n```")
    assert "<span class=" not in render("```python\n" + "def f(): pass\n" * 1000 + "```")


def test_a_block_beyond_the_limits_is_shown_as_it_stands_up_to_a_blank_line() -> None:
    html = render("> *a*\n" * 1000 + "\n*b*\n")
    assert html.startswith('<p class="literal">&gt; *a*')
    assert html.endswith("<p><em>b</em></p>")
    assert html.count("*a*") == 1000


def test_deep_nesting_loses_no_text() -> None:
    assert "deep" in render(">" * 400 + " deep")
    assert "deep" in render("- " * 100 + "deep")


def test_an_open_code_block_is_not_highlighted_until_it_is_closed() -> None:
    stream = MarkdownStream()
    stream.feed("```python\ndef f(): pass\n")
    (block,) = stream.settle()
    assert isinstance(block, Block)
    assert "<span class=" not in render_block(block).before
    stream.feed("```\n")
    (block,) = stream.settle()
    assert isinstance(block, Block)
    assert '<span class="k">' in render_block(block).before


@pytest.mark.anyio
async def test_code_is_highlighted_in_a_thread_before_its_block_is_rendered() -> None:
    block = Block("0", None, "fence", 'val x = List(1, 2).map(_ + 1) // "x"\n' * 150, info="kotlin")
    thread, process = time.thread_time(), time.process_time()
    await prepare_block(block)
    here = time.thread_time() - thread
    assert here < (time.process_time() - process) / 2
    known = highlighted.cache_info().hits
    assert '<span class="' in render_block(block).before
    assert highlighted.cache_info().hits == known + 1


def test_a_block_renders_the_same_with_and_without_what_is_remembered() -> None:
    text = "Some **bold** text and [a link](http://x.y), " * 20
    pieces = [render(text[:end], Limits()) for end in range(0, len(text), 7)]
    assert pieces == [render(text[:end], Limits()) for end in range(0, len(text), 7)]
