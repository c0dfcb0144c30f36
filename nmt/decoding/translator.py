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
from nmt.decoding.checks import check_options
from nmt.decoding.ensemble import Ensemble, Model, difference, members
from nmt.decoding.grouping import alongside, chunks
from nmt.decoding.search.hypotheses import LengthPenalty
from nmt.decoding.shortlist import Shortlist, load_shortlist
from nmt.decoding.tasks import Options, Task, longest_translation, search
from nmt.decoding.text.constraints import encoded_constraints, impossible
from nmt.decoding.text.prefixes import check_prefix, encoded, word_continuations
from nmt.decoding.text.segments import LONGEST_SEGMENT, longest_segment, segment
from nmt.decoding.text.spelling import Segment, Spelled, Translation, spelled, whole_line
from nmt.errors import UserError
from nmt.models.model_file import load_model, rebuild

__all__ = ["Translation", "Translator"]

CHUNK_BATCHES = 10  # batches a chunk of lines holds: enough to sort by length with little padding
PREFIXES, CONSTRAINTS = "prefixes", "constraint lines"  # what goes beside lines, as messages call it
MOST_CHARACTERS = 1 << 24  # of a chunk, however large a batch may be
CHARACTERS_A_PIECE = 4  # a rough mean, to know how many lines are enough before they are cut into pieces


class _Wanted(NamedTuple):
    options: Options
    replace_unknown: Mapping[str, str] | None
    alignments: bool


