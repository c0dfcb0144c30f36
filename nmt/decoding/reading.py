"""From lines to segments, with their pieces and what the user requires of their translations.

It is the counterpart of `writing`. It knows text and subwords; it knows no models and no searches.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import islice
from typing import NamedTuple

from torch import Tensor

from nmt.config.schema import DecodingConfig
from nmt.data.corpus import excerpt, half_of_a_pair, no_character
from nmt.data.subwords import Vocabularies
from nmt.decoding.batched_search import longest_translation
from nmt.decoding.options import TranslationOptions
from nmt.decoding.text.forbidden import forbidden_by
from nmt.decoding.text.glossary import Glossary, words_of
from nmt.decoding.text.required import Required, distinct, encoded_constraints, encoded_prefixes, impossible
from nmt.decoding.text.segments import Segment, divided_phrases, divided_prefix, segments_of
from nmt.decoding.text.sentences import Line, Sentence, checked_language, sentences_of
from nmt.errors import UserError, refuse


class Languages(NamedTuple):
    """What a model translates from and to, as its configuration names it, such as en; None: not known."""

    source: str | None
    target: str | None


UNKNOWN_LANGUAGES = Languages(None, None)


def sentence_language(options: TranslationOptions, languages: Languages) -> str | None:
    """The code of the language by whose rules lines are cut into sentences; None where they are not.

    Raises UserError where it is not known, or sentencex is not installed.
    """
    if (split := options.split_sentences) is False:
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


@dataclass(frozen=True, kw_only=True)
class Reader:
    """Reads lines as segments."""

    vocabularies: Vocabularies
    longest_segment: int  # pieces
    languages: Languages
    decoding: DecodingConfig  # as `options` change it
    options: TranslationOptions
    continuing: Tensor | None = None  # the pieces that make a word longer; None: nothing is required
    numbered: bool = True  # whether messages call a line by its number, and not by what it begins with

    def segments(
        self, lines: Sequence[str], prefixes: Sequence[str], constraints: Sequence[str], first: int
    ) -> list[list[Segment]]:
        """The segments of each line, none for a blank one.

        `first` is the number of the first line. `prefixes` and `constraints` have one line for each of them. Raises
        UserError for what cannot be required of a line, and for half of a surrogate pair, which no subword model reads.
        """
        for what, texts in (("", lines), ("the prefix of ", prefixes), ("the constraints of ", constraints)):
            for number, text in enumerate(texts, first + 1):
                if (half := half_of_a_pair(text)) is not None:
                    name = f"line {number}" if self.numbered else excerpt(lines[number - first - 1])
                    raise UserError(f"{what}{name}: {no_character(text[half])}")
        segments = self._cut(lines, first)
        if self.continuing is None:
            return segments
        problems: list[str] = []
        given = zip(lines, segments, prefixes, constraints, strict=True)
        for number, (line, parts, prefix, phrases) in enumerate(given, first + 1):
            name = f"line {number}" if self.numbered else excerpt(line)
            parts[:] = self._with_required(parts, prefix, phrases, name, problems)
        refuse(problems)
        return segments

    def _with_required(
        self, segments: Sequence[Segment], prefix: str, constraints: str, line: str, problems: list[str]
    ) -> list[Segment]:
        """The segments of a line with their shares of its prefix and constraints; `line`: what messages call it."""
        glossary, target = self.options.glossary, self.vocabularies.target
        text = " ".join(prefix.splitlines()).strip()
        beginning = Line(text, divided_prefix(text, segments, self._prefix_language))
        *complete, last = encoded_prefixes([part.text for part in beginning.sentences], target)
        (phrases,) = encoded_constraints([constraints], target)
        sources = list(self._texts(segments)) if phrases or glossary is not None else []
        with_last, *after = divided_phrases(phrases, sources[len(complete) :])
        shares: list[tuple[Required, Sequence[Required]]] = [
            *((part._replace(ends=True), ()) for part in complete),
            (last, with_last),
            *((Required(), contained) for contained in after),
        ]
        forbidden = forbidden_by(self.options.forbidden, self.options.forbidden_as_written, target)
        if forbidden is not None:
            for texts, what in (((prefix,), "prefix"), ((phrase.text for phrase in phrases), "constraints")):
                problems += forbidden.contradictions(map(target.normalized, texts), f"the {what} of {line}")
        having = list(segments)
        for index, (part, contained) in enumerate(shares):
            pieces = len(segments[index].source) if segments else 0
            longest = longest_translation(pieces + 1, self.decoding)
            problems += impossible(part, contained, self.continuing, line=line, blank=not segments, longest=longest)
            if segments:
                space = beginning.spaces()[index + 1] if part.ends else segments[index].space
                having[index] = segments[index]._replace(prefix=part, phrases=contained, space=space)
        if glossary is None:
            return having
        return [self._with_terms(part, source, glossary, line) for part, source in zip(having, sources, strict=True)]

    def _with_terms(self, segment: Segment, text: str, glossary: Glossary, line: str) -> Segment:
        """The segment, with this text, with the terms of the glossary that its translation can have."""
        if segment.prefix.ends:  # the user gave the whole of its translation
            return segment
        (terms,) = encoded_constraints(["\t".join(glossary.translations(text))], self.vocabularies.target)
        terms = distinct([*segment.phrases, *terms])[len(segment.phrases) :]
        longest = longest_translation(len(segment.source) + 1, self.decoding)
        why_not = partial(impossible, segment.prefix, line=line, blank=False, longest=longest)
        phrases = [*segment.phrases, *terms]
        if why_not(phrases, self.continuing):  # then one by one
            phrases = list(segment.phrases)
            for term in terms:
                if reasons := why_not([*phrases, term], self.continuing):
                    glossary.tell(term.text, reasons[0])
                else:
                    phrases.append(term)
        return segment._replace(phrases=phrases)

    def _texts(self, segments: Sequence[Segment]) -> Iterator[str]:
        """What the line has for each of its segments."""
        rest = list(segments)
        for sentence in rest[0].line.sentences if rest else ():
            count = next(index for index, segment in enumerate(rest, start=1) if segment.space is not None)
            together, rest = rest[:count], rest[count:]
            if count == 1:
                yield sentence.text
                continue
            spans = self.vocabularies.source.spans(sentence.text)
            for segment in together:
                first = segment.first - together[0].first
                yield sentence.text[spans[first][0] : spans[first + len(segment.source) - 1][1]]

    def _cut(self, lines: Sequence[str], first: int) -> list[list[Segment]]:
        source, language = self.vocabularies.source, sentence_language(self.options, self.languages)
        glossary = self.options.glossary
        cut = [_in_sentences(line, language, whole_words=source.of_words) for line in lines]
        if glossary is not None:
            cut = [_with_whole_terms(line, glossary) for line in cut]
        ids = iter(source.encode_batch([sentence.text for line in cut for sentence in line.sentences]))
        return [
            segments_of(
                line,
                list(islice(ids, len(line.sentences))),
                source,
                longest=self.longest_segment,
                number=number,
                glossary=glossary,
            )
            for number, line in enumerate(cut, first)
        ]

    @cached_property
    def _prefix_language(self) -> str | None:
        """The code of the language by whose rules prefixes are cut into sentences; None where they are not."""
        if self.options.split_sentences is False or self.languages.target is None:
            return None
        try:
            return checked_language(self.languages.target)
        except UserError:
            return None


def _in_sentences(line: str, language: str | None, *, whole_words: bool) -> Line:
    """The line with its sentences, or as one of them; a blank one has none."""
    if not line or line.isspace():
        return Line(line)
    if language is None:
        return Line(line, [Sentence(line)])
    return Line(line, sentences_of(line, language, whole_words=whole_words))


def _with_whole_terms(line: Line, glossary: Glossary) -> Line:
    """The line without ends of sentences within a term, such as that of `Panic! At the Disco`."""
    if len(line.sentences) < 2 or not (places := glossary.places_within(line.text)):
        return line
    sentences: list[Sentence] = []
    words = 0  # before the sentence
    for sentence in line.sentences:
        start = sentences.pop().start if words in places else sentence.start
        sentences.append(Sentence(line.text[start : sentence.start + len(sentence.text)], start))
        words += len(words_of(sentence.text))
    return line._replace(sentences=sentences)
