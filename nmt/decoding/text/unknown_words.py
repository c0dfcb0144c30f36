"""Unknown words of a translation, replaced through the attention after the search.

A word of the translation with an unknown piece in it gives way to one source word: the one that its unknown pieces
attend to most, looked up in a dictionary or copied as the line has it. So names and numbers that no vocabulary knows
come through: Luong, Pham & Manning (2015), section 4.2, after Luong et al. (2015), arXiv 1410.8206, and Jean et al.
(2015), arXiv 1412.2007. The weights come from forced decoding of the translation, as for alignments; only translations
with unknown pieces cost anything. It knows models, pieces and text; no file. A word is what stands between spaces.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import NamedTuple

from torch import Tensor

from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.ensemble import Model
from nmt.decoding.grouping import batches
from nmt.decoding.text.alignment import batch_attention_weights
from nmt.decoding.text.words import UNKNOWN_MARK, word_places
from nmt.ops.memory import in_halves
from nmt.symbols import UNKNOWN

_USUAL_LENGTH = 25  # pieces of a translation with which batches are as large as batch_tokens says
_LEFT_UNKNOWN = "⁇"  # what sentencepiece writes for an unknown piece


class WithUnknown(NamedTuple):
    """A translation with unknown pieces, of a line or a part of it."""

    line: str
    first: int  # the place of the first source piece in the line
    source: list[int]
    target: list[int]


class Replaced(NamedTuple):
    """A translation whose unknown words were replaced."""

    text: str
    words: list[int]  # for each word that the model wrote, the number of words that `text` has for it


def _attention(model: Model, translations: Sequence[WithUnknown]) -> Sequence[Tensor]:
    sources, targets = [each.source for each in translations], [each.target for each in translations]
    return batch_attention_weights(model, sources, targets)


def replace_unknown_words(
    model: Model,
    vocabularies: Vocabularies,
    translations: Sequence[WithUnknown],
    *,
    dictionary: Mapping[str, str],
    batch_tokens: int,
) -> list[Replaced]:
    """Each translation with its unknown words replaced (see `with_unknown_replaced`).

    `batch_tokens`: sentences × longest source of a batch; fewer where the translations are long, since the memory for
    all steps of an attention grows with source × translation.
    """
    words = {each.line: source_words(each.line, vocabularies.source) for each in translations}
    replaced: dict[int, Replaced] = {}
    areas = [(len(each.source) + 1) * max(len(each.target) + 1, _USUAL_LENGTH) for each in translations]
    for batch in batches(areas, batch_tokens * _USUAL_LENGTH):
        together = [translations[index] for index in batch]
        attention = in_halves(partial(_attention, model), together)
        for index, (line, first, source, target), weights in zip(batch, together, attention, strict=True):
            replaced[index] = with_unknown_replaced(
                target,
                weights[[token == UNKNOWN for token in target]],
                words[line][first : first + len(source)],
                subwords=vocabularies.target,
                dictionary=dictionary,
            )
    return [replaced[index] for index in range(len(translations))]


class SourceWord(NamedTuple):
    """What of the source line a piece belongs to."""

    place: int  # among the words of the line, from 0
    text: str  # as the line has it; several words where one piece stands for several


def source_words(line: str, subwords: Subwords) -> list[SourceWord]:
    """The word that each piece of `line` belongs to."""
    words = list(re.finditer(r"\S+", line))
    spans = subwords.spans(line)
    found = []
    for place, (_, stop) in zip(word_places(line, spans), spans, strict=True):
        last = place + 1
        while last < len(words) and words[last].start() < stop:
            last += 1
        found.append(SourceWord(place, " ".join(word[0] for word in words[place:last])))
    return found


def with_unknown_replaced(
    tokens: Sequence[int],
    unknown_weights: Tensor,
    sources: Sequence[SourceWord],
    *,
    subwords: Subwords,
    dictionary: Mapping[str, str],
) -> Replaced:
    """The text of `tokens`, with every unknown word replaced.

    `unknown_weights` (unknown pieces, source pieces) is the attention of the steps that wrote the unknown pieces, and
    `sources` the word of each source piece. The weights of the unknown pieces of one word are added up, and so are
    those of the source pieces of one word; of equals the first wins. A word that attends to nothing stays unknown.

    The source word is looked up as it stands, then in lower case, then both ways without the punctuation at its ends;
    otherwise it is copied. Punctuation that the translation itself has around the unknown word takes the place of the
    source word's.
    """
    rows = iter(unknown_weights.tolist())
    # Words and the white space between them in turns; only the words can hold marks.
    parts = re.split(r"(\s+)", subwords.decode_marked(tokens, UNKNOWN_MARK))
    if parts == [""]:
        return Replaced("", [])
    for index, word in enumerate(parts):
        attention = [next(rows) for _ in range(word.count(UNKNOWN_MARK))]
        if attention:
            source = _most_attended([sum(column) for column in zip(*attention, strict=True)], sources)
            parts[index] = _replaced(word, source, dictionary) if source else word.replace(UNKNOWN_MARK, _LEFT_UNKNOWN)
    return Replaced("".join(parts), [len(word.split()) for word in parts[::2]])


def _most_attended(weights: Iterable[float], sources: Sequence[SourceWord]) -> str:
    """The text of the word with the largest sum of weights; empty when all are 0, or there is no word."""
    sums: dict[int, float] = {}
    texts: dict[int, str] = {}
    for weight, word in zip(weights, sources, strict=True):
        sums[word.place] = sums.get(word.place, 0.0) + weight
        texts.setdefault(word.place, word.text)
    place = max(sums, key=lambda place: sums[place], default=None)
    return texts[place] if place is not None and sums[place] > 0 else ""


class _Word(NamedTuple):
    before: str  # punctuation
    core: str
    after: str  # punctuation


def _replaced(unknown: str, source: str, dictionary: Mapping[str, str]) -> str:
    """What takes the place of the word `unknown`, with marks in it, when it attends to `source`."""
    words = [_translated(word, dictionary) for word in source.split(" ")]
    own_before, own_after = _leading(unknown.partition(UNKNOWN_MARK)[0]), _trailing(unknown.rpartition(UNKNOWN_MARK)[2])
    words[0] = words[0]._replace(before=own_before or words[0].before)
    words[-1] = words[-1]._replace(after=own_after or words[-1].after)
    return " ".join("".join(word) for word in words)


def _translated(word: str, dictionary: Mapping[str, str]) -> _Word:
    whole = _looked_up(word, dictionary)
    if whole is not None:
        return _Word("", whole, "")
    before, after = _leading(word), _trailing(word)
    if len(before) == len(word):
        return _Word("", word, "")  # nothing but punctuation
    core = word[len(before) : len(word) - len(after)]
    found = _looked_up(core, dictionary)
    return _Word(before, core if found is None else found, after)


def _looked_up(word: str, dictionary: Mapping[str, str]) -> str | None:
    found = dictionary.get(word)
    return dictionary.get(word.lower()) if found is None else found


def _leading(text: str) -> str:
    """The punctuation that `text` begins with."""
    return "".join(takewhile(_is_punctuation, text))


def _trailing(text: str) -> str:
    """The punctuation that `text` ends with."""
    return _leading(text[::-1])[::-1]


def _is_punctuation(character: str) -> bool:
    return unicodedata.category(character).startswith("P")
