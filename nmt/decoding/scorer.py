"""What scores the next word: one model, or several together, over the whole vocabulary or the columns of a shortlist.

Each model reads the source, and a step takes a mean of what they say; with one model, that is what it says. With p_m =
softmax(z_m) of M models, and w any word, there are three:

    log-probabilities    log p(y_t | y_<t, x) = 1/M Σ_m log p_m(y_t | y_<t, x)
    logits               log p(y_t | y_<t, x) = 1/M Σ_m z_m(y_t) - log Σ_w exp(1/M Σ_m z_m(w))
    probabilities        log p(y_t | y_<t, x) = log 1/M Σ_m p_m(y_t | y_<t, x)

The mean of log-probabilities, the default, is the geometric mean of probabilities: what one model considers impossible
is not written just because the others like it. It is not normalized again, so the log-probability of a translation is
exactly the mean of those that the models give it. The mean of logits is the same divided by its sum: p_m and z_m differ
by a number that does not depend on the word. The arithmetic mean of probabilities writes what some model is sure of. In
all three a log-probability only falls with every token. The models need equal vocabularies, and nothing else in common.
It knows models and ids; it knows no search, no files and no text.

Sutskever et al. (2014), arXiv 1409.3215, section 3.6, translate with an ensemble. Of the toolkits, OpenNMT-py takes
log-probabilities, or probabilities with -avg_raw_probs; Sockeye probabilities (linear) or logits (log_linear).
"""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nmt.config.schema import EnsembleName
from nmt.decoding.search.hypotheses import Array, Scores
from nmt.decoding.shortlist import Columns
from nmt.errors import UserError
from nmt.models.scores import SCORES
from nmt.models.seq2seq import SearchState, Seq2Seq

FEW_ROWS = 10  # on a CPU; with more, the search chooses among all tokens faster than PyTorch
LEAST = 1e-10  # smaller coverage counts as this: with local attention a token may have none, and log(0) is -∞


