"""Splits a growing markdown text into blocks that change seldom. See blocks.py for the contract.

stream = MarkdownStream()
stream.feed("some ")                 # cheap: append only
for change in stream.settle(): ...   # Block or Removed, parents before children
stream.finish()                      # the text is complete
while stream.pending:                # a settle is bounded in work: ask until nothing is left
    for change in stream.settle(): ...
"""

from __future__ import annotations

from .blocks import SHELLS, Block, Kind, Reference, Removed
from .limits import Limits
from .stream import MarkdownStream

__all__ = ["SHELLS", "Block", "Kind", "Limits", "MarkdownStream", "Reference", "Removed"]
