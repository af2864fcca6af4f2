"""What has been handed out of a text, and what has to be handed out next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from .blocks import Block, Removed
from .references import mentions, resolved

_PLAIN = frozenset({"fence", "code", "lines", "literal", "text"})


class Ledger:
    """Keeps definitions, the blocks that wait for one, and the queue of changes."""

    def __init__(self) -> None:
        self.definitions: dict[str, tuple[str, str]] = {}
        self._live: dict[str, Block] = {}
        self._local: Mapping[str, tuple[str, str]] = {}
        self._queue: dict[str, Block | Removed] = {}
        self._out: set[str] = set()
        self._waiting: dict[str, dict[str, None]] = {}
        self._kept: dict[str, Block] = {}
        self._children: dict[str, dict[str, None]] = {}
        self._stale: dict[str, None] = {}
        self._tops = 0

    @property
    def queued(self) -> bool:
        """Whether there are changes to take."""
        return bool(self._queue or self._stale)

    def publish(
        self,
        closed: Iterable[Block],
        live: Iterable[Block],
        local: Mapping[str, tuple[str, str]],
        gone: Iterable[str] = (),
        again: bool = False,
    ) -> None:
        """Replace what was live by `closed`, which is final, and `live`.

        `local`: definitions in the open part, which may yet turn out to be none: only what is live
        goes by them. `gone`: keys of closed blocks that are withdrawn. `again`: hand out every one
        of `closed`, changed or not, because their shell changed.
        """
        before = self._live
        done = [self._resolve(block, {}) for block in closed]
        now = {block.key: self._resolve(block, local) for block in live}
        final = {block.key for block in done}
        lost = [*gone, *(key for key in before if key not in now and key not in final)]
        for key in reversed(lost):
            if key not in now and key not in final:
                self._put(key, Removed(key))
            self._kept.pop(key, None)
        shells: set[str | None] = set()
        for block in sorted((*done, *now.values()), key=_place):
            if again or before.get(block.key) != block or block.parent in shells:
                self._put_family(block)
                if block.shell:
                    shells.add(block.key)
        self._live = now
        headers = {
            block.key: block
            for block in (*done, *now.values())
            if block.kind == "table" and "]" in block.source
        }
        for block in done:
            if block.parent in headers:
                self._children.setdefault(block.parent, {})[block.key] = None
                self._kept[block.key] = block
            self._wait(block)
        tops = (int(block.key) + 1 for block in done if block.parent is None)
        self._tops = max(self._tops, *tops, 0)
        self._local = local

    def abandon(self) -> int:
        """Close a shell that is open and withdraw what else is live; the next block's number."""
        shells = [block for block in self._live.values() if block.shell]
        self.publish(shells, [], {})
        return self._tops

    def grow(self, block: Block) -> None:
        """Replace a live block by a longer one of the same key."""
        block = self._resolve(block, self._local)
        if self._live[block.key] != block:
            self._live[block.key] = block
            self._put(block.key, block)

    def define(self, found: Mapping[str, tuple[str, str]]) -> None:
        """Make definitions known to all blocks; the first one of a label stays.

        One label may stand in every block of a long text: they follow in `take`, a few at a time.
        """
        for label, definition in found.items():
            if label not in self.definitions:
                self.definitions[label] = definition
                self._stale.update(self._waiting.pop(label, {}))

    def take(self, most: int) -> list[Block | Removed]:
        """The next changes, in all about `most` characters of source."""
        taken: list[Block | Removed] = []
        while most > 0 and self.queued:
            key = next(iter(self._queue or self._stale))
            if key not in self._queue:
                most -= self._refresh(key)
                continue
            change = self._queue.pop(key)
            taken.append(change)
            if isinstance(change, Removed):
                self._out.discard(key)
                most -= 16
            else:
                self._out.add(key)
                most -= 64 + len(change.source)
        return taken

    def _refresh(self, key: str) -> int:
        """Queue a final block if definitions changed it; how many characters were looked at."""
        del self._stale[key]
        block = self._kept.get(key)
        if block is None:
            return 1
        changed = replace(block, references=resolved(mentions(block.source), self.definitions))
        if changed != block:
            self._kept[key] = changed
            self._put_family(changed)
        return len(block.source)

    def _put(self, key: str, change: Block | Removed) -> None:
        self._queue.pop(key, None)
        if isinstance(change, Block) or key in self._out:
            self._queue[key] = change

    def _put_family(self, block: Block) -> None:
        """Queue a block and, after a table's header, those of its rows that are final."""
        self._put(block.key, block)
        for key in self._children.get(block.key, ()):
            if key in self._kept:
                self._put(key, self._kept[key])

    def _resolve(self, block: Block, local: Mapping[str, tuple[str, str]]) -> Block:
        if block.kind in _PLAIN or "]" not in block.source:
            return block
        if not local and not self.definitions:
            return block
        references = resolved(mentions(block.source), self.definitions, local)
        return replace(block, references=references) if references else block

    def _wait(self, block: Block) -> None:
        """Remember a final block as long as a label it mentions is not defined."""
        if block.kind in _PLAIN or "]" not in block.source:
            return
        for label in mentions(block.source):
            if label not in self.definitions:
                self._waiting.setdefault(label, {})[block.key] = None
                self._kept[block.key] = block


def _place(block: Block) -> list[int]:
    """Sorts blocks into the order of the text, a shell before its children."""
    return [int(number) for number in block.key.split("-")]
