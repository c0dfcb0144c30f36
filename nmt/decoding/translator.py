"""Text in, text out: lines → pieces → batches → beam search → detokenised lines, one for each, in their order.

It knows models and subwords; it knows no files but the model's and no terminal. Lines are read a chunk at a time, so a
text larger than memory streams. A line's result does not depend on the lines around it, beyond the rounding of float32:
batches only share the work.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import torch

from nmt.config.schema import DecodingConfig, SamplingConfig
from nmt.data.subwords import Vocabularies
from nmt.decoding.alignment import SoftAlignment, Written, align_written, check_attention, joined
from nmt.decoding.beam import Hypothesis, LengthPenalty, penalty
from nmt.decoding.grouping import chunks
from nmt.decoding.prefixes import Prefix, as_given, check_prefix, encoded, with_prefixes, word_continuations
from nmt.decoding.search import Options, Task, longest_translation, search
from nmt.decoding.segments import LONGEST_SEGMENT, longest_segment, segment
from nmt.decoding.unknown_words import WithUnknown, replace_unknown_words
from nmt.errors import UserError
from nmt.evaluation.alignments import Link
from nmt.models.model_file import load_model, rebuild
from nmt.models.seq2seq import Seq2Seq
from nmt.symbols import UNKNOWN

CHUNK_BATCHES = 10  # batches a chunk of lines holds: enough to sort by length with little padding
CHARACTERS_A_PIECE = 4  # a rough mean, to know how many lines are enough before they are cut into pieces


class Translation(NamedTuple):
    """One translation of a line."""

    text: str  # detokenised, on one line
    score: float  # log-probability / length penalty + coverage penalty; 0.0 for a blank line
    tokens: list[str]  # the pieces of the translation
    alignment: list[Link] | None = None  # (source word, target word), from 0; None where it was not asked for
    soft_alignment: SoftAlignment | None = None  # how much each target word attends to each source word, likewise


class _Wanted(NamedTuple):
    options: Options
    replace_unknown: Mapping[str, str] | None
    alignments: bool


class _Segment(NamedTuple):
    """What is translated at once: a line, or a part of one."""

    line: str
    first: int  # the place of its first piece in the line
    ids: list[int]


class _Spelled(NamedTuple):
    """A translation of a segment, with its text."""

    text: str
    hypothesis: Hypothesis
    alignment: SoftAlignment | None


class Translator:
    """A model with its vocabularies, ready to translate. `decoding` holds the defaults of `translate`."""

    def __init__(
        self,
        model: Seq2Seq,
        vocabularies: Vocabularies,
        *,
        decoding: DecodingConfig | None = None,
        device: torch.device | str = "cpu",
        longest_segment: int = LONGEST_SEGMENT,
    ) -> None:
        """`model` is on `device`; lines of more than `longest_segment` pieces are translated in several segments."""
        self.model = model
        self.vocabularies = vocabularies
        self.decoding = decoding or DecodingConfig()
        self.device = torch.device(device)
        self.longest_segment = longest_segment

    @classmethod
    def load(cls, path: Path | str, *, device: torch.device | str = "cpu") -> "Translator":
        """Load a model file, or the best model of a run folder; its configuration gives the defaults of `translate`.

        Raises UserError when there is no such file, it is damaged, or holds no model of this toolkit.
        """
        file = load_model(Path(path))
        try:
            model = rebuild(file)
            vocabularies = Vocabularies.from_bytes(file.source_subwords, file.target_subwords)
        except (KeyError, ValueError, UserError) as error:
            reason = shorten(str(error), 200, placeholder=" …")  # PyTorch names every weight that does not fit
            raise UserError(f"{path}: damaged: its parts do not fit together ({reason})") from error
        return cls(
            model.to(device),
            vocabularies,
            decoding=file.config.decoding,
            device=device,
            longest_segment=longest_segment(file.config.data.max_length),
        )

    def translate(
        self,
        lines: Iterable[str],
        *,
        beam_size: int | None = None,
        length_penalty: LengthPenalty | None = None,
        max_length_ratio: float | None = None,
        batch_tokens: int | None = None,
        minimum_length: int | None = None,
        no_repeat_ngram_size: int | None = None,
        suppress_unknown: bool | None = None,
        coverage_penalty: float | None = None,
        n_best: int = 1,
        sampling: SamplingConfig | None = None,
        prefixes: Iterable[str] | None = None,
        replace_unknown: Mapping[str, str] | None = None,
        alignments: bool = False,
        waiting: Callable[[], bool] | None = None,
    ) -> Iterator[list[Translation]]:
        """For each line and in order, its `n_best` best translations, best first; fewer if fewer exist.

        None: as `decoding` says. A blank line gives one empty translation without asking the model. A translation has
        at most max_length_ratio × the source's pieces (END counted) + 10 tokens. `batch_tokens`: sentences × longest
        source of a batch, padding included; a longer source is a batch of its own. A larger beam, whose memory grows
        with it, makes smaller batches (see `search`). A line of more than `longest_segment` pieces is cut (see
        `segment`), its segments' translations are joined with a space, and its score is that of all their tokens
        together.

        A translation has at least `minimum_length` pieces, or as many as its maximal length allows; no sequence of
        `no_repeat_ngram_size` pieces twice, 0 for off; and no unknown piece with `suppress_unknown`. Where this leaves
        nothing to go on with, the translation ends. Of a line that is cut it holds for each segment.

        `coverage_penalty`: β of what is added to the score of a translation that attends too little to parts of the
        source (see `coverage`), 0 for off.

        `sampling`: draw `n_best` translations from the model's distribution instead of searching for the best. They are
        independent of each other and may be equal. What is drawn for a line depends on the seed and the line's place
        among `lines` only. `beam_size` and `coverage_penalty` then have no effect.

        `prefixes`: for each line what its translation begins with, or "". Its pieces are forced as the subword model
        cuts it, and the text has it as it was given; its last word is complete (see `prefixes`). Of a line that is cut
        the first segment's translation begins with it.

        `replace_unknown`: a dictionary, which may be empty, with which unknown words are replaced by the source words
        that they attend to (see `unknown_words`); None leaves them as "⁇". `tokens` stay what the model wrote.

        `alignments`: fill in `alignment` and `soft_alignment`, from the attention with which the model writes each word
        when it is made to write the translation again. Words are those of the line and of the text, `str.split()`.

        Raises UserError when unknown words are to be replaced, or alignments asked for, and the model has no attention;
        and, where the first line is asked for, when the model computes NaN, as with weights that are not finite.

        `waiting` is asked after each line whether the next one would have to be waited for. If so, what was read is
        translated at once, instead of when a chunk is full.
        """
        given = {
            "beam_size": beam_size,
            "length_penalty": length_penalty,
            "max_length_ratio": max_length_ratio,
            "batch_tokens": batch_tokens,
            "minimum_length": minimum_length,
            "no_repeat_ngram_size": no_repeat_ngram_size,
            "suppress_unknown": suppress_unknown,
            "coverage_penalty": coverage_penalty,
        }
        given = {name: value for name, value in given.items() if value is not None}
        continuing = None if prefixes is None else word_continuations(self.vocabularies.target)
        options = Options(self.decoding.model_copy(update=given), n_best, sampling, continuing)
        if replace_unknown is not None and options.decoding.suppress_unknown:
            raise UserError("suppress_unknown leaves no unknown word to replace; choose one of the two")
        if options.decoding.coverage_penalty and not self.model.decoder.attention.score.context:
            raise UserError(
                "coverage_penalty needs attention, and the model has none (model.attention.score: none); set it to 0"
            )
        if replace_unknown is not None and not self.model.decoder.attention.score.context:
            raise UserError(
                "unknown words cannot be replaced: the model has no attention (model.attention.score: none), which "
                "would say what source word each stands for"
            )
        if alignments:
            check_attention(self.model)
        characters = CHUNK_BATCHES * CHARACTERS_A_PIECE * options.decoding.batch_tokens
        read = with_prefixes(chunks(lines, characters, waiting), prefixes)
        return self._translations(read, _Wanted(options, replace_unknown, alignments))

    def _translations(
        self, chunks: Iterable[tuple[list[str], list[str] | None]], wanted: _Wanted
    ) -> Iterator[list[Translation]]:
        first = 0
        for lines, prefixes in chunks:
            yield from self._translate_chunk(lines, prefixes, first, wanted)
            first += len(lines)

    def _translate_chunk(
        self, lines: Sequence[str], texts: Sequence[str] | None, first: int, wanted: _Wanted
    ) -> list[list[Translation]]:
        """The translations of `lines`, of which the first is line `first` of the text; `texts` are their prefixes."""
        segments: list[_Segment] = []
        tasks: list[Task] = []
        counts = []  # segments of each line; a blank line has none
        prefixes = [Prefix()] * len(lines) if texts is None else encoded(texts, self.vocabularies.target)
        encoded_lines = self.vocabularies.source.encode_batch(lines)
        for number, (line, ids, prefix) in enumerate(zip(lines, encoded_lines, prefixes, strict=True), first):
            parts = self._segments(line, ids) if ids else []
            longest = longest_translation(len(parts[0].ids) + 1 if parts else 1, wanted.options.decoding)
            check_prefix(prefix, line=number, blank=not parts, longest=longest)
            segments += parts
            tasks += [Task(part.ids, (number, index), prefix) for index, part in enumerate(parts[:1])]
            tasks += [Task(part.ids, (number, index)) for index, part in enumerate(parts[1:], 1)]
            counts.append(len(parts))
        found = search(self.model, tasks, wanted.options, device=self.device)
        hypotheses = iter(self._spelled(segments, [task.prefix for task in tasks], found, wanted))
        return [self._join([next(hypotheses) for _ in range(count)], wanted) for count in counts]

    def _segments(self, line: str, ids: list[int]) -> list[_Segment]:
        if len(ids) <= self.longest_segment:
            return [_Segment(line, 0, ids)]
        slices = segment(self.vocabularies.source.pieces(ids), self.longest_segment)
        return [_Segment(line, part.start, ids[part]) for part in slices]

    def _spelled(
        self,
        segments: Sequence[_Segment],
        prefixes: Sequence[Prefix],
        found: Sequence[Sequence[Hypothesis]],
        wanted: _Wanted,
    ) -> list[list[_Spelled]]:
        """The hypotheses of each segment with their texts."""
        decode = self.vocabularies.target.decode
        texts = [[decode(hypothesis.tokens) for hypothesis in best] for best in found]
        counts: dict[tuple[int, int], list[int]] = {}  # of words, where unknown ones were replaced
        places = [(index, rank) for index, best in enumerate(found) for rank in range(len(best))]
        batch_tokens = wanted.options.decoding.batch_tokens
        if wanted.replace_unknown is not None:
            unknown = [
                (index, rank)
                for index, rank in places
                if UNKNOWN in found[index][rank].tokens[len(prefixes[index].tokens) :]
            ]
            replaced = replace_unknown_words(
                self.model,
                self.vocabularies,
                [WithUnknown(*segments[index], found[index][rank].tokens) for index, rank in unknown],
                dictionary=wanted.replace_unknown,
                batch_tokens=batch_tokens,
            )
            for (index, rank), (text, words) in zip(unknown, replaced, strict=True):
                texts[index][rank], counts[index, rank] = text, words
        target, alike = self.vocabularies.target, wanted.alignments  # which know the words of the pieces
        for index, rank in places:
            texts[index][rank] = as_given(texts[index][rank], prefixes[index], target, same_words=alike)
        alignments: dict[tuple[int, int], SoftAlignment] = {}
        if wanted.alignments:
            written = [
                Written(*segments[index], found[index][rank].tokens, texts[index][rank], counts.get((index, rank)))
                for index, rank in places
            ]
            aligned = align_written(self.model, self.vocabularies, written, batch_tokens=batch_tokens)
            alignments = dict(zip(places, aligned, strict=True))
        return [
            [
                _Spelled(texts[index][rank], hypothesis, alignments.get((index, rank)))
                for rank, hypothesis in enumerate(best)
            ]
            for index, best in enumerate(found)
        ]

    def _join(self, segments: Sequence[Sequence[_Spelled]], wanted: _Wanted) -> list[Translation]:
        """The translations of a line: its segments' best, second best … hypotheses, each joined to one."""
        if not segments:
            nothing = Translation("", 0.0, [])
            return [_aligned(nothing, SoftAlignment([], [], torch.zeros(0, 0))) if wanted.alignments else nothing]
        length_penalty = wanted.options.decoding.length_penalty
        translations = [self._joined(parts, length_penalty) for parts in zip(*segments, strict=False)]
        return sorted(translations, key=lambda translation: -translation.score)

    def _joined(self, parts: Sequence[_Spelled], length_penalty: LengthPenalty) -> Translation:
        hypotheses = [part.hypothesis for part in parts]
        length = sum(len(each.tokens) + 1 for each in hypotheses)
        translation = Translation(
            " ".join(part.text for part in parts if part.text),
            sum(each.log_probability for each in hypotheses) / penalty(length, length_penalty)
            + sum(each.supplement for each in hypotheses),
            [piece for each in hypotheses for piece in self.vocabularies.target.pieces(each.tokens)],
        )
        alignments = [part.alignment for part in parts if part.alignment is not None]
        return _aligned(translation, joined(alignments)) if alignments else translation


def _aligned(translation: Translation, alignment: SoftAlignment) -> Translation:
    return translation._replace(alignment=alignment.links, soft_alignment=alignment)
