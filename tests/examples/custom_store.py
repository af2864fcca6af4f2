"""A session store of one's own."""

from __future__ import annotations

# begin
import asyncio
import json
from collections.abc import MutableMapping

from web import harness
from web.harness import HarnessIdentity, SessionSnapshot


class MappingStore(harness.ProcessSessionStore):
    """Texts in a dict, in a shelf, or at the client of a key-value server."""

    def __init__(self, texts: MutableMapping[str, str]) -> None:
        super().__init__()
        self.texts = texts

    async def load(self, identity: HarnessIdentity, session_id: str) -> SessionSnapshot | None:
        text = self.texts.get(key(identity, session_id))
        return harness.snapshot_from_json(json.loads(text)) if text else None

    async def keep(
        self, identity: HarnessIdentity, session_id: str, snapshot: SessionSnapshot | None
    ) -> None:
        if snapshot is None:
            self.texts.pop(key(identity, session_id), None)
        else:
            form = harness.snapshot_to_json(snapshot)
            self.texts[key(identity, session_id)] = json.dumps(form)

    async def ids(self, identity: HarnessIdentity) -> list[str]:
        whose = [identity.tenant_id, identity.user_id]
        return [name for *owner, name in map(json.loads, self.texts) if owner == whose]


def key(identity: HarnessIdentity, session_id: str) -> str:
    return json.dumps([identity.tenant_id, identity.user_id, session_id])


# end


async def main() -> None:
    texts: dict[str, str] = {}
    store = MappingStore(texts)
    async with await store.acquire(harness.LOCAL_IDENTITY, "s") as lease:
        await lease.import_legacy([{"role": "user", "content": "hello"}])
    async with await store.acquire(harness.LOCAL_IDENTITY, "s") as lease:
        kept = await lease.read()
    print(kept.history[0].text, kept.revision, kept.replayable)
    print(await store.list(harness.LOCAL_IDENTITY))


if __name__ == "__main__":
    asyncio.run(main())
