"""A page for a frame keeps its looks and loses what leads or loads from anywhere."""

from __future__ import annotations

import re

import pytest

from web.ui.layouts.framed_html import inert_page

OUT = "http://elsewhere.example/"


def inner(html: str) -> str:
    page = inert_page(html)
    assert page is not None
    return page.partition("<body")[2].partition(">\n")[2].removesuffix("</body></html>")


LEADING = (
    f'<a href="{OUT}">w</a>', f"<A HREF={OUT} target=_top ping={OUT} download>w</A>",
    f'<a href=" {OUT}">w</a>', '<a href="&#x68;ttp://elsewhere.example">w</a>',
    '<a href="//elsewhere.example">w</a>', '<a href="/chats">w</a>', '<a href="?q">w</a>',
    '<a href="">w</a>', '<a href="javascript:alert(1)">w</a>', '<a href="data:text/html,x">w</a>',
    f'<map name=m><area shape=default href="{OUT}"></map>w<img usemap="#m">',
    f'<form action="{OUT}"><button formaction="{OUT}">w</button></form>',
    f'<input type=image src="{OUT}" formaction="{OUT}">w',
    f'<meta http-equiv="refresh" content="0;url={OUT}">w', f'<base href="{OUT}">w',
    f'<link rel=preconnect href="{OUT}">w', f'<link rel="dns-prefetch" href="{OUT}">w',
    f'<svg><a xlink:href="{OUT}"><text>w</text></a></svg>',
    f'<svg><a><animate attributeName="href" values="{OUT}"/><text>w</text></a></svg>',
    f'<svg><a><set attributeName="XLink:HREF" to="{OUT}"/><text>w</text></a></svg>',
    f'<svg><use href="{OUT}#a"/><image href="{OUT}"/><text>w</text></svg>',
    f'<math href="{OUT}"><mi href="{OUT}">w</mi></math>',
    f'<img src="{OUT}" srcset="{OUT} 2x" lowsrc="{OUT}">w', f'<video src="{OUT}" poster="{OUT}">w',
    f'<table background="{OUT}"><tr><td>w</table>', f'<iframe src="{OUT}"></iframe>w',
    f'<object data="{OUT}">w</object>', f'<embed src="{OUT}">w', f'<portal src="{OUT}">w',
    f'<fencedframe src="{OUT}">w', f'<script src="{OUT}"></script>w', f'<blockquote cite="{OUT}">w',
    # What is read in two ways.
    f'<svg></p><style><a id="</style><a href={OUT}>w</a>">', f'<a/href="{OUT}"x>w</a>',
    f'<math><mtext><table><mglyph><style><!--</style><a href="{OUT}">w</a>--></style></table>w',
    f'<noscript><p title="</noscript><a href={OUT}>w</a>">', f'<!--><a href="{OUT}">w</a>-->w',
    f'<template><a href="{OUT}">w</a></template>w', f'<xmp><a href="{OUT}">w</a></xmp>w',
    f'<frameset onload=x><frame src="{OUT}"></frameset>w', f'<plaintext><a href="{OUT}">w',
)  # fmt: skip


@pytest.mark.parametrize("html", LEADING)
def test_nothing_leads_or_loads_from_elsewhere(html: str) -> None:
    made = inner(html)
    text = re.sub(r"<style>.*?</style>", "", made)
    for tag in re.findall(r"<[^>]*>", text):
        assert "elsewhere" not in tag, made
        assert not re.search(r"\b(href|src|action|on\w+)=", tag), made
    assert "w" in made


KEPT = (
    '<a href="#part">on this page</a><h2 id="part">Part</h2>',
    '<p class="a b" style="color:red" data-x="1" aria-label="l" dir="rtl">x</p>',
    "<style>p > a, .x::before { content: '<'; background: url(data:image/png;base64,AA) }</style>",
    '<img src="data:image/png;base64,AA" alt="a" width="3">',
    '<table border="1"><tbody><tr><td colspan="2">x</td></tr></tbody></table>',
    '<svg viewBox="0 0 9 9"><linearGradient id="g" gradientUnits="userSpaceOnUse"><stop offset="1">'
    '</stop></linearGradient><path fill="url(#g)"></path><use xlink:href="#g"></use></svg>',
    '<svg><circle r="1"><animate attributeName="r" values="1;2" dur="1s"></animate></circle></svg>',
    '<details open=""><summary>s</summary>t</details><ruby>a<rt>b</rt></ruby>',
    "<math><mfrac><mi>a</mi><mn>2</mn></mfrac></math>",
)


@pytest.mark.parametrize("html", KEPT)
def test_looks_stay(html: str) -> None:
    assert inner(html) == html


def test_the_page_as_a_whole_keeps_its_looks_and_its_rules() -> None:
    page = inert_page(
        '<!DOCTYPE html><html lang="de" manifest="x"><head><title>T</title></head>'
        '<body class="dark" style="margin:0" onload="x()" background="http://x">Hi'
    )
    assert page is not None
    assert page.startswith('<!doctype html>\n<html lang="de"><head><meta charset="utf-8">')
    assert page.endswith('<body class="dark" style="margin:0">\nHi</body></html>')
    old = inert_page('<body bgcolor="#000"><b>">Hi')
    assert old is not None
    assert "doctype" not in old
