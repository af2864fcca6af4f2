"""Files that a person puts in are told apart by their content, kept, and attached."""

from __future__ import annotations

import zipfile
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest

from tests.support.chat_room import ChatRoom, chat_room, log_of
from tests.support.pictures import png
from tests.support.scripted_provider import ScriptedProvider
from web.chats.actions.uploads import GivenFile, judged, take_in
from web.chats.chat import Chat
from web.chats.parts.offer_kinds import Attachment
from web.chats.records.attachments import AttachmentLimits
from web.harness.builtin.chat_files import ChatFiles
from web.harness.builtin.file_limits import FileLimits
from web.harness.values.errors import LimitExceeded, ToolError
from web.harness.values.messages import ImageBlock, ResourceBlock

pytestmark = pytest.mark.anyio

LIMITS = AttachmentLimits(max_count=3, max_chars=100, max_picture_bytes=2_000)
MOST = 10_000


def given(name: str, data: bytes) -> GivenFile:
    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, len(data), 1_000):
            yield data[at : at + 1_000]

    return GivenFile(name, len(data), chunks)


def zipped() -> bytes:
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("big", bytes(5_000_000))
    return packed.getvalue()


async def put(room: ChatRoom, chat: Chat, files: ChatFiles, name: str, data: bytes) -> str:
    file = await judged(given(name, data), LIMITS, MOST)
    return await take_in(room.chats, chat, files, file)


@pytest.mark.parametrize(
    ("name", "data", "media_type", "kind"),
    [
        ("a.png", png(4, 4), "image/png", ImageBlock),
        ("a.txt", png(4, 4), "image/png", ImageBlock),
        ("a.md", b"\xef\xbb\xbf# Hi", "text/plain", ResourceBlock),
        ("a.png", b"<!doctype html><script>alert(1)</script>", "text/html", ResourceBlock),
        ("a.svg", b"<svg onload=alert(1)>", "image/svg+xml", ResourceBlock),
        ("empty", b"", "text/plain", ResourceBlock),
    ],
)
async def test_what_a_model_can_take_is_told_by_the_bytes(
    name: str, data: bytes, media_type: str, kind: type
) -> None:
    file = await judged(given(name, data), LIMITS, MOST)
    block = file.called(name)
    assert isinstance(block, kind)
    assert block.media_type == media_type
    assert not isinstance(block, ResourceBlock) or block.text == data.decode("utf-8-sig")
    assert (file.words(name) == "") is not (name == "a.png" and kind is ResourceBlock)


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.pdf", b"%PDF-1.7\n\x00", "neither text nor a picture"),
        ("bomb.png", zipped(), "neither text nor a picture"),
        ("a.png", png(4, 4)[:60], "it is cut off, its end is missing"),
        ("a.png", png(0, 4), "no picture that can be read"),
        ("a.png", png(10_000, 10_000), "10,000 x 10,000 pixels, too many"),
        ("a.png", png(4, 4, size=2_001), "at most 2 KB"),
        ("a.txt", b"x" * 101, "more than 100 characters"),
        ("a.txt", b"x" * 401, "more than 100 characters"),
        ("a.txt", "Дата".encode("cp1251"), "save it as UTF-8"),
        ("a.txt", b"\xff\xfea", "save it as UTF-8"),
        ("a.svgz", b"\x1f\x8b\x08", "neither text nor a picture"),
    ],
)
async def test_of_all_else_a_model_gets_the_name_and_the_person_the_reason(
    name: str, data: bytes, why: str
) -> None:
    file = await judged(given(name, data), LIMITS, MOST)
    block = file.called("other name")
    assert isinstance(block, ResourceBlock)
    assert (block.name, block.file_bytes) == ("other name", len(data))
    assert "other name" in block.text
    assert why in block.text
    assert why in file.words("other name")


async def test_a_text_that_ends_as_none_is_a_file() -> None:
    data = b"x" * 70_000 + b"\0"
    file = await judged(given("a.txt", data), AttachmentLimits(), 100_000)
    assert (file.content, "neither text nor" in file.why) == (None, True)


