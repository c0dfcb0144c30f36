"""Text in, text out: lines → pieces → batches → beam search → detokenised lines, one for each, in their order.

It knows models and subwords; it knows no files but the model's and no terminal. Lines are read a chunk at a time, so a
text larger than memory streams. A line's result does not depend on the lines around it, beyond the rounding of float32:
batches only share the work.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import NamedTuple

import torch

from nmt.config.schema import DecodingConfig
from nmt.data.batching import pad_sources
from nmt.data.subwords import Vocabularies
from nmt.decoding.beam import Hypothesis, LengthPenalty, NotNumbersError, beam_search, penalty
from nmt.decoding.grouping import batches, chunks
from nmt.decoding.inference import inference
from nmt.decoding.segments import LONGEST_SEGMENT, longest_segment, segment
from nmt.decoding.unknown_words import WithUnknown, replace_unknown_words
from nmt.errors import UserError
from nmt.models.model_file import load_model, rebuild
from nmt.models.seq2seq import Seq2Seq
from nmt.symbols import UNKNOWN

CHUNK_BATCHES = 10  # batches a chunk of lines holds: enough to sort by length with little padding
USUAL_BEAM = 5  # the largest beam with which batches are as large as batch_tokens says
CHARACTERS_A_PIECE = 4  # a rough mean, to know how many lines are enough before they are cut into pieces


class Translation(NamedTuple):
    """One translation of a line."""

    text: str  # detokenised, on one line
    score: float  # log-probability / length penalty; 0.0 for a blank line
    tokens: list[str]  # the pieces of the translation


class _Options(NamedTuple):
    beam_size: int
    length_penalty: LengthPenalty
    max_length_ratio: float
    batch_tokens: int
    n_best: int
    replace_unknown: Mapping[str, str] | None


class _Segment(NamedTuple):
    """What is translated at once: a line, or a part of one."""

    line: str
    first: int  # the place of its first piece in the line
    ids: list[int]


class _Spelled(NamedTuple):
    """A translation of a segment, with its text."""

    text: str
    tokens: list[int]
    log_probability: float


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
        n_best: int = 1,
        replace_unknown: Mapping[str, str] | None = None,
        waiting: Callable[[], bool] | None = None,
    ) -> Iterator[list[Translation]]:
        """For each line and in order, its `n_best` best translations, best first; fewer if fewer exist.

        None: as `decoding` says. A blank line gives one empty translation without asking the model. A translation has
        at most max_length_ratio × the source's pieces (END counted) + 10 tokens. `batch_tokens`: sentences × longest
        source of a batch, padding included; a longer source is a batch of its own. A larger beam, whose memory grows
        with it, makes smaller batches (see `_search`). A line of more than `longest_segment` pieces is cut (see
        `segment`), its segments' translations are joined with a space, and its score is that of all their tokens
        together.

        `replace_unknown`: a dictionary, which may be empty, with which unknown words are replaced by the source words
        that they attend to (see `unknown_words`); None leaves them as "⁇". `tokens` stay what the model wrote.

        Raises UserError when unknown words are to be replaced and the model has no attention; and, where the first
        line is asked for, when the model computes NaN, as with weights that are not finite.

        `waiting` is asked after each line whether the next one would have to be waited for. If so, what was read is
        translated at once, instead of when a chunk is full.
        """
        defaults = self.decoding
        options = _Options(
            defaults.beam_size if beam_size is None else beam_size,
            defaults.length_penalty if length_penalty is None else length_penalty,
            defaults.max_length_ratio if max_length_ratio is None else max_length_ratio,
            defaults.batch_tokens if batch_tokens is None else batch_tokens,
            n_best,
            replace_unknown,
        )
        if replace_unknown is not None and not self.model.decoder.attention.score.context:
            raise UserError(
                "unknown words cannot be replaced: the model has no attention (model.attention.score: none), which "
                "would say what source word each stands for"
            )
        return self._translations(lines, options, waiting)

    def _translations(
        self, lines: Iterable[str], options: _Options, waiting: Callable[[], bool] | None
    ) -> Iterator[list[Translation]]:
        for chunk in chunks(lines, CHUNK_BATCHES * CHARACTERS_A_PIECE * options.batch_tokens, waiting):
            yield from self._translate_chunk(chunk, options)

    def _translate_chunk(self, lines: Sequence[str], options: _Options) -> list[list[Translation]]:
        segments: list[_Segment] = []
        counts = []  # segments of each line; a blank line has none
        for line, ids in zip(lines, self.vocabularies.source.encode_batch(lines), strict=True):
            parts = self._segments(line, ids) if ids else []
            segments += parts
            counts.append(len(parts))
        hypotheses = iter(self._spelled(segments, self._search([each.ids for each in segments], options), options))
        return [self._join([next(hypotheses) for _ in range(count)], options.length_penalty) for count in counts]

    def _segments(self, line: str, ids: list[int]) -> list[_Segment]:
        if len(ids) <= self.longest_segment:
            return [_Segment(line, 0, ids)]
        slices = segment(self.vocabularies.source.pieces(ids), self.longest_segment)
        return [_Segment(line, part.start, ids[part]) for part in slices]

    def _search(self, segments: Sequence[list[int]], options: _Options) -> list[list[Hypothesis]]:
        """The hypotheses of each segment; segments of like length share a batch."""
        results: dict[int, list[Hypothesis]] = {}
        batch_tokens = options.batch_tokens * USUAL_BEAM // max(USUAL_BEAM, options.beam_size)
        with inference(self.model):
            for batch in batches([len(ids) + 1 for ids in segments], batch_tokens):
                source, lengths = pad_sources([segments[index] for index in batch])
                longest = [math.ceil(options.max_length_ratio * length) + 10 for length in lengths.tolist()]
                try:
                    hypotheses = beam_search(
                        self.model.step,
                        self.model.start(source.to(self.device), lengths.to(self.device)),
                        sentences=len(batch),
                        beam_size=options.beam_size,
                        length_penalty=options.length_penalty,
                        max_lengths=torch.tensor(longest),
                        n_best=options.n_best,
                        device=self.device,
                    )
                except NotNumbersError as error:
                    raise UserError(
                        f"{error}: its weights are not finite, or far too large, as after a training that diverged; "
                        "give an earlier model"
                    ) from error
                results.update(zip(batch, hypotheses, strict=True))
        return [results[index] for index in range(len(segments))]

    def _spelled(
        self, segments: Sequence[_Segment], found: Sequence[Sequence[Hypothesis]], options: _Options
    ) -> list[list[_Spelled]]:
        """The hypotheses of each segment with their texts."""
        decode = self.vocabularies.target.decode
        texts = [[decode(hypothesis.tokens) for hypothesis in best] for best in found]
        if options.replace_unknown is not None:
            places = [(index, rank) for index, best in enumerate(found) for rank in range(len(best))]
            places = [(index, rank) for index, rank in places if UNKNOWN in found[index][rank].tokens]
            replaced = replace_unknown_words(
                self.model,
                self.vocabularies,
                [WithUnknown(*segments[index], found[index][rank].tokens) for index, rank in places],
                dictionary=options.replace_unknown,
                batch_tokens=options.batch_tokens,
            )
            for (index, rank), text in zip(places, replaced, strict=True):
                texts[index][rank] = text
        return [
            [_Spelled(text, each.tokens, each.log_probability) for text, each in zip(*pair, strict=True)]
            for pair in zip(texts, found, strict=True)
        ]

    def _join(self, segments: Sequence[Sequence[_Spelled]], length_penalty: LengthPenalty) -> list[Translation]:
        """The translations of a line: its segments' best, second best … hypotheses, each joined to one."""
        if not segments:
            return [Translation("", 0.0, [])]
        translations = [self._joined(parts, length_penalty) for parts in zip(*segments, strict=False)]
        return sorted(translations, key=lambda translation: -translation.score)

    def _joined(self, parts: Sequence[_Spelled], length_penalty: LengthPenalty) -> Translation:
        length = sum(len(part.tokens) + 1 for part in parts)
        return Translation(
            " ".join(part.text for part in parts if part.text),
            sum(part.log_probability for part in parts) / penalty(length, length_penalty),
            [piece for part in parts for piece in self.vocabularies.target.pieces(part.tokens)],
        )
