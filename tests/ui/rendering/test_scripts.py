"""The page's script is one file, made of modules that can be read one by one."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from web.paths import static_dir
from web.ui.rendering.scripts import joined, script_route, style_route

TOP_LEVEL = re.compile(
    r"^(?:export )?(?:async )?(?:function|class|const|let) ([A-Za-z_$][\w$]*)", re.MULTILINE
)


def test_a_module_stands_once_and_after_those_that_it_needs(tmp_path: Path) -> None:
    (tmp_path / "app.js").write_text(
        'import { b } from "./b.js";\nimport {\n  c,\n} from "./c.js";\nb(c);\n'
    )
    (tmp_path / "b.js").write_text('import { c } from "./c.js";\nexport const b = () => c;\n')
    (tmp_path / "c.js").write_text("export async function c() {}\nconst exported = 1;\n")
    assert " ".join(joined(tmp_path, "app").split()) == (
        "async function c() {} const exported = 1; const b = () => c; b(c);"
    )


def test_the_script_of_the_page_is_whole() -> None:
    script = joined(static_dir(), "app")
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE)
    modules = list(static_dir().glob("*.js"))
    assert modules
    for module in modules:
        last = module.read_text(encoding="utf-8").splitlines()[-1]
        assert last in script, f"{module.name} is not in the script"


def test_no_name_is_taken_twice() -> None:
    """The modules share one scope once they are joined."""
    names = Counter(TOP_LEVEL.findall(joined(static_dir(), "app")))
    assert [name for name, count in names.items() if count > 1] == []


def test_the_script_is_served_without_its_comments_and_with_all_else(tmp_path: Path) -> None:
    (tmp_path / "app.js").write_text(
        "// About it.\n\n/** What\n * it does. */\nexport function a() {\n  // Why.\n"
        '  return "http://a/"; // what\n}\n/** One line. */\na(/x/);\n'
    )
    client = TestClient(Starlette(routes=[script_route(tmp_path)]))
    assert client.get("/static/app.js").text.split("\n") == [
        *("", "function a() {", '  return "http://a/"; // what', "}", "a(/x/);", "")
    ]
    served = TestClient(Starlette(routes=[script_route(static_dir())])).get("/static/app.js").text
    assert not re.search(r"^ *(//|/\*)", served, re.MULTILINE)


@pytest.mark.parametrize("tag", ["", '"other"'])
def test_the_script_is_served_once_and_then_asked_about(tag: str) -> None:
    client = TestClient(Starlette(routes=[script_route(static_dir())]))
    answer = client.get("/static/app.js", headers={"if-none-match": tag})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/javascript")
    again = client.get("/static/app.js", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_style_of_the_page_is_whole() -> None:
    client = TestClient(Starlette(routes=[style_route(static_dir())]))
    answer = client.get("/static/app.css")
    assert answer.headers["content-type"].startswith("text/css")
    assert "@import" not in answer.text
    assert "/*" not in answer.text
    sheets = list(static_dir().glob("*.css"))
    assert len(sheets) > 1
    for sheet in sheets:
        last = sheet.read_text(encoding="utf-8").splitlines()[-2]
        assert last in answer.text, f"{sheet.name} is not in the style"