@pytest.mark.parametrize(("codec", "encoding"), [("latin-1", "Windows-1252"), ("utf-16", "UTF-16")])
async def test_a_text_in_another_encoding_is_read_and_the_person_told(
    codec: str, encoding: str
) -> None:
    file = await judged(given("a.csv", "Größe;1".encode(codec)), LIMITS, MOST)
    block = file.called("a.csv")
    assert isinstance(block, ResourceBlock)
    assert (block.text, block.media_type, block.file_bytes) == ("Größe;1", "text/plain", None)
    assert file.words("a.csv") == f"a.csv was read as {encoding}."


async def test_what_is_larger_than_a_file_may_be_is_refused() -> None:
    with pytest.raises(LimitExceeded, match=r"big has 10 KB; a file takes at most 10 KB") as found:
        await judged(given("big", bytes(MOST + 1)), LIMITS, MOST)
    assert found.value.code == "too_large"


async def test_a_file_lies_in_the_folder_and_is_attached_by_its_name_there(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider()) as room:
        chat, files = await room.new_chat(), ChatFiles(tmp_path)
        assert await put(room, chat, files, "../a\n.txt", b"Rain.") == ""
        assert await put(room, chat, files, "a .TXT", b"Sun.") == ""
        assert "by its name only" in await put(room, chat, files, "a.pdf", b"%PDF-1.7")
        names = [info.path for info in await files.list()]
        assert {name: await files.read(name) for name in names} == {
            "a.txt": b"Rain.",
            "a-2.TXT": b"Sun.",
            "a.pdf": b"%PDF-1.7",
        }
        (version,) = await files.versions("a.txt")
        assert version.origin.kind == "person"
        shown = [each.shown for each in log_of(chat, "attached") if isinstance(each, Attachment)]
        assert [(each.kind, each.name) for each in shown] == [
            ("text", "a.txt"),
            ("text", "a-2.TXT"),
            ("file", "a.pdf"),
        ]


async def test_the_same_file_twice_lies_there_once(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider()) as room:
        chat, files = await room.new_chat(), ChatFiles(tmp_path)
        await put(room, chat, files, "a.txt", b"Rain.")
        await put(room, chat, files, "a.txt", b"Rain.")
        await put(room, chat, files, "a.txt", b"Snow.")
        assert [info.path for info in await files.list()] == ["a-2.txt", "a.txt"]
        names = [each.block.name for each in chat.record.attachments]
        assert names == ["a.txt", "a.txt", "a-2.txt"]


async def test_what_does_not_fit_the_message_leaves_no_file(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider()) as room:
        chat, files = await room.new_chat(), ChatFiles(tmp_path)
        for number in range(10):
            await put(room, chat, files, f"{number}.txt", b"x")
        with pytest.raises(LimitExceeded, match="at most 10 attachments"):
            await put(room, chat, files, "more.txt", b"x")
        assert len(await files.list()) == 10


async def test_what_the_folder_refuses_is_not_attached(tmp_path: Path) -> None:
    (tmp_path / "folder").write_text("a file where the folder should be")
    async with chat_room(ScriptedProvider()) as room:
        chat = await room.new_chat()
        full = ChatFiles(tmp_path / "full", FileLimits(max_chat_bytes=3))
        with pytest.raises(LimitExceeded, match="the limit is 3"):
            await put(room, chat, full, "a.txt", b"Rain.")
        with pytest.raises(ToolError):
            await put(room, chat, ChatFiles(tmp_path / "folder"), "a.txt", b"Rain.")
        assert chat.record.attachments == ()


async def test_a_picture_can_be_looked_at_while_it_waits_and_afterwards(tmp_path: Path) -> None:
    async with chat_room(ScriptedProvider()) as room:
        chat, files = await room.new_chat(), ChatFiles(tmp_path)
        await put(room, chat, files, "a.gif", png(4, 4))
        (pending,) = chat.record.attachments
        assert isinstance(pending.block, ImageBlock)
        assert (pending.block.name, pending.block.width) == ("a.gif", 4)
        blob = chat.blobs.get(pending.block.sha256)
        assert blob is not None
        assert (blob.media_type, blob.data) == ("image/png", png(4, 4))
