"""What counts as a word, in several languages, and which texts are found first."""

from __future__ import annotations

import random

import pytest

from web.harness.memory.excerpts import excerpt
from web.harness.memory.word_index import WordIndex
from web.harness.memory.words import fold, words_of


def index_of(*texts: str) -> WordIndex:
    index = WordIndex()
    for number, text in enumerate(texts):
        index.put(str(number), [(text, 1.0)])
    return index


def found(index: WordIndex, query: str, limit: int = 10) -> list[int]:
    return [int(key) for key, _ in index.search(query, limit)]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("CAFÉ", "cafe"),
        ("Cafe\u0301", "café"),
        ("STRASSE", "Straße"),
        ("ΣΊΣΥΦΟΣ", "σισυφος"),
        ("İstanbul", "istanbul"),
        ("\uff46\uff55\uff4c\uff4c \uff37idth", "full width"),
        ("ﬁle", "file"),
        ("Łódź", "lodz"),
        ("كِتَاب", "كتاب"),
        ("שָׁלוֹם", "שלום"),
        ("ｶﾞ", "ガ"),
    ],
)
def test_case_accents_and_forms_do_not_matter(one: str, other: str) -> None:
    assert list(words_of(one)) == list(words_of(other))


def test_a_word_ends_where_no_letter_or_sign_of_it_follows() -> None:
    assert list(words_of("don't stop_it, 3.5 C++ e-mail")) == [
        *("don", "t", "stop", "it", "3", "5", "c", "e", "mail"),
    ]
    assert list(words_of("हिन्दी भाषा।")) == ["हिन्दी", "भाषा"]
    assert list(words_of("x" * 100)) == ["x" * 64]
    assert list(words_of("\ud83d \0 🎉")) == []


def test_a_script_without_spaces_is_cut_into_pairs() -> None:
    assert list(words_of("請求書のPDF版", asked=True)) == ["請求", "求書", "書の", "pdf", "版"]
    assert set(words_of("請求書")) == {"請求", "求書", "請", "求", "書"}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("このプロジェクトは請求書を分析する", "請求書"),
        ("このプロジェクトは請求書を分析する", "書"),
        ("本项目分析发票", "发票 分析"),
        ("โครงการนี้วิเคราะห์ใบแจ้งหนี้", "ใบแจ้งหนี้"),
        ("Dieses Projekt prüft Rechnungen", "rechnung PRUFT"),
        ("Проект анализирует счета", "счета"),
        ("یہ منصوبہ رسیدیں", "رسیدیں"),
        ("परियोजना चालान", "चालान"),
        ("프로젝트는 송장을 분석한다", "송장을"),
    ],
)
def test_texts_of_any_language_are_found(text: str, query: str) -> None:
    index = index_of("something else entirely", text, "別の文です", "другое дело")
    assert found(index, query)[0] == 1


def test_rare_words_count_more_than_common_ones() -> None:
    index = index_of("the project", "the invoice", "the cat", "the dog the the")
    assert found(index, "the invoice")[0] == 1


def test_a_text_with_more_of_the_words_comes_first_and_shorter_ones_before_longer() -> None:
    index = index_of("red", "red green", "red green blue", f"red green blue {'filler ' * 5}")
    ranked = found(index, "red green blue")
    assert (ranked[0], ranked[-1]) == (2, 0)


def test_a_word_inside_of_another_is_not_found_but_its_beginnings_are() -> None:
    index = index_of("concatenate", "cats", "catalogue", "category")
    assert found(index, "cat")[0] == 1
    assert 0 not in found(index, "cat")
    plain = index_of("invoices are analyzed", "internal interest")
    assert found(plain, "invoice analyze") == [0]
    assert found(plain, "invo") == [0]
    assert found(plain, "interval") == []


def test_the_word_itself_comes_before_those_that_are_like_it() -> None:
    assert found(index_of("invoices", "invoice", "invoiced"), "invoice")[0] == 1


def test_what_was_replaced_or_removed_is_not_found() -> None:
    chance = random.Random(7)
    words = [f"w{chance.randrange(300)}" for _ in range(20_000)]
    texts = {str(n): " ".join(words[n * 10 : n * 10 + 10]) for n in range(2_000)}
    index, expected = WordIndex(), WordIndex()
    for key, text in texts.items():
        index.put(key, [("other words before", 1.0)])
        index.put(key, [(text, 1.0)])
    for key in list(texts)[:1_500]:
        index.remove(key)
        del texts[key]
    for key, text in texts.items():
        expected.put(key, [(text, 1.0)])
    assert len(index) == len(texts)
    assert index.search("other before", 5) == []
    for query in ("w1 w2", "w17", "w299 w3"):
        assert set(found(index, query, 600)) == set(found(expected, query, 600))
    assert found(index, "w17") == found(expected, "w17")


def test_a_query_of_any_size_is_answered() -> None:
    index = index_of("needle in it", *(f"hay {number}" for number in range(200)))
    assert found(index, "needle " + "hay " * 50_000)[0] == 0
    for query in ("", " ", "?!", "\0", "x" * 100_000):
        assert found(index, query) == []


def test_an_excerpt_shows_where_most_of_the_words_are() -> None:
    text = f"{'start ' * 300}the invoice of May is here {'end ' * 300}"
    cut = excerpt(text, "invoice may", 120)
    assert "invoice of May" in cut
    assert cut.startswith("… ")
    assert cut.endswith(" …")
    assert len(cut) <= 124
    assert excerpt("short", "x", 120) == "short"
    assert excerpt(text, "nothing", 60).startswith("start")
    assert len(excerpt("長" * 5_000 + "請求書", "請求書", 100)) <= 104


def test_folding_changes_no_plain_text() -> None:
    assert fold("plain text 123") == "plain text 123"
