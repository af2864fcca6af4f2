"""The page's script: modules that lie in files of their own and travel as one."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_IMPORT = re.compile(r'^import \{[^}]*\} from "\./([a-z]+)\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let) )", re.MULTILINE)


def script_route(folder: Path) -> Route:
    """Serves `app.js` of a folder, with all that it imports, at `/static/app.js`.

    Every module would cost the first page a request. They are joined at start, as they are: no
    name at the top level of one may be at the top level of another.
    """
    script = joined(folder, "app").encode()
    tag = f'"{hashlib.sha256(script).hexdigest()[:20]}"'
    headers = {"ETag": tag, "Cache-Control": "no-cache"}

    async def serve(request: Request) -> Response:
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(script, media_type="text/javascript", headers=headers)

    return Route("/static/app.js", serve)


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
