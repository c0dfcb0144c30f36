"""PyTorch as the engine of search and forced decoding: see `engines`.

It knows models and ids; it knows no search, no files and no text.
"""

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from nmt.config.schema import EnsembleName
from nmt.data.batch import make_batch, pad_with_end
from nmt.decoding.engines import AnyScorer, Ids, distinct, mean
from nmt.decoding.search.hypotheses import Array, Scores
from nmt.decoding.shortlist import Columns
from nmt.decoding.threads import share
from nmt.errors import UserError
from nmt.models.scores import SCORES
from nmt.models.seq2seq import SearchState, Seq2Seq
from nmt.models.stepwise import given_steps
from nmt.ops.chunks import CHUNK
from nmt.ops.computing import computing, fused
from nmt.ops.linear import linear
from nmt.ops.masks import length_mask

FEW_ROWS = 10  # on a CPU; with more, the search chooses among all tokens faster than PyTorch


class ScorerState(NamedTuple):
    """Where a batch of hypotheses stands in each model."""

    models: tuple[SearchState, ...]
    columns: tuple[Tensor, ...] | None  # the ids and the barred places of `Columns`; None: no shortlist
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
        """See `CoveringState`."""
        summed = [one.decoder.past.coverage for one in self.models]
        coverage = mean(torch, [one for one in summed if one is not None])  # all models, see `Scorer.start`
        read = [one.memory.mask for one in self.models if one.memory.mask is not None]
        is_padded = len(read) == len(self.models)  # a model without a mask reads every token
        return coverage.cpu().numpy(), torch.stack(read).any(dim=0).cpu().numpy() if is_padded else None


class Scorer(AnyScorer):
    """Models on one device, in PyTorch. With columns, tokens are places among these.

    With the `precision` bfloat16 large products are rounded to it. `ensemble` names the mean of several, a key of
    ENSEMBLES.
    """

    def __init__(
        self,
        models: Iterable[Seq2Seq],
        *,
        precision: torch.dtype = torch.float32,
        ensemble: EnsembleName | None = None,
    ) -> None:
        self.models = tuple(models)
        self.precision = precision
        super().__init__(len(self.models), ensemble, torch)
        self._process = os.getpid()

    @property
    def lacking(self) -> list[str | None]:
        scores = [model.decoder.attention.score for model in self.models]
        names = [next((name for name, kind in SCORES.items() if isinstance(score, kind)), "") for score in scores]
        return [None if score.aligns else name for score, name in zip(scores, names, strict=True)]

    def start(
        self, source: Array, source_lengths: Array, *, coverage: bool = False, columns: Columns | None = None
    ) -> ScorerState:
        device = next((weight.device for weight in self.models[0].parameters()), torch.device("cpu"))
        given = [torch.as_tensor(part, device=device) for part in (source, source_lengths)]
        states = [model.start(*given) for model in self.models]
        if coverage:
            states = [_with_coverage(state) for state in states]
        among = None if columns is None else tuple(torch.from_numpy(part).to(device) for part in columns)
        return ScorerState(tuple(states), among, 1, device)

    def step(self, tokens: Array, state: ScorerState, wanted: int | None = None) -> tuple[Scores, ScorerState]:
        """With columns c, the softmax is over those of the sentence (z: a model's logits), and the others have -inf:

        log p(c | y_<t, x) = z_c - log Σ_{c' of the sentence} exp(z_c')
        """
        there = torch.from_numpy(tokens).to(state.device)
        if state.columns is None:
            steps = [model.step(there, before) for model, before in zip(self.models, state.models, strict=True)]
        else:
            ids, barred = state.columns
            steps = []
            for model, before in zip(self.models, state.models, strict=True):
                vectors, _, following = model.advance(ids[there], before)
                steps.append((model.log_probabilities_among(ids, barred, vectors), following))
        of_models, after = zip(*steps, strict=True)
        values = self.together(of_models)
        many = values.device.type == "cpu" and len(values) > FEW_ROWS
        listed = None if wanted is None or many else _listed(values, wanted)
        return listed or Scores(values.cpu().numpy()), state._replace(models=after)

    def forced(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, attention: bool, stepwise: bool
    ) -> tuple[list[float], Iterable[Array | None]]:
        return (_step_by_step if stepwise else _at_once)(self, sources, targets, attention)

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
        before, here = torch.get_num_threads(), share()
        if here is not None:
            torch.set_num_threads(here)
        modules: list[nn.Module] = [module for model in self.models for module in model.modules() if module.training]
        for module in modules:
            module.training = False
        try:
            with torch.inference_mode(), computing(fused(), self.precision):
                yield
        finally:
            for module in modules:
                module.training = True
            torch.set_num_threads(before)  # it is one number for all that the libraries begin from here on


