"""Ids in, hypotheses out: sources of like length share a batch, and each batch is searched under the options' rules.

It knows models and the search, neither text nor lines. What is found for a source does not depend on its batch, beyond
the rounding of float32.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig, SamplingConfig
from nmt.data.batching import pad_sources
from nmt.decoding.columns import Columns, ColumnState, column_step
from nmt.decoding.coverage import coverage_penalty, with_coverage
from nmt.decoding.ensemble import EnsembleState, Model, members
from nmt.decoding.grouping import batches
from nmt.decoding.inference import inference
from nmt.decoding.search.beam import beam_search
from nmt.decoding.search.choices import NotNumbersError
from nmt.decoding.search.constrained import Bounds, constrained_search
from nmt.decoding.search.diverse import diverse_search
from nmt.decoding.search.hypotheses import Hypothesis, State, Step
from nmt.decoding.search.phrases import Phrases
from nmt.decoding.search.rules import (
    ForcedPrefix,
    MinimumLength,
    NoLongerWord,
    NoRepeatedNgrams,
    NoUnknown,
    Rule,
)
from nmt.decoding.search.sampling import numbers, sample
from nmt.decoding.shortlist import Shortlist
from nmt.decoding.text.constraints import Phrase
from nmt.decoding.text.prefixes import Prefix
from nmt.decoding.threads import MOST, Check, side_by_side
from nmt.errors import UserError
from nmt.ops.memory import in_halves
from nmt.symbols import PAD, UNKNOWN

USUAL_BEAM = 5  # the largest beam with which batches are as large as batch_tokens says


class Options(NamedTuple):
    """How to search."""

    decoding: DecodingConfig
    n_best: int = 1
    sampling: SamplingConfig | None = None  # to draw n_best translations instead of searching for them
    diversity: float = 0.0  # of n-best lists, more than 0 for a diverse search; neither for sampling nor with phrases
    continuing: Tensor | None = None  # (vocabulary,), the pieces that make a word longer; for prefixes and phrases
    unknown_continues: bool = False  # whether UNKNOWN may too: where any piece does; not in a word model
    shortlist: Shortlist | None = None  # the pieces that may be written; those of prefixes and phrases may be besides

    @property
    def rows(self) -> int:
        """The hypotheses of a sentence that are computed together."""
        return self.decoding.beam_size if self.sampling is None else self.n_best


class Task(NamedTuple):
    """What is searched for at once."""

    source: list[int]  # without END
    place: tuple[int, int]  # of the line in the text, of the segment in the line: what is drawn depends on it
    prefix: Prefix = Prefix()  # what the translation begins with
    phrases: Sequence[Phrase] = ()  # what it must contain; not for sampling


def search(
    model: Model, tasks: Sequence[Task], options: Options, *, device: torch.device | str
) -> list[list[Hypothesis]]:
    """The hypotheses of each task, best first, or as they were drawn; tasks of like length share a batch.

    Tasks with phrases have batches of their own, so the others are searched as if there were none. A batch that the
    memory does not hold is halved.

    Each task has at least one. Raises UserError for a model that computes NaN, or gives no translation a probability
    above 0.
    """
    if options.continuing is not None:  # asked of the whole vocabulary, not of a batch's shortlist
        options = options._replace(unknown_continues=bool(options.continuing.any()))

    def hypotheses_of(batch: Sequence[int], check: Check) -> list[list[Hypothesis]]:
        try:
            found = _searched(model, [tasks[index] for index in batch], options, device, check)
            if not all(found):
                raise NotNumbersError("the model gives every translation of a line the probability 0")
        except NotNumbersError as error:
            raise UserError(
                f"{error}: its weights are not finite, or far too large, as after a training that diverged; "
                "give an earlier model"
            ) from error
        return found

    def in_memory(batch: Sequence[int], check: Check) -> list[list[Hypothesis]]:
        return in_halves(partial(hypotheses_of, check=check), batch)

    every = list(_batches(tasks, options))
    with inference(model):
        packed = all(getattr(member, "is_packed", False) for member in members(model))
        found = side_by_side(in_memory, every, most=MOST if packed else 1)
    results = dict(zip(chain(*every), chain(*found), strict=True))
    return [results[index] for index in range(len(tasks))]


def _batches(tasks: Sequence[Task], options: Options) -> Iterator[list[int]]:
    """The places of tasks that are searched together."""
    batch_tokens = options.decoding.batch_tokens * USUAL_BEAM // max(USUAL_BEAM, options.rows)
    for constrained in (False, True):
        places = [place for place, task in enumerate(tasks) if bool(task.phrases) == constrained]
        lengths = [len(tasks[place].source) + 1 for place in places]
        for batch in batches(lengths, batch_tokens, options.decoding.batch_sentences):
            yield [places[index] for index in batch]


def longest_translation(source: int, decoding: DecodingConfig) -> int:
    """The most tokens, END counted, of a translation of `source` tokens, END counted."""
    return math.ceil(decoding.max_length_ratio * source) + 10


def _searched(
    model: Model, tasks: Sequence[Task], options: Options, device: torch.device | str, check: Check
) -> list[list[Hypothesis]]:
    """The hypotheses of the tasks of one batch; `check` is called at each step."""
    decoding = options.decoding
    source, lengths = pad_sources([task.source for task in tasks])
    limits = torch.tensor([longest_translation(length, decoding) for length in lengths.tolist()], device=device)
    state: Any = model.start(source.to(device), lengths.to(device))  # of a model or an ensemble
    supplement: Callable[[Any], Tensor] | None = None
    if decoding.coverage_penalty and options.sampling is None:
        state, supplement = with_coverage(state), partial(coverage_penalty, beta=decoding.coverage_penalty)
    if options.shortlist is None:
        return _ruled(_checked(model.step, check), state, tasks, limits, options, supplement)
    columns = Columns.of(options.shortlist, source, [_wanted(task) for task in tasks], device)
    tasks = [_in_columns(task, columns) for task in tasks]
    if options.continuing is not None:
        options = options._replace(continuing=options.continuing.to(device)[columns.ids])
    inner = state if isinstance(state, EnsembleState) else EnsembleState((state,))
    inside = None if supplement is None else partial(_of_inner, supplement)
    first = ColumnState(inner, columns.barred, 1)
    step = _checked(column_step(model, columns), check)
    found, ids = _ruled(step, first, tasks, limits, options, inside), columns.ids.tolist()
    return [[each._replace(tokens=[ids[column] for column in each.tokens]) for each in best] for best in found]


def _checked(step: Step[Any], check: Check) -> Step[Any]:
    def checked(tokens: Tensor, state: Any) -> tuple[Tensor, Any]:
        check()
        return step(tokens, state)

    return checked


def _wanted(task: Task) -> list[int]:
    """The pieces that its prefix and phrases need."""
    return task.prefix.tokens + [token for phrase in task.phrases for token in phrase.tokens]


def _in_columns(task: Task, columns: Columns) -> Task:
    """The task, with columns in place of target ids."""
    if not _wanted(task):
        return task
    phrases = [phrase._replace(tokens=columns.places(phrase.tokens)) for phrase in task.phrases]
    return task._replace(prefix=task.prefix._replace(tokens=columns.places(task.prefix.tokens)), phrases=phrases)


def _ruled(
    step: Step[State],
    state: State,
    tasks: Sequence[Task],
    limits: Tensor,
    options: Options,
    supplement: Callable[[State], Tensor] | None,
) -> list[list[Hypothesis]]:
    """What is found from a first state under the rules of `options`, after the prefixes, with the phrases."""
    decoding, device = options.decoding, limits.device
    rules = _rules(limits, decoding)
    if options.continuing is not None and any(task.prefix.tokens for task in tasks):
        rules += _prefix_rules([task.prefix for task in tasks], options.continuing.to(device))
    if not tasks[0].phrases:
        return _found(step, state, tasks, limits, options, rules, supplement)
    return constrained_search(
        step,
        state,
        _bounds(tasks, options, device),
        beam_size=decoding.beam_size,
        length_penalty=decoding.length_penalty,
        max_lengths=limits,
        n_best=options.n_best,
        rules=rules,
        supplement=supplement,
    )


def _of_inner(function: Callable[[Any], Tensor], state: ColumnState) -> Tensor:
    return function(state.inner)


def _found(
    step: Step[State],
    state: State,
    tasks: Sequence[Task],
    limits: Tensor,
    options: Options,
    rules: Sequence[Rule],
    supplement: Callable[[State], Tensor] | None,
) -> list[list[Hypothesis]]:
    """What is searched for or drawn from a first state, of translations of at most `limits` (sentences,) tokens."""
    decoding, sampling = options.decoding, options.sampling
    if sampling is not None:
        places, steps = [task.place for task in tasks], int(limits.max())
        return sample(
            step,
            state,
            numbers=numbers(sampling.seed, places, samples=options.n_best, steps=steps),
            sampling=sampling,
            length_penalty=decoding.length_penalty,
            max_lengths=limits,
            rules=rules,
        )
    if options.diversity:
        return diverse_search(
            step,
            state,
            groups=options.n_best,
            group_size=decoding.beam_size // options.n_best,
            strength=options.diversity,
            length_penalty=decoding.length_penalty,
            max_lengths=limits,
            rules=rules,
            supplement=supplement,
        )
    return beam_search(
        step,
        state,
        beam_size=decoding.beam_size,
        length_penalty=decoding.length_penalty,
        max_lengths=limits,
        n_best=options.n_best,
        rules=rules,
        supplement=supplement,
    )


def _rules(limits: Tensor, decoding: DecodingConfig) -> list[Rule]:
    """What `decoding` forbids; a sentence's maximal length, `limits` (sentences,), prevails over its minimal one."""
    rules: list[Rule] = []
    if decoding.minimum_length:
        rules.append(MinimumLength((limits - 1).clamp(max=decoding.minimum_length)))
    if decoding.no_repeat_ngram_size:
        rules.append(NoRepeatedNgrams(decoding.no_repeat_ngram_size))
    if decoding.suppress_unknown:
        rules.append(NoUnknown())
    return rules