class ScorerState(NamedTuple):
    """Where a batch of hypotheses stands in each model."""

    models: tuple[SearchState, ...]
    columns: tuple[Tensor, Tensor] | None  # the ids and the barred places of `Columns`; None: no shortlist
    beam: int  # hypotheses of a sentence
    device: torch.device

    def select(self, rows: Array) -> "ScorerState":
        """The hypotheses `rows` (sentences, beam), as `SearchState.select`."""
        columns, device = self.columns, self.device
        if columns is not None and len(rows) != len(columns[1]):
            columns = columns[0], columns[1][torch.from_numpy(rows[:, 0] // self.beam).to(device)]
        places = torch.from_numpy(rows).to(device)
        return ScorerState(tuple(state.select(places) for state in self.models), columns, rows.shape[1], device)

    def covered(self) -> tuple[Array, Array | None]:
        """The sum of the weights of all steps (rows, source_length), the mean of the models', and which tokens any of
        them reads (sentences, source_length); None: all."""
        summed = [one.decoder.past.coverage for one in self.models]
        coverage = mean([of_model for of_model in summed if of_model is not None])  # all models, see `Scorer.start`
        read = [one.memory.mask for one in self.models if one.memory.mask is not None]
        is_padded = len(read) == len(self.models)  # a model without a mask reads every token
        return coverage.cpu().numpy(), torch.stack(read).any(dim=0).cpu().numpy() if is_padded else None


class Scorer:
    """Models with equal vocabularies, at least one, on one device. With `columns`, tokens are places among these.

    `ensemble` names the mean of several, a key of ENSEMBLES. Raises UserError for an unknown one, and for one model.
    """

    columns: Columns | None = None

    def __init__(self, models: Iterable[Seq2Seq], *, ensemble: EnsembleName | None = None) -> None:
        self.models = tuple(models)
        self.ensemble = ensemble
        if ensemble is not None and ensemble not in ENSEMBLES:
            raise UserError(f"ensemble is {ensemble!r}; it must be one of {', '.join(ENSEMBLES)}")
        if ensemble is not None and len(self.models) == 1:
            raise UserError(f"ensemble: {ensemble} has an effect only with several models, and there is one")
        self.together = ENSEMBLES[ensemble or "log-probabilities"]
        self._process = os.getpid()

    def among(self, columns: Columns) -> "Scorer":
        """The same models over these columns."""
        same = copy(self)
        same.columns = columns
        return same

    @property
    def is_packed(self) -> bool:
        """Whether several threads may compute with it (see `Seq2Seq.is_packed`)."""
        return all(model.is_packed for model in self.models)

    @property
    def without_attention(self) -> str | None:
        """That the first model of those that have no attention has none; None where all have it."""
        for number, model in enumerate(self.models, 1):
            score = model.decoder.attention.score
            if not score.aligns:
                which = "the model" if len(self.models) == 1 else f"model {number} of the ensemble's {len(self.models)}"
                name = next(name for name, kind in SCORES.items() if isinstance(score, kind))
                return f"{which} has no attention (model.attention.score: {name})"
        return None

    @property
    def without_alignments(self) -> str | None:
        """Why no alignments can be read from these models; None where they can."""
        lacking = self.without_attention
        return f"there are no alignments: {lacking} to read them from" if lacking else None

    def start(self, source: Tensor, source_lengths: Tensor, *, coverage: bool = False) -> ScorerState:
        """Encode `source` (batch, source_length), ids with END. `coverage`: for `coverage_penalty`."""
        device = next((weight.device for weight in self.models[0].parameters()), torch.device("cpu"))
        states = [model.start(source.to(device), source_lengths.to(device)) for model in self.models]
        if coverage:
            states = [_with_coverage(state) for state in states]
        columns = None
        if self.columns is not None:
            ids, barred = (torch.from_numpy(part).to(device) for part in self.columns)
            columns = ids, barred
        return ScorerState(tuple(states), columns, 1, device)

    def step(self, tokens: Array, state: ScorerState, wanted: int | None = None) -> tuple[Scores, ScorerState]:
        """The log-probabilities of what may follow `tokens` (rows,), and the next state, see `Step`.

        With columns c, the softmax is over those of the sentence (z: the logits of a model), and the others have -inf:

            log p(c | y_<t, x) = z_c - log Σ_{c' of the sentence} exp(z_c')
        """
        there = torch.from_numpy(tokens).to(state.device)
        if state.columns is None:
            steps = [model.step(there, before) for model, before in zip(self.models, state.models, strict=True)]
        else:
            steps = list(self._steps_among(*state.columns, there, state))
        of_models, following = zip(*steps, strict=True)
        values = self.together(of_models)
        after = ScorerState(following, *state[1:])
        many = values.device.type == "cpu" and len(values) > FEW_ROWS
        listed = None if wanted is None or many else _listed(values, wanted)
        return listed or Scores(values.cpu().numpy()), after

    def _steps_among(
        self, ids: Tensor, barred: Tensor, tokens: Tensor, state: ScorerState
    ) -> Iterator[tuple[Tensor, SearchState]]:
        for model, before in zip(self.models, state.models, strict=True):
            vectors, _, following = model.advance(ids[tokens], before)
            yield model.log_probabilities_among(ids, barred, vectors), following

    @contextmanager
    def inference(self) -> Iterator[None]:
        """Run the block without gradients and with all models in evaluation; then each module has its own mode again.

        So a model may translate in the middle of its training. Raises UserError in a process that was forked after the
        models were loaded, where PyTorch waits for ever for the threads of its parent.
        """
        if os.getpid() != self._process and torch.get_num_threads() > 1:
            raise UserError(
                "this process was forked after the model had been loaded, and PyTorch's threads do not work in it: "
                "start it by multiprocessing's method spawn, or call torch.set_num_threads(1) in it"
            )
        modules: list[nn.Module] = [module for model in self.models for module in model.modules() if module.training]
        for module in modules:
            module.training = False
        try:
            with torch.inference_mode():
                yield
        finally:
            for module in modules:
                module.training = True


def _listed(values: Tensor, wanted: int) -> Scores | None:
    """The `wanted` largest values of each row; None where some are equal, whose order PyTorch leaves to chance."""
    largest, ids = values.topk(min(wanted + 1, values.size(1)), dim=1)
    if bool(((largest[:, 1:] == largest[:, :-1]) & (largest[:, 1:] > -math.inf)).any()):
        return None
    return Scores(largest[:, :wanted].cpu().numpy(), ids[:, :wanted].cpu().numpy())


def mean(parts: Sequence[Tensor]) -> Tensor:
    """The mean of tensors of one shape: one tensor is its own mean, and two equal ones have exactly that mean."""
    return parts[0] if len(parts) == 1 else torch.stack(tuple(parts)).sum(dim=0) / len(parts)


def mean_of_probabilities(parts: Sequence[Tensor]) -> Tensor:
    """The logarithm of the mean of probabilities, from their logarithms."""
    return torch.stack(tuple(parts)).logsumexp(dim=0) - math.log(len(parts))


def mean_of_logits(parts: Sequence[Tensor]) -> Tensor:
    """What the mean of logits gives, from log-probabilities (…, vocabulary), which are logits too."""
    return mean(parts).log_softmax(dim=-1)


ENSEMBLES: dict[EnsembleName, Callable[[Sequence[Tensor]], Tensor]] = {
    "log-probabilities": mean,
    "probabilities": mean_of_probabilities,
    "logits": mean_of_logits,
}
"""From the log-probabilities (…, vocabulary) of each model to theirs together."""


def coverage_penalty(state: ScorerState, beta: float) -> Array:
    """cp (rows,), in float64, of hypotheses that end with the step that led to `state`.

        cp(X; Y) = β Σ_j log(min(Σ_i a_ij, 1))

    a_ij is the attention of target token i to source token j, END counted on both sides; that of an ensemble is the
    mean of its models', over the tokens that any of them reads. cp is at most 0, so translations lose that leave words
    out. It only grows while a translation does, so 0 bounds it for every hypothesis that is not finished. Wu et al.
    (2016), arXiv 1609.08144, equation 14.
    """
    coverage, mask = state.covered()
    covered = np.log(np.clip(coverage.astype(np.float64), LEAST, 1.0))
    if mask is not None:
        covered[~np.repeat(mask, len(covered) // len(mask), axis=0)] = 0.0
    penalty: Array = beta * covered.sum(axis=1)
    return penalty


def _with_coverage(state: SearchState) -> SearchState:
    """The state before the first step, which sums up the weights of all steps whether or not the score needs it."""
    nothing = state.memory.values.new_zeros(state.memory.values.shape[:2])
    past = state.decoder.past._replace(coverage=nothing)
    return state._replace(decoder=state.decoder._replace(past=past))
