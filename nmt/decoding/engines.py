"""What search and forced decoding ask of models, whichever engine computes: PyTorch (`scorer`) or ONNX Runtime
(`runtime`).

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
This knows arrays and ids; it knows no search, no files and no text.

Sutskever et al. (2014), arXiv 1409.3215, section 3.6, translate with an ensemble. Of the toolkits, OpenNMT-py takes
log-probabilities, or probabilities with -avg_raw_probs; Sockeye probabilities (linear) or logits (log_linear).
"""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial, reduce
from operator import add
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from nmt.config.schema import EnsembleName
from nmt.decoding.search.hypotheses import Array, LengthPenalty, Scores, SearchState, source_penalty
from nmt.errors import UserError

if TYPE_CHECKING:
    from nmt.decoding.shortlist import Columns

Ids = Sequence[int]
LEAST = 1e-10  # smaller coverage counts as this: with local attention a token may have none, and log(0) is -∞


class CoveringState(SearchState, Protocol):
    """Where a batch of hypotheses stands in each model."""

    def covered(self) -> tuple[Array, Array | None]:
        """The sum of the weights of all steps (rows, source_length), the mean of the models', and which tokens any of
        them reads (sentences, source_length); None: all."""
        ...


class AnyScorer:
    """Models with equal vocabularies, at least one."""

    most_batches = 1  # that may be searched at once

    def __init__(self, models: int, ensemble: EnsembleName | None, library: Any) -> None:
        """`library`: NumPy or PyTorch, whose arrays it has. Raises UserError for an unknown `ensemble`, and for one of
        a single model."""
        if ensemble is not None and ensemble not in ENSEMBLES:
            raise UserError(f"ensemble is {ensemble!r}; it must be one of {', '.join(ENSEMBLES)}")
        if ensemble is not None and models == 1:
            raise UserError(f"ensemble: {ensemble} has an effect only with several models, and there is one")
        self.ensemble = ensemble
        self.together: Callable[[Sequence[Any]], Any] = partial(ENSEMBLES[ensemble or "log-probabilities"], library)

    @property
    def lacking(self) -> Sequence[str | None]:
        """Of each model that has no attention, the name of its score."""
        raise NotImplementedError

    @property
    def without_attention(self) -> str | None:
        """That the first model of those that have no attention has none; None where all have it."""
        scores = self.lacking
        for number, score in enumerate(scores, 1):
            if score is not None:
                which = "the model" if len(scores) == 1 else f"model {number} of the ensemble's {len(scores)}"
                return f"{which} has no attention (model.attention.score: {score})"
        return None

    @property
    def without_alignments(self) -> str | None:
        """Why no alignments can be read from these models; None where they can."""
        lacking = self.without_attention
        return f"there are no alignments: {lacking} to read them from" if lacking else None

    def inference(self) -> AbstractContextManager[None]:
        """The block in which the models compute."""
        return nullcontext()

    def start(
        self, source: Array, source_lengths: Array, *, coverage: bool = False, columns: "Columns | None" = None
    ) -> Any:
        """Encode `source` (batch, source_length), ids with END, to a CoveringState. `coverage`: for
        `coverage_penalty`. With `columns`, tokens are places among these from here on."""
        raise NotImplementedError

    def step(self, tokens: Array, state: Any, wanted: int | None = None) -> tuple[Scores, Any]:
        """The log-probabilities of what may follow `tokens` (rows,), and the next state, see `Step`."""
        raise NotImplementedError

    def forced(
        self, sources: Sequence[Ids], targets: Sequence[Ids], *, attention: bool, stepwise: bool
    ) -> tuple[list[float], Iterable[Array | None]]:
        """The log-probability of each target, both without END, and its weights (longest target + 1, longest source +
        1), padding included; None unless `attention` is asked for. Each source is encoded once. `stepwise`: for one
        pair, whose attention takes too much memory for all steps at once."""
        raise NotImplementedError


def distinct(sources: Sequence[Ids]) -> tuple[list[Ids], Array]:
    """The different ones of `sources`, and the place of each among them, (sources,)."""
    places = {source: place for place, source in enumerate(dict.fromkeys(map(tuple, sources)))}
    return [*places], np.array([places[tuple(source)] for source in sources])


def mean(_: Any, parts: Sequence[Any]) -> Any:
    """The mean of arrays of one shape: one array is its own mean, and two equal ones have exactly that mean."""
    return parts[0] if len(parts) == 1 else reduce(add, parts) / len(parts)


def mean_of_probabilities(library: Any, parts: Sequence[Any]) -> Any:
    """The logarithm of the mean of probabilities, from their logarithms."""
    return reduce(library.logaddexp, parts) - math.log(len(parts))


def mean_of_logits(library: Any, parts: Sequence[Any]) -> Any:
    """What the mean of logits gives, from log-probabilities (…, vocabulary), which are logits too."""
    logits = mean(library, parts)
    logits = logits - library.amax(logits, axis=-1, keepdims=True)
    return logits - library.log(library.exp(logits).sum(axis=-1, keepdims=True))


ENSEMBLES: dict[EnsembleName, Callable[[Any, Sequence[Any]], Any]] = {
    "log-probabilities": mean,
    "probabilities": mean_of_probabilities,
    "logits": mean_of_logits,
}
"""From the log-probabilities (…, vocabulary) of each model to theirs together, in NumPy or PyTorch, which is given."""


def coverage_penalty(state: CoveringState, beta: float, length_penalty: LengthPenalty) -> Array:
    """cp (rows,), in float64, of hypotheses that end with the step that led to `state`.

        cp(X; Y) = β Σ_j log(min(Σ_i a_ij, 1))

    It is divided by the `source_penalty` of the length penalty.

    a_ij is the attention of target token i to source token j, END counted on both sides; that of an ensemble is the
    mean of its models', over the tokens that any of them reads. cp is at most 0, so translations lose that leave words
    out. It only grows while a translation does, so 0 bounds it for every hypothesis that is not finished. Wu et al.
    (2016), arXiv 1609.08144, equation 14.
    """
    coverage, mask = state.covered()
    covered = np.log(np.clip(coverage.astype(np.float64), LEAST, 1.0))
    tokens = np.full(len(covered), covered.shape[1])
    if mask is not None:
        mask = np.repeat(mask, len(covered) // len(mask), axis=0)
        covered[~mask] = 0.0
        tokens = mask.sum(axis=1)
    penalty: Array = beta * covered.sum(axis=1)
    return penalty / source_penalty(tokens, length_penalty)
