"""Unknown words of a translation, replaced through the attention after the search.

A word of the translation with an unknown piece in it gives way to the source word that it attends to most, looked up in
a dictionary or copied as the line has it. So names and numbers that no vocabulary knows come through: Luong, Pham &
Manning (2015), section 4.2, after Luong et al. (2015), arXiv 1410.8206, and Jean et al. (2015), arXiv 1412.2007. The
weights come from forced decoding of the translation, as for alignments. It knows alignments and text; no models and no
files. In scripts without spaces a word is a single character, so that a sentence in one is not replaced as a whole.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import regex

from nmt.data.words import UNKNOWN_MARK, spans_of_parts
from nmt.decoding.text.alignment import SoftAlignment
from nmt.decoding.text.marks import Mark

_PARTS = regex.compile(r"(?s)(\p{P}*)(.*?)(\p{P}*)")


def replacements(
    marked: str, text: str, alignment: SoftAlignment, dictionary: Mapping[str, str], *, begin: int = 0
) -> Iterator[tuple[Mark, int]]:
    """A mark for each unknown word of a `text` from the character `begin` on, and the source word that it is linked to.

    `marked` is the text with UNKNOWN_MARK for each unknown piece. A word without a link stays unknown, and those behind
    it with the same one, as the parts of a word that was cut, go with it. The source word is looked up as it stands,
    then in lower case, then both ways without the punctuation at its ends; otherwise it is copied. What is found is
    written with single spaces. Punctuation that the translation itself has around the unknown word takes the place of
    the source word's.
    """
    links = {target: source for source, target in alignment.links}
    found: list[tuple[int, int, int]] = []  # where unknown words are, and the source word of each
    for number, (start, stop) in enumerate(spans_of_parts(alignment.target_words, text)):
        start, word = max(start, begin), links.get(number)
        if word is None:
            continue
        known = marked[start:stop].strip(UNKNOWN_MARK)
        before = marked[found[-1][0] : start].strip(f"{UNKNOWN_MARK} ") if found else None
        if before == "" and found[-1][2] == word and alignment.source_words[word].endswith(known):
            found[-1] = (found[-1][0], stop, word)
        elif UNKNOWN_MARK in marked[start:stop]:
            found.append((start, stop, word))
    for start, stop, word in found:
        instead = _replaced(marked[start:stop], alignment.source_words[word], dictionary)
        yield Mark(0, 0, instead=instead, replaces=(start, stop)), word


def _replaced(unknown: str, word: str, dictionary: Mapping[str, str]) -> str:
    """What takes the place of the word `unknown`, with UNKNOWN_MARK in it, when it attends to the source's `word`."""
    whole = _looked_up(word, dictionary)
    before, core, after = _parts(word) if whole is None else ("", whole, "")
    if not core:
        before, core = "", word  # nothing but punctuation
    elif whole is None:
        core = _looked_up(core, dictionary) or core
    own_before, _, own_after = _parts(unknown)
    return f"{own_before or before}{core}{own_after or after}"


def _parts(word: str) -> tuple[str | Any, ...]:
    """The word between the punctuation before it and after it."""
    match = _PARTS.fullmatch(word)
    return match.groups() if match else ("", word, "")


def _looked_up(word: str, dictionary: Mapping[str, str]) -> str | None:
    translation = dictionary.get(word, dictionary.get(word.lower()))
    return None if translation is None else " ".join(translation.split())
