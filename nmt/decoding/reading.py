"""From lines to segments, with their pieces and what the user requires of their translations.

It is the counterpart of `writing`. It knows text and subwords; it knows no models and no searches.
"""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import compress, islice, pairwise
from typing import NamedTuple

from nmt.data.corpus import excerpt
from nmt.data.subwords import Vocabularies
from nmt.data.words import Span, overlapping
from nmt.decoding.doubts import Doubts
from nmt.decoding.options import TranslationOptions
from nmt.decoding.text.forbidden import Forbidden
from nmt.decoding.text.protect import Found, Seen, Sight, is_blank, with_kept
from nmt.decoding.text.required import Required, encoded_constraints, encoded_prefix, impossible, missing
from nmt.decoding.text.segments import Segment, divided_phrases, segments_of
from nmt.decoding.text.sentences import checked_language, sentences_of
from nmt.errors import InputWarning, UserError, refuse


class Languages(NamedTuple):
    """What a model translates from and to, as its configuration names it, such as en; None: not known."""

    source: str | None = None
    target: str | None = None


def sentence_language(options: TranslationOptions, languages: Languages) -> str | None:
    """The code of the language by whose rules lines are cut into sentences; None where they are not.

    Raises UserError where it is not known, or sentencex is not installed.
    """
    if not (split := options.split_sentences):
        return None
    name = languages.source if split is True else split
    if name is None:
        raise UserError(
            "split_sentences is True, but the translator was not told its source language; name it instead, such as "
            "split_sentences='en'"
        )
    try:
        return checked_language(name)
    except UserError as error:
        raise UserError(f"the model's data.source_language: {error}" if split is True else str(error)) from None


