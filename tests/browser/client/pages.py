"""The HTML of the scripted pages: plain, with the attributes that the page contract names."""

from __future__ import annotations

from collections.abc import Callable
from html import escape

STYLE = """
html, body { height: 100%; margin: 0 }
body { display: flex; flex-direction: column }
[data-log] { height: 400px; overflow: auto }
.wide { width: 300px; overflow-x: auto; white-space: pre }
[hidden] { display: none !important }
"""

_CONFIG = (
    '{"allowEval":false,"includeIndicatorStyles":false,"allowScriptTags":false,'
    '"historyCacheSize":0,"responseHandling":[{"code":"204","swap":false},'
    '{"code":"[23]..","swap":true},{"code":"[45]..","swap":true,"error":true}]}'
)

_WORDS = "<p><strong data-message>{}</strong> <span data-hint></span></p>"


def form(action: str, inside: str, more: str = "") -> str:
    """A form as all of the page are: posted by htmx, its errors shown in itself."""
    return (
        f'<form method="post" action="{action}" hx-post="{action}" hx-swap="innerHTML"'
        f' hx-target="find [data-error]" {more}><div data-error></div>{inside}</form>'
    )


def chat_page(
    chat: str,
    epoch: str,
    version: int,
    beat: float,
    region: Callable[[str, str], str],
    draft: str = "",
) -> str:
    def slot(channel: str, name: str, tag: str = "div") -> str:
        inside = region(channel, name)
        return f'<{tag} data-channel="{channel}" data-slot="{name}">{inside}</{tag}>'

    action = f"/chats/{chat}/messages" if chat else "/chats"
    kept = f'data-draft="/chats/{chat}/draft"' if chat else ""
    composer = form(
        action,
        '<input type="hidden" name="request_id" value="from-the-page">'
        '<input type="hidden" name="draft">'
        f'<textarea name="text" {kept}>\n{escape(draft)}</textarea><button>Send</button>',
        "data-composer",
    )
    regions = f"""{slot(chat, "head")}
<div role="log" data-log tabindex="0" aria-busy="false">{slot(chat, "log")}</div>
{slot(chat, "queue", "ul")}{slot(chat, "status")}"""
    templates = "".join(
        f'<template data-template="{name}">{_WORDS.format(words)}{more}</template>'
        for name, words, more in (
            ("gone", "Deleted.", '<a href="/" data-take-draft>New chat</a>'),
            ("restarted", "Restarted.", '<a href="/" data-take-draft>New chat</a>'),
            ("offline", "No connection.", "<button data-retry>Try now</button>"),
            ("stalled", "Updates every few seconds.", "<button data-retry>Try now</button>"),
        )
    )
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>A chat · harness-web</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/test.css">
<meta name="htmx-config" content='{_CONFIG}'>
<script src="/static/htmx/htmx.min.js" defer></script>
<script src="/static/app.js" type="module"></script></head>
<body data-epoch="{epoch}" data-version="{version}" data-chat="{chat}" data-beat-seconds="{beat}">
<a class="new" href="/">New chat</a>
{slot("chats", "chats", "ul")}{slot("chats", "undo")}
<div data-banner role="status" hidden></div>
{regions if chat else ""}
<button type="button" data-jump hidden>Jump to latest</button>
{composer}
<div data-theme-switch hidden><button type="button" data-theme-choice="auto">Auto</button>
<button type="button" data-theme-choice="dark">Dark</button></div>
<dialog data-dialog><form method="post" hx-swap="innerHTML" hx-target="find [data-error]">
<b data-dialog-title></b><div data-error></div><button data-dialog-yes>Delete</button>
<button type="button" data-dialog-no>Keep it</button></form></dialog>
{templates}</body></html>"""