def _bounds(tasks: Sequence[Task], options: Options, device: torch.device | str) -> Bounds:
    """What translations with phrases are bound by, which all of `tasks` have."""
    assert options.continuing is not None
    phrases = Phrases([[phrase.tokens for phrase in task.phrases] for task in tasks], device)
    complete = torch.zeros_like(phrases.lengths, dtype=torch.bool)
    for row, task in enumerate(tasks):
        complete[row, : len(task.phrases)] = torch.tensor([phrase.complete for phrase in task.phrases], device=device)
    continuing = options.continuing.clone()
    continuing[UNKNOWN] = options.unknown_continues  # in a word model it may be replaced, and the word that it is in
    return Bounds(phrases, complete, continuing.to(device))


def _prefix_rules(prefixes: Sequence[Prefix], continuing: Tensor) -> list[Rule]:
    lengths = torch.tensor([len(prefix.tokens) for prefix in prefixes], device=continuing.device)
    padded = [prefix.tokens + [PAD] * (int(lengths.max()) - len(prefix.tokens)) for prefix in prefixes]
    complete = torch.tensor([prefix.complete for prefix in prefixes], device=continuing.device)
    tokens = torch.tensor(padded, device=continuing.device)
    return [NoLongerWord(lengths, complete, continuing), ForcedPrefix(tokens, lengths)]