def usual_sentences(language: str | None, *, name: str = "the model") -> str | bool:
    """How texts in a language are cut into sentences unless told otherwise: by its rules, or not at all.

    Warns, for the model called `name`, where they are not.
    """
    try:
        return checked_language(language or "")
    except UserError as error:
        warnings.warn(f"{name}: lines are not cut into sentences: {error}", InputWarning, stacklevel=3)
        return False


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads lines as segments."""

    vocabularies: Vocabularies
    longest_segment: int  # pieces
    languages: Languages
    options: TranslationOptions
    sight: Sight  # what the model sees of a sentence
    doubts: Doubts
    longest_trained: int | None = None  # pieces of a line; None: not known
    forbidden: Forbidden | None = None
    numbered: bool = True  # whether messages call a line by its number, and not by what it begins with

    def of_chunks(
        self, chunks: Iterable[Sequence[Sequence[str]]], first: int
    ) -> Iterator[tuple[Sequence[str], list[list[Segment]]]]:
        """The lines of each chunk and their `segments`; a chunk is lines, their prefixes, and their constraints."""
        for lines, prefixes, constraints in chunks:
            yield lines, self.segments(lines, prefixes, constraints, first)
            first += len(lines)

    def segments(
        self, lines: Sequence[str], prefixes: Sequence[str], constraints: Sequence[str], first: int
    ) -> list[list[Segment]]:
        """The segments of each line, none for a blank one.

        `first` is the number of the first line. `prefixes` and `constraints` have one line for each of them. Raises
        UserError for what cannot be required of a line.
        """
        names = [f"line {number}" if self.numbered else excerpt(line) for number, line in enumerate(lines, first + 1)]
        requires = [
            bool(prefix.strip() or phrases.strip()) for prefix, phrases in zip(prefixes, constraints, strict=True)
        ]
        segments = self._cut(lines, requires, first)
        problems: list[str] = []
        together = zip(lines, segments, prefixes, constraints, names, strict=True)
        for line, parts, prefix, phrases, name in compress(together, requires):
            parts[:] = self._with_required(line, parts, prefix, phrases, name, problems)
        refuse(problems)
        return segments

    def _with_required(
        self, line: str, segments: Sequence[Segment], prefix: str, constraints: str, name: str, problems: list[str]
    ) -> list[Segment]:
        """The segments of a line with their shares of its prefix and constraints; `name`: what messages call it."""
        if not segments:
            stays = "" if self.sight.protection is None or is_blank(line) else line.strip()
            problems += missing(prefix, constraints, stays, line=name)
            return []
        target = self.vocabularies.target
        beginning = encoded_prefix(" ".join(prefix.splitlines()).strip(), target)
        phrases = encoded_constraints(constraints, target)
        if self.forbidden is not None:
            for texts, what in (((prefix,), "prefix"), ((phrase.text for phrase in phrases), "constraints")):
                problems += self.forbidden.contradictions(map(target.normalized, texts), f"the {what} of {name}")
        starts = [0, *(segment.seen.places[0] for segment in segments[1:]), None]
        parts = [line[start:stop] for start, stop in pairwise(starts)]
        having: list[Segment] = []
        for segment, contained in zip(segments, divided_phrases(phrases, parts), strict=True):
            problems += impossible(beginning, contained, line=name)
            seen = segment.seen._replace(in_capitals=False)  # as the user writes
            having.append(segment._replace(prefix=beginning, phrases=contained, seen=seen))
            beginning = Required()  # of the other segments
        return having

    def _cut(self, lines: Sequence[str], requires: Sequence[bool], first: int) -> list[list[Segment]]:
        """The segments of each line; none of one that has nothing to translate."""
        source, language = self.vocabularies.source, sentence_language(self.options, self.languages)
        given = [(line, self._sentences(line, language), self.sight.found(line)) for line in lines]
        of_lines = [self._seen(*one) for one in given]
        ids = iter(source.encode_batch([seen.text for of_line in of_lines for seen in of_line]))
        segments = []
        together = zip(of_lines, given, requires, strict=True)
        for number, (of_line, (line, sentences, found), required) in enumerate(together, first):
            pieces = list(islice(ids, len(of_line)))
            lacking = [(seen, self.sight.unknown_pieces(seen, ids)) for seen, ids in zip(of_line, pieces, strict=True)]
            self._doubt(line, pieces, lacking)
            if unknown := [span for pair in lacking for span in self.sight.unknown(*pair)]:
                without = self._seen(line, sentences, with_kept(found, unknown, line))
                pieces_without = source.encode_batch([seen.text for seen in without])
                if not required or any(pieces_without):  # or what is required takes the place of unknown words
                    of_line, pieces = without, pieces_without
            segments.append(segments_of(line, of_line, pieces, source, longest=self.longest_segment, number=number))
        return segments

    def _doubt(self, line: str, pieces: Sequence[list[int]], lacking: Sequence[tuple[Seen, Sequence[Span]]]) -> None:
        """Note whether a line that is not cut into sentences should be, and what of it the vocabulary lacks."""
        is_long = False
        if self.options.split_sentences is None:
            is_long = self.longest_trained is not None and sum(map(len, pieces)) > self.longest_trained
            if not is_long and (language := self._language) is not None:
                is_long = len(sentences_of(line, language, whole_words=self.vocabularies.source.of_words)) > 1
        unknown = [seen.text[start:stop] for seen, spans in lacking for start, stop in spans]
        self.doubts.note(line, is_long=is_long, unknown="".join("".join(unknown).split()))

    def _sentences(self, line: str, language: str | None) -> list[Span]:
        """The sentences of a line, or it as one of them; none of a blank one."""
        sentences = [(0, len(line))]
        if language is not None:
            sentences = sentences_of(line, language, whole_words=self.vocabularies.source.of_words)
        return [(start, stop) for start, stop in sentences if not is_blank(line[start:stop])]

    def _seen(self, line: str, sentences: Sequence[Span], found: Found) -> list[Seen]:
        """What the model sees of each of the sentences of a line that are translated by themselves."""
        if len(sentences) > 1:
            sentences = self._together(line, sentences, found)
        return [self.sight.seen(line, *sentence, found) for sentence in sentences]

    def _together(self, line: str, sentences: Sequence[Span], found: Found) -> list[Span]:
        """The sentences, which end inside no term and nothing that is kept, with what has no words at its neighbor."""
        whole = [mark.place for mark in found]
        together: list[Span] = []
        has_words = True  # the last of them
        for start, stop in sentences:
            some = self.sight.has_words(line, start, stop, found)
            if together and (overlapping(whole, (start, start)) or not (some and has_words)):
                start, some = together.pop()[0], some or has_words
            together.append((start, stop))
            has_words = some
        return together

    @cached_property
    def _language(self) -> str | None:
        """The language by whose rules lines may be cut into sentences; None: not known."""
        with suppress(UserError):
            return checked_language(self.languages.source or "")
        return None
