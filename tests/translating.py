"""Translating with any of the options by its name, as tables of tests have them."""

from collections.abc import Iterable, Iterator
from typing import Any

from nmt.decoding.translator import Translation, TranslationOptions, Translator

BESIDE = ("prefixes", "constraints", "first", "waiting")  # what `Translator.translate` takes besides its options


def translate(translator: Translator, lines: Iterable[str], **options: Any) -> Iterator[list[Translation]]:
    """`translator.translate` with these options, and what goes beside them."""
    beside = {name: options.pop(name) for name in BESIDE if name in options}
    return translator.translate(lines, TranslationOptions(**options), **beside)
