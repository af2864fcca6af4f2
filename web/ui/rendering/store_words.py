"""What the page says of where chats are kept, and what that survives."""

from __future__ import annotations

STORE_WORDS = {
    "memory": "Chats are kept in the memory of this server. A refresh, a closed tab or a lost "
    "network lose nothing; a restart of the server ends them.",
    "sqlite": "Chats are kept in a database on the server's disk: they outlive a restart. An "
    "answer that is being written when the server is killed stays incomplete, and can be asked "
    "for again.",
    "postgresql": "Chats are kept in a PostgreSQL database: they outlive a restart, and other "
    "servers on the same database show them too. An answer that is being written when its server "
    "is killed stays incomplete, and can be asked for again.",
}
"""What becomes of chats, by the kind of store."""

DURABLE_WORDS = {
    **STORE_WORDS,
    "sqlite": "Chats are kept in a database on the server's disk: they outlive a restart, and an "
    "answer that is being written when the server is killed goes on after it{asked}.",
    "postgresql": "Chats are kept in a PostgreSQL database: they outlive a restart, and other "
    "servers on the same database show them too. An answer that is being written when its server "
    "is killed goes on{asked}, there or on another server.",
}
"""The same where runs are written down; at `asked` stands who has one go on, if it is a person."""


def store_words(kind: str, *, written_down: bool, asks: bool) -> str:
    """Of a kind of store, whether runs are written down at each step, and whether a person is asked
    before one goes on that was cut off."""
    if not written_down:
        return STORE_WORDS[kind]
    return DURABLE_WORDS[kind].format(asked=" once you say so" if asks else "")
