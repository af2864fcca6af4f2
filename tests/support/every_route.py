"""A request for every method of every route, by ids of what the owner in `two_people` has."""

from __future__ import annotations

from tests.support.two_people import Row

SKILL = b"---\nname: theirs\ndescription: Of a stranger.\n---\n\nText.\n"
_FILE = ("files", "theirs.txt", b"text")

PAGES = (
    Row("GET", "/", "own"),
    Row("GET", "/?from={chat}", "same"),
    Row("GET", "/chats", "own"),
    Row("POST", "/more-chats", "own", form={}),
    Row("GET", "/chats/{chat}"),
    Row("GET", "/chats/{chat}/delete"),
    Row("GET", "/sign-in", "open", real=False),
    Row("POST", "/sign-in", "open", form={"token": "x"}, real=False),
    Row("POST", "/sign-out", "own", form={}, real=False),
    Row("GET", "/chats/{asking}/approvals/{approval}"),
    Row("GET", "/stream?channels=chats,{chat}&after=ab12:0", "same"),
    Row("GET", "/changes?channels={chat}&after=ab12:0", "same"),
    Row("GET", "/changes?channels=chats&after=ab12:0", "own"),
    Row("GET", "/oauth/callback?{callback}", "own"),
    Row("GET", "/oauth/outcome/{outcome}", "same", real=False),
    Row("GET", "/oauth/client-metadata.json", "open", real=False),
    Row("GET", "/static/app.js", "open"),
    Row("GET", "/static/app.css", "open"),
    Row("GET", "/static/live.js", "open"),
    Row("GET", "/static/htmx/htmx.min.js", "open"),
)

FORMS = (
    Row("POST", "/chats", "own", form={"text": "Hi", "request_id": "{request}"}),
    Row("POST", "/chats/with-demo-server", "own", form={}),
    Row("POST", "/chats/commands", "own", form={"command": "skill {skill}"}),
    Row("POST", "/chats/with-files", "own", form={"request_id": "{request}"}, files=_FILE),
    Row("POST", "/chats/from-snapshot", "own", form={}, files=("file", "a.json", b"{}")),
    Row("POST", "/chats/{deleted}/restore", form={}),
    Row("POST", "/chats/{chat}/messages", form={"text": "Hi"}),
    Row("POST", "/chats/{asking}/approvals/{approval}", form={"decision": "deny"}),
    Row("POST", "/chats/{asking}/inputs/{approval}", form={"action": "decline"}),
    Row("POST", "/chats/{asking}/queue/{waiting}/take-back", form={}),
    Row("POST", "/chats/{asking}/stop", form={"run_id": "{asking_run}"}),
    Row("POST", "/chats/{chat}/retry", form={"run_id": "{run}"}),
    Row("POST", "/chats/{chat}/grants/{tool}/revoke", form={}),
    Row("POST", "/chats/{chat}/settings", form={"title": "Theirs"}),
    Row("POST", "/chats/{chat}/draft", form={"text": "Theirs"}),
    Row("POST", "/chats/{chat}/attachments/{attachment}/remove", form={}),
    Row("POST", "/chats/{chat}/commands", form={"command": "skill {skill}"}),
    Row("POST", "/chats/{chat}/uploads", form={}, files=_FILE),
    Row("GET", "/chats/{chat}/snapshot"),
    Row("GET", "/chats/{chat}/blobs/{blob}"),
)

# Where nothing is written down there are no steps, and nothing to go on with.
RUNS = (
    Row("GET", "/chats/{chat}/runs/{run}/steps", real=False),
    Row("GET", "/chats/{chat}/runs/{run}/export", real=False),
    Row("POST", "/chats/{asking}/recoveries/{approval}", form={"how": "retry"}, real=False),
    Row("POST", "/chats/{chat}/runs/{run}/resume", form={}, real=False),
    Row("POST", "/chats/{chat}/runs/{run}/leave", form={}, real=False),
    Row("POST", "/chats/{chat}/runs/{run}/pause", form={}, real=False),
    Row("POST", "/chats/{chat}/runs/{run}/fork", form={"step": "1"}, real=False),
    Row("GET", "/opened-runs/{opened}"),
    Row("POST", "/api/opened-runs", "own", files=("file", "a.json", b"{}")),
    Row("GET", "/api/opened-runs/{opened}/steps"),
    Row("GET", "/api/runs/{run}/steps"),
    Row("GET", "/api/runs/{run}/export", real=False),
    Row("POST", "/api/runs/{run}/fork", sent={"step": 1}, real=False),
    Row("POST", "/api/runs/{run}/resume", real=False),
    Row("POST", "/api/runs/{run}/leave", real=False),
    Row("POST", "/api/runs/{run}/pause", real=False),
    Row("POST", "/api/runs/{run}/recoveries/{approval}", sent={"how": "retry"}, real=False),
)

SERVERS = (
    Row("GET", "/chats/{chat}/servers/{host}/resources?q=today"),
    Row("POST", "/chats/{chat}/servers/{host}/resources", form={"ref": "{resource}", "do": "read"}),
    Row("POST", "/chats/{chat}/servers/{host}/templates", form={"do": "read"}, real=False),
    Row("POST", "/chats/{chat}/servers/{host}/prompts", form={}, real=False),
    Row("POST", "/chats/{chat}/servers/{host}/completions?kind=prompt", form={}, real=False),
    Row("POST", "/chats/{chat}/tools/{tool}/switch", form={}),
    Row("POST", "/chats/{chat}/servers", form={"target": "http://127.0.0.1:9/mcp"}),
    Row("POST", "/chats/{chat}/servers/demo", form={}),
    Row("POST", "/chats/{chat}/proposals/{server}/start", form={}, real=False),
    Row("POST", "/chats/{chat}/proposals/{server}/dismiss", form={}),
    Row("POST", "/chats/{chat}/servers/{server}/sign-in", form={}),
    Row("POST", "/chats/{chat}/servers/{server}/sign-in/cancel", form={}),
    Row("POST", "/chats/{chat}/servers/{server}/sign-out", form={}),
    Row("POST", "/chats/{chat}/servers/{server}/retry", form={}),
    Row("GET", "/api/chats/{chat}/servers"),
    Row("POST", "/api/chats/{chat}/servers", sent={"url": "http://127.0.0.1:9/mcp", "name": "x"}),
    Row("POST", "/chats/{chat}/servers/{server}/disconnect", form={}),
    Row("DELETE", "/api/chats/{chat}/servers/{host}"),
)