def _listed(values: Tensor, wanted: int) -> Scores | None:
    """The `wanted` largest values of each row; None where some are equal, whose order PyTorch leaves to chance."""
    largest, ids = values.topk(min(wanted + 1, values.size(1)), dim=1)
    if bool(((largest[:, 1:] == largest[:, :-1]) & (largest[:, 1:] > -math.inf)).any()):
        return None
    return Scores(largest[:, :wanted].cpu().numpy(), ids[:, :wanted].cpu().numpy())


def _with_coverage(state: SearchState) -> SearchState:
    """The state before the first step, which sums up the weights of all steps whether or not the score needs it."""
    nothing = state.memory.values.new_zeros(state.memory.values.shape[:2])
    past = state.decoder.past._replace(coverage=nothing)
    return state._replace(decoder=state.decoder._replace(past=past))


def _at_once(
    scorer: Scorer, sources: Sequence[Ids], targets: Sequence[Ids], attention: bool
) -> tuple[list[float], Iterable[Array | None]]:
    """The log-probability of each pair, and its weights."""
    device = scorer.models[0].output_weight.device
    different, places = distinct(sources)
    source, source_lengths = (part.to(device) for part in pad_with_end(different))
    rows = None if len(different) == len(sources) else torch.from_numpy(places).to(device)
    batch = make_batch(sources, targets, np.arange(len(sources))).to(device)
    mask = length_mask(batch.target_lengths, batch.target_output.size(1))
    vectors, weights = [], []
    for model in scorer.models:
        outputs = model(source, source_lengths, batch.target_input, rows)
        vectors.append(outputs.vectors[mask])
        weights += [outputs.weights] if attention else []
    tokens, chosen = batch.target_output[mask].unsqueeze(1), []
    for start in range(0, len(tokens), CHUNK):  # no tensor (all tokens, vocabulary)
        some = slice(start, start + CHUNK)
        log_probabilities = scorer.together(
            [
                torch.log_softmax(linear(of_model[some], model.output_weight), dim=1)
                for of_model, model in zip(vectors, scorer.models, strict=True)
            ]
        )
        chosen.append(log_probabilities.gather(1, tokens[some]).squeeze(1))
    sums = [float(part.sum()) for part in torch.cat(chosen).cpu().double().split(batch.target_lengths.tolist())]
    return sums, mean(torch, weights).cpu().numpy() if attention else [None] * len(sums)


def _step_by_step(
    scorer: Scorer, sources: Sequence[Ids], targets: Sequence[Ids], attention: bool
) -> tuple[list[float], Iterable[Array | None]]:
    """The same of one pair, whose memory grows with the source, not with source × target × size."""
    pair = make_batch(sources, targets, np.arange(1))
    steps = zip(*(given_steps(model, pair.source, pair.target) for model in scorer.models), strict=True)
    total, rows = 0.0, []
    for token, of_models in zip(pair.target[0, 1:].tolist(), steps, strict=True):
        total += float(scorer.together([log_probabilities for log_probabilities, _ in of_models])[token])
        rows += [mean(torch, [weights for _, weights in of_models]).cpu()] if attention else []
    return [total], [torch.stack(rows).numpy() if attention else None]