class Translator:
    """A model with its vocabularies, ready to translate. `decoding` holds the defaults of `translate`."""

    def __init__(
        self,
        model: Model,
        vocabularies: Vocabularies,
        *,
        decoding: DecodingConfig | None = None,
        device: torch.device | str = "cpu",
        longest_segment: int = LONGEST_SEGMENT,
        shortlist: Shortlist | None = None,
    ) -> None:
        """`model` is on `device`; lines of more than `longest_segment` pieces are translated in several segments.

        `shortlist`: write only its pieces for a source, and those of prefixes and constraints. Raises UserError when it
        is one for other vocabularies.
        """
        if shortlist is not None:
            shortlist.check(vocabularies)
        self.model = model
        self.vocabularies = vocabularies
        self.decoding = decoding or DecodingConfig()
        self.device = torch.device(device)
        self.longest_segment = longest_segment
        self.shortlist = shortlist

    @classmethod
    def load(
        cls,
        path: Path | str | Sequence[Path | str],
        *,
        device: torch.device | str = "cpu",
        precision: str = "float32",
        shortlist: Path | str | None = None,
    ) -> "Translator":
        """Load a model file, or the best model of a run folder; its configuration gives the defaults of `translate`.

        Several paths make an ensemble (see `ensemble`); the first model's configuration gives the defaults, and a line
        is cut where it is too long for any of them. `precision`: float32, or bfloat16 or int8 for weights rounded to
        it, which translates faster and a little differently. The model's weights are packed (`nmt.ops.packed_weights`):
        whoever changes them calls its `pack_weights` again. `shortlist`: a file of
        nmt-shortlist with the pieces that may translate a source, for faster translation (see `shortlist`).

        Raises UserError when there is no such file, it is damaged, or holds no model of this toolkit; and when the
        vocabularies of several, or of the shortlist, are not the same.
        """
        paths = [path] if isinstance(path, Path | str) else list(path)
        if not paths:
            raise UserError("there is no model to load: the list of paths is empty")
        loaded: list[_Loaded] = []
        problems: list[str] = []
        for each in paths:
            try:
                loaded.append(_load(Path(each), device, precision))
            except UserError as error:
                problems.extend(error.messages)
        if problems:
            raise UserError(*problems)
        first = loaded[0]
        for other, translator in zip(paths[1:], loaded[1:], strict=True):
            if differing := difference(first.vocabularies, translator.vocabularies):
                problems.append(f"{paths[0]} and {other} cannot translate together: {differing}")
        if problems:
            raise UserError(*problems)
        listed = None if shortlist is None else load_shortlist(Path(shortlist), first.vocabularies)
        if len(loaded) > 1:
            together = Ensemble([member for each in loaded for member in members(each.model)])
            longest = min(each.longest_segment for each in loaded)
            first = first._replace(model=together, longest_segment=longest)
        return cls(**first._asdict(), device=device, shortlist=listed)

    def translate(
        self,
        lines: Iterable[str],
        *,
        beam_size: int | None = None,
        length_penalty: LengthPenalty | None = None,
        max_length_ratio: float | None = None,
        batch_tokens: int | None = None,
        batch_sentences: int | None = None,
        minimum_length: int | None = None,
        no_repeat_ngram_size: int | None = None,
        suppress_unknown: bool | None = None,
        coverage_penalty: float | None = None,
        n_best: int = 1,
        diversity: float = 0.0,
        sampling: SamplingConfig | None = None,
        prefixes: Iterable[str] | None = None,
        constraints: Iterable[str] | None = None,
        replace_unknown: Mapping[str, str] | None = None,
        alignments: bool = False,
        first: int = 0,
        waiting: Callable[[], bool] | None = None,
    ) -> Iterator[list[Translation]]:
        """For each line and in order, its `n_best` best translations, best first; fewer if fewer exist.

        None: as `decoding` says. A blank line gives one empty translation without asking the model. A translation has
        at most max_length_ratio × the source's pieces (END counted) + 10 tokens. `batch_tokens`: sentences × longest
        source of a batch, padding included; a longer source is a batch of its own. A larger beam, whose memory grows
        with it, makes smaller batches (see `search`). `batch_sentences`: sentences of a batch, at most. A line of more
        than `longest_segment` pieces is cut (see `segment`), its segments' translations are joined with a space, and
        its score is that of all their tokens together.

        A translation has at least `minimum_length` pieces, or as many as its maximal length allows; no sequence of
        `no_repeat_ngram_size` pieces twice, 0 for off; and no unknown piece with `suppress_unknown`. Where this leaves
        nothing to go on with, the translation ends. Of a line that is cut it holds for each segment.

        `coverage_penalty`: β of what is added to the score of a translation that attends too little to parts of the
        source (see `coverage`), 0 for off.

        `diversity`: how much the translations of an n-best list must differ from each other, 0 for not at all (see
        `diverse`): the beam is divided into `n_best` groups, and each gives its best; fewer where they find the same.
        Neither with sampling nor with constraints.

        `sampling`: draw `n_best` translations from the model's distribution instead of searching for the best. They are
        independent of each other and may be equal. What is drawn for a line depends on the seed and the line's place
        in the text only. `beam_size` and `coverage_penalty` then have no effect.

        `prefixes`: for each line what its translation begins with, or "". Its pieces are forced as the subword model
        cuts it, and the text has it as it was given; its last word is complete (see `prefixes`). Of a line that is cut
        the first segment's translation begins with it.

        `constraints`: for each line the phrases that its translations must contain, with tabs between them, or "" (see
        `constraints` and `constrained`). Of a line that is cut the first segment's translation has them all. Unknown
        words stay where they would be replaced together with a phrase.

        `replace_unknown`: a dictionary, which may be empty, with which unknown words are replaced by the source words
        that they attend to (see `unknown_words`); None leaves them as "⁇". `tokens` stay what the model wrote.

        `alignments`: fill in `alignment` and `soft_alignment`, from the attention with which the model writes each word
        when it is made to write the translation again. Words are those of the line and of the text, `str.split()`.

        Raises UserError when unknown words are to be replaced, or alignments asked for, and the model has no attention;
        and, where the first line is asked for, when the model computes NaN, as with weights that are not finite.

        `first`: the place in the text of the first of `lines`, where they are only a part of it.

        `waiting` is asked after each line whether the next one would have to be waited for. If so, what was read is
        translated at once, instead of when a chunk is full.
        """
        given = {
            "beam_size": beam_size,
            "length_penalty": length_penalty,
            "max_length_ratio": max_length_ratio,
            "batch_tokens": batch_tokens,
            "batch_sentences": batch_sentences,
            "minimum_length": minimum_length,
            "no_repeat_ngram_size": no_repeat_ngram_size,
            "suppress_unknown": suppress_unknown,
            "coverage_penalty": coverage_penalty,
        }
        given = {name: value for name, value in given.items() if value is not None}
        bound = prefixes is not None or constraints is not None
        continuing = word_continuations(self.vocabularies.target) if bound else None
        decoding = self.decoding.model_copy(update=given)
        options = Options(decoding, n_best, sampling, diversity, continuing, shortlist=self.shortlist)
        check_options(
            self.model,
            options,
            replace_unknown=replace_unknown is not None,
            constraints=constraints is not None,
            alignments=alignments,
        )
        characters = min(CHUNK_BATCHES * CHARACTERS_A_PIECE * options.decoding.batch_tokens, MOST_CHARACTERS)
        read = alongside(chunks(lines, characters, waiting), {PREFIXES: prefixes, CONSTRAINTS: constraints})
        return self._translations(read, first, _Wanted(options, replace_unknown, alignments))

    def _translations(
        self, chunks: Iterable[tuple[list[str], dict[str, list[str] | None]]], first: int, wanted: _Wanted
    ) -> Iterator[list[Translation]]:
        for lines, beside in chunks:
            yield from self._translate_chunk(lines, beside, first, wanted)
            first += len(lines)

    def _translate_chunk(
        self, lines: Sequence[str], beside: Mapping[str, Sequence[str] | None], first: int, wanted: _Wanted
    ) -> list[list[Translation]]:
        """The translations of `lines`, from line `first` of the text on; `beside` is what goes with each."""
        segments: list[Segment] = []
        tasks: list[Task] = []
        problems: list[str] = []
        counts = []  # segments of each line; a blank line has none
        nothing, target = [""] * len(lines), self.vocabularies.target
        prefixes = encoded(beside[PREFIXES] or nothing, target)
        phrases = encoded_constraints(beside[CONSTRAINTS] or nothing, target)
        encoded_lines = self.vocabularies.source.encode_batch(lines)
        for number, (line, ids, prefix, own) in enumerate(
            zip(lines, encoded_lines, prefixes, phrases, strict=True), first
        ):
            parts = self._segments(line, ids) if ids and not line.isspace() else []
            longest = longest_translation(len(parts[0].ids) + 1 if parts else 1, wanted.options.decoding)
            check_prefix(prefix, line=number, blank=not parts, longest=longest)
            problems += impossible(own, line=number, blank=not parts, longest=longest, prefix=prefix)
            segments += parts
            tasks += [Task(part.ids, (number, index), prefix, own) for index, part in enumerate(parts[:1])]
            tasks += [Task(part.ids, (number, index)) for index, part in enumerate(parts[1:], 1)]
            counts.append(len(parts))
        if problems:
            raise UserError(*problems)
        found = search(self.model, tasks, wanted.options, device=self.device)
        hypotheses = iter(
            spelled(
                self.model,
                self.vocabularies,
                segments,
                [task.prefix for task in tasks],
                [task.phrases for task in tasks],
                found,
                replace_unknown=wanted.replace_unknown,
                alignments=wanted.alignments,
                batch_tokens=wanted.options.decoding.batch_tokens,
            )
        )
        return [self._joined([next(hypotheses) for _ in range(count)], wanted) for count in counts]

    def _joined(self, segments: Sequence[Sequence[Spelled]], wanted: _Wanted) -> list[Translation]:
        length_penalty = wanted.options.decoding.length_penalty
        return whole_line(
            segments, self.vocabularies.target, length_penalty=length_penalty, alignments=wanted.alignments
        )

    def _segments(self, line: str, ids: list[int]) -> list[Segment]:
        if len(ids) <= self.longest_segment:
            return [Segment(line, 0, ids)]
        slices = segment(self.vocabularies.source.pieces(ids), self.longest_segment)
        return [Segment(line, part.start, ids[part]) for part in slices]


class _Loaded(NamedTuple):
    """What a translator is made of."""

    model: Model
    vocabularies: Vocabularies
    decoding: DecodingConfig
    longest_segment: int


def _load(path: Path, device: torch.device | str, precision: str) -> _Loaded:
    file = load_model(path)
    try:
        model = rebuild(file)
        vocabularies = Vocabularies.from_bytes(file.source_subwords, file.target_subwords, file.sizes)
    except (KeyError, ValueError, UserError) as error:
        reason = shorten(str(error), 200, placeholder=" …")  # PyTorch names every weight that does not fit
        raise UserError(f"{path}: damaged: its parts do not fit together ({reason})") from error
    longest = longest_segment(file.config.data.max_length)
    model = model.to(device)
    model.pack_weights(precision)
    return _Loaded(model, vocabularies, file.config.decoding, longest)