FILES = (
    Row("GET", "/chats/{chat}/files"),
    Row("GET", "/chats/{chat}/files.zip"),
    Row("GET", "/chats/{chat}/files/{file}"),
    Row("GET", "/chats/{chat}/raw/{file}"),
    Row("GET", "/chats/{chat}/framed/{file}"),
    Row("GET", "/api/chats/{chat}/files"),
    Row("GET", "/api/chats/{chat}/files/{file}"),
    Row("POST", "/chats/{chat}/restore-file", form={"path": "{gone_file}", "version": "1"}),
    Row("POST", "/chats/{chat}/delete-file", form={"path": "{file}"}),
    Row("POST", "/chats/{chat}/purge-file", form={"path": "{file}"}),
    Row("DELETE", "/api/chats/{chat}/files/{gone_file}"),
)

SKILLS = (
    Row("GET", "/chats/{chat}/skills/{skill}/files/SKILL.md"),
    Row("GET", "/chats/{chat}/skills/{skill}/edit"),
    Row("GET", "/api/chats/{chat}/skills"),
    Row("GET", "/api/chats/{chat}/skills/{skill}"),
    Row("GET", "/api/chats/{chat}/skills/{skill}/files/SKILL.md"),
    Row("GET", "/api/chats/{chat}/deleted-skills"),
    Row("POST", "/chats/{chat}/skills", form={}, files=("file", "a.md", SKILL)),
    Row("POST", "/api/chats/{chat}/skills", files=("file", "a.md", SKILL)),
    Row("POST", "/chats/{chat}/skills/{skill}/switch", form={"on": "yes"}),
    Row("POST", "/chats/{chat}/skills/{skill}/edit", form={"text": "Theirs"}),
    Row("PATCH", "/api/chats/{chat}/skills/{skill}", sent={"on": True}),
    Row("POST", "/api/chats/{chat}/deleted-skills/{gone_skill}/restore"),
    Row("POST", "/chats/{chat}/skills/{skill}/delete", form={}),
    Row("POST", "/chats/{chat}/skills/restore", form={"name": "zanzibar", "origin": "upload"}),
    Row("DELETE", "/api/chats/{chat}/skills/{skill}"),
)

MEMORIES = (
    Row("GET", "/chats/{chat}/memories"),
    Row("GET", "/chats/{chat}/memories/{memory}"),
    Row("GET", "/api/chats/{chat}/memories"),
    Row("GET", "/api/chats/{chat}/memories/{memory}"),
    Row("POST", "/chats/{chat}/memories", form={"text": "Theirs"}),
    Row("POST", "/api/chats/{chat}/memories", sent={"text": "Theirs too"}),
    Row("PATCH", "/api/chats/{chat}/memories", sent={"on": True}),
    Row("POST", "/chats/{chat}/memories/switch", form={"on": "yes"}),
    Row("POST", "/chats/{chat}/memories/{memory}", form={"text": "Theirs", "seen": "x"}),
    Row("PATCH", "/api/chats/{chat}/memories/{memory}", sent={"text": "Theirs", "seen": "x"}),
    Row("POST", "/api/chats/{chat}/memories/{gone_memory}/restore"),
    Row("POST", "/chats/{chat}/memories/{memory}/forget", form={}),
    Row("POST", "/chats/{chat}/memories/restore", form={"ref": "{memory}"}),
    Row("DELETE", "/api/chats/{chat}/memories/{memory}"),
)

CHATS = (
    Row("GET", "/api/health", "own"),
    Row("GET", "/api/openapi.json", "own"),
    Row("GET", "/api/chats", "own"),
    Row("POST", "/api/chats", "own", sent={"request_id": "{request}"}),
    Row("POST", "/api/chats/from-snapshot", "own", files=("file", "a.json", b"{}")),
    Row("GET", "/api/chats/{chat}"),
    Row("GET", "/api/chats/{chat}/snapshot"),
    Row("PATCH", "/api/chats/{chat}", sent={"title": "Theirs"}),
    Row("POST", "/api/chats/{chat}/messages", sent={"text": "Hi"}),
    Row("POST", "/api/chats/{deleted}/restore"),
    Row("GET", "/api/runs/{run}"),
    Row("GET", "/api/runs/{run}/events"),
    Row("GET", "/api/runs/{asking_run}/approvals/{approval}"),
    Row("POST", "/api/runs/{asking_run}/approvals/{approval}", sent={"decision": "deny"}),
    Row("POST", "/api/runs/{asking_run}/inputs/{approval}", sent={"action": "decline"}),
    Row("POST", "/api/runs/{asking_run}/stop"),
    Row("POST", "/api/runs/{run}/retry"),
    Row("POST", "/chats/{doomed}/delete", form={}),
    Row("DELETE", "/api/chats/{lost}"),
)

ROWS = (*PAGES, *FORMS, *RUNS, *SERVERS, *FILES, *SKILLS, *MEMORIES, *CHATS)
"""In an order in which the owner can ask for each: what ends something comes last."""
