"""Finds texts by their words, the best first (BM25), without reading them again.

A text that has the rarer words of a query, more of them, and in fewer words of its own, comes
first. A word also finds those that begin with it or that share most of their letters from the
start (invoice, invoices), for less.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Container, Iterable
from heapq import nlargest
from itertools import islice

from web.harness.memory.words import is_pair, words_of

MAX_ASKED_WORDS = 32
"""Of a query; of a longer one the rarest count."""
MAX_VISITS = 30_000
"""Places looked at for one query; words that are almost everywhere tell little anyway."""

_FREQUENCY_WEIGHT, _LENGTH_WEIGHT = 1.2, 0.75
"""k1 and b, as the literature has them."""
_BEGINS, _ALIKE = 0.6, 0.4
"""What a word counts that begins with one of the query (less the longer it is), or is nearly the
same."""
_MAX_ALIKE = 16
_MIN_BEGINNING = 3
_SHARED = 0.7
_SPARSE = 1_000


def _shared(one: str, other: str) -> int:
    """How many letters two words have in common at the beginning."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


class WordIndex:
    """Texts by key. Not safe under threads; whoever shares one locks it."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._keys: list[str | None] = []
        self._lengths = array("f")
        self._total = 0.0
        self._places: dict[str, tuple[array[int], array[float]]] = {}
        """Of each word the numbers of the texts it is in, and how much it counts in each."""
        self._sorted: list[str] = []
        self._unsorted: list[str] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def put(self, key: str, fields: Iterable[tuple[str, float]]) -> None:
        """Has a text found by its fields, each with what a word in it counts, instead of before."""
        self.remove(key)
        weights: dict[str, float] = {}
        length = 0.0
        for text, weight in fields:
            counted = Counter(words_of(text))
            for word, times in counted.items():
                weights[word] = weights.get(word, 0.0) + weight * times
            length += weight * counted.total()
        number = len(self._keys)
        self._numbers[key] = number
        self._keys.append(key)
        self._lengths.append(length)
        self._total += length
        for word, weight in weights.items():
            places = self._places.get(word)
            if places is None:
                places = self._places[word] = (array("I"), array("f"))
                self._unsorted.append(word)
            places[0].append(number)
            places[1].append(weight)

    def remove(self, key: str) -> None:
        """One that is not there is fine."""
        number = self._numbers.pop(key, None)
        if number is None:
            return
        self._keys[number] = None
        self._total -= self._lengths[number]
        gone = len(self._keys) - len(self._numbers)
        if gone > _SPARSE and gone > len(self._numbers):
            self._pack()

    def search(
        self, query: str, limit: int, keep: Callable[[str], bool] | None = None
    ) -> list[tuple[str, float]]:
        """Keys of the best texts with their scores, the best first; newer ones among equals. Of
        those alone that `keep` says yes to."""
        count = len(self._numbers)
        if not count or limit < 1:
            return []
        allowed: Container[int] = range(len(self._keys))
        most = count
        if keep is not None:
            allowed = {number for key, number in self._numbers.items() if keep(key)}
            most = len(allowed)
        scores: dict[int, float] = {}
        average = max(self._total / count, 1.0)
        flat = _FREQUENCY_WEIGHT * (1 - _LENGTH_WEIGHT)
        slope = _FREQUENCY_WEIGHT * _LENGTH_WEIGHT / average
        keys, lengths = self._keys, self._lengths
        visits = 0
        for found, words in self._asked(query):
            new = min(found, most * len(words))
            if visits and visits + new > MAX_VISITS:
                break
            visits += new
            worth = math.log(1 + (count + 0.5) / (min(found, count) + 0.5))
            best: dict[int, float] = {}
            for word, share in words:
                factor = worth * share * (_FREQUENCY_WEIGHT + 1)
                for number, weight in zip(*self._places[word], strict=True):
                    if keys[number] is not None and number in allowed:
                        score = factor * weight / (weight + flat + slope * lengths[number])
                        if score > best.get(number, 0.0):
                            best[number] = score
            for number, score in best.items():
                scores[number] = scores.get(number, 0.0) + score
        ranked = nlargest(limit, scores.items(), key=lambda item: (item[1], item[0]))
        return [(key, score) for number, score in ranked if (key := keys[number]) is not None]

    def _asked(self, query: str) -> list[tuple[int, list[tuple[str, float]]]]:
        """For each word of a query the words that it finds, each with its share, and in how many
        places they are; the rarest first."""
        asked: list[tuple[int, list[tuple[str, float]]]] = []
        for word in dict.fromkeys(islice(words_of(query, asked=True), 10 * MAX_ASKED_WORDS)):
            words = [(word, 1.0)] if word in self._places else []
            words += self._near(word)
            if words:
                asked.append((sum(len(self._places[each][0]) for each, _ in words), words))
        asked.sort(key=lambda each: each[0])
        return asked[:MAX_ASKED_WORDS]

    def _near(self, word: str) -> list[tuple[str, float]]:
        """The words that begin as this one does, with their shares."""
        if len(word) < _MIN_BEGINNING or is_pair(word):
            return []
        listed = self._in_order()
        start = word[: max(_MIN_BEGINNING, math.ceil(_SHARED * len(word)))]
        found: list[tuple[int, str, float]] = []
        for place in range(bisect_left(listed, start), len(listed)):
            other = listed[place]
            if not other.startswith(start):
                break
            if other == word:
                continue
            shared = _shared(word, other)
            distance = abs(len(other) - len(word))
            if shared == len(word):
                found.append((distance, other, _BEGINS * len(word) / len(other)))
            elif shared >= _SHARED * max(len(word), len(other)):
                found.append((distance, other, _ALIKE))
        found.sort()
        return [(other, share) for _, other, share in found[:_MAX_ALIKE]]

    def _in_order(self) -> list[str]:
        """All words, sorted."""
        if len(self._unsorted) > 200:
            self._sorted += self._unsorted
            self._sorted.sort()
        else:
            for word in self._unsorted:
                insort(self._sorted, word)
        self._unsorted.clear()
        return self._sorted

    def _pack(self) -> None:
        """Makes the numbers dense again, without the texts that are gone."""
        kept = [number for number, key in enumerate(self._keys) if key is not None]
        now = {number: place for place, number in enumerate(kept)}
        places: dict[str, tuple[array[int], array[float]]] = {}
        for word, (numbers, weights) in self._places.items():
            left = [
                (now[number], weight)
                for number, weight in zip(numbers, weights, strict=True)
                if number in now
            ]
            if left:
                places[word] = (array("I", (n for n, _ in left)), array("f", (w for _, w in left)))
        self._places = places
        self._keys = [self._keys[number] for number in kept]
        self._lengths = array("f", (self._lengths[number] for number in kept))
        self._total = float(sum(self._lengths))
        self._numbers = {key: place for place, key in enumerate(self._keys) if key is not None}
        self._sorted, self._unsorted = sorted(places), []
