"""Translating with any of the options by its name, as tables of tests have them, and stopping in the middle."""

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from nmt.decoding.reading import Reader
from nmt.decoding.translator import Translation, TranslationOptions, Translator

BESIDE = ("prefixes", "constraints", "first", "waiting")  # what `Translator.translate` takes besides its options


def translate(translator: Translator, lines: Iterable[str], **options: Any) -> Iterator[list[Translation]]:
    """`translator.translate` with these options, and what goes beside them."""
    beside = {name: options.pop(name) for name in BESIDE if name in options}
    return translator.translate(lines, TranslationOptions(**options), **beside)


@contextmanager
def stopped_at_the_third_chunk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """In the block, nmt-translate gets SIGTERM when it reads its third chunk of lines."""
    before, calls = Reader.segments, iter(range(100))

    def stopping(self: Reader, *arguments: Any) -> Any:
        if next(calls) == 2:
            signal.raise_signal(signal.SIGTERM)
        return before(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(Reader, "segments", stopping)
        yield
