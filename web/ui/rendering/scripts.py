"""The page's script and style: files that can be read one by one and travel as one."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z]+)\.js";\n', re.MULTILINE)
_STYLE_IMPORT = re.compile(r'^@import "\./([a-z]+)\.css";\n', re.MULTILINE)
_COMMENT = re.compile(r"\s*/\*.*?\*/", re.DOTALL)
_REMARK = re.compile(r"^ *(?://[^\n]*|/\*\*.*?\*/)\n", re.DOTALL | re.MULTILINE)
"""Lines of a script that are a comment and nothing else."""
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)


def script_route(folder: Path) -> Route:
    """Serves `app.js` of a folder, with all that it imports, at `/static/app.js`.

    Every module would cost the first page a request. They are joined at start: no name at the top
    level of one may be at the top level of another. Without lines of comments: the first page has
    few bytes to spare.
    """
    return _route("/static/app.js", _REMARK.sub("", joined(folder, "app")), "text/javascript")


def style_route(folder: Path) -> Route:
    """Serves `app.css` of a folder, with what it imports in place, at `/static/app.css`.

    Without comments, as the script.

    Its layers have their order from its first line, so an import may stand anywhere.
    """

    def imported(match: re.Match[str]) -> str:
        return (folder / f"{match[1]}.css").read_text(encoding="utf-8")

    style = _STYLE_IMPORT.sub(imported, (folder / "app.css").read_text(encoding="utf-8"))
    return _route("/static/app.css", _COMMENT.sub("", style), "text/css")


def _route(path: str, text: str, media_type: str) -> Route:
    content = text.encode()
    tag = f'"{hashlib.sha256(content).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    async def serve(request: Request) -> Response:
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=media_type, headers=headers)

    return Route(path, serve)


def joined(folder: Path, entry: str) -> str:
    """The module `entry` after those that it imports, as one module."""
    modules: dict[str, str] = {}

    def add(name: str) -> None:
        if name in modules:
            return
        source = (folder / f"{name}.js").read_text(encoding="utf-8")
        modules[name] = ""
        for imported in _IMPORT.findall(source):
            add(imported)
        # Taken out and put in again: after those that it needs.
        del modules[name]
        modules[name] = _EXPORT.sub("", _IMPORT.sub("", source))

    add(entry)
    return "\n".join(modules.values())
