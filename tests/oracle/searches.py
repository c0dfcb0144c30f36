"""Beam search over Python lists: a hypothesis is its words, and what the models say after them is remembered by these
words, so that no state is ever moved from one hypothesis to another.

docs/models.md, "Search" and "Ensembles". Part of the oracle; see equations.py. It never stops early because nothing
better can come: what it finds shows that such shortcuts change no result.

    length penalty, coverage penalty    Wu et al. 2016, arXiv 1609.08144, equation 14
    no n-gram twice                     Paulus et al. 2017, arXiv 1705.04304, section 2.5
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, log
from typing import Any, NamedTuple

import numpy as np

from tests.oracle.equations import Memory, Model, Step, Vector

PAD, UNKNOWN, BEGIN, END = range(4)
Settings = dict[str, Any]


class Translation(NamedTuple):
    """A finished hypothesis."""

    tokens: list[int]  # without BEGIN and END
    score: float
    log_probability: float


def log_probabilities(every: Sequence[Vector]) -> Vector:
    return np.asarray(sum(every) / len(every))


def logits(every: Sequence[Vector]) -> Vector:
    mean = sum(every) / len(every)  # that of the logits, up to a number that is the same for all words
    return np.asarray(mean - np.log(np.exp(mean).sum()))


def probabilities(every: Sequence[Vector]) -> Vector:
    return np.asarray(np.log(sum(np.exp(one) for one in every) / len(every)))


ENSEMBLES: dict[str, Callable[[Sequence[Vector]], Vector]] = {
    "log-probabilities": log_probabilities,
    "logits": logits,
    "probabilities": probabilities,
}


class Reader:
    """What models say together after a prefix."""

    def __init__(self, models: Sequence[Model], source: Sequence[int], ensemble: str = "log-probabilities") -> None:
        self.models, self.source, self.together = models, source, ENSEMBLES[ensemble]
        self.encoded = [model.encode(source) for model in models]
        self.known: dict[tuple[int, ...], list[tuple[list[Step], Memory]]] = {}

    def read(self, words: tuple[int, ...]) -> list[tuple[list[Step], Memory]]:
        """Of each model, what it says at each step when it reads `words`, and its memory then."""
        if not words:
            return [([], model.start(source)) for model, source in zip(self.models, self.encoded, strict=True)]
        if words not in self.known:
            self.known[words] = []
            for model, source, (said, memory) in zip(self.models, self.encoded, self.read(words[:-1]), strict=True):
                step, memory = model.step(words[-1], memory, source)
                self.known[words].append(([*said, step], memory))
        return self.known[words]

    def after(self, prefix: Sequence[int]) -> Vector:
        """The log-probabilities of the next word."""
        return self.together([said[-1].log_probabilities for said, _ in self.read((BEGIN, *prefix))])

    def coverage(self, tokens: Sequence[int]) -> Vector:
        """Σ_t a_tj over the words of a translation and its END, of the models' mean attention."""
        said = [steps for steps, _ in self.read((BEGIN, *tokens))]
        return np.asarray(sum(step.weights for steps in said for step in steps) / len(self.models))


def beam_search(reader: Reader, decoding: Settings) -> list[Translation]:
    """All translations that the search finishes, best first; `decoding` is that section with all its keys."""
    beam_size = decoding["beam_size"]
    source = len(reader.source)
    longest = max(ceil(decoding["max_length_ratio"] * source) + decoding["max_length_extra"], 2)
    ratio = Fraction(str(decoding["minimum_length_ratio"]))
    shortest = min(max(decoding["minimum_length"], ceil(ratio * (source - 1))), longest - 1)
    live: list[tuple[float, list[int]]] = [(0.0, [])]
    finished: list[Translation] = []
    for length in range(1, longest + 1):
        continued = []
        for rank, (total, prefix) in enumerate(live):
            said = reader.after(prefix)
            for word in allowed(prefix, len(said), decoding, shortest=shortest, longest=longest):
                continued.append((-(total + said[word]), rank, word))
        best = [(-negative, live[rank][1], word) for negative, rank, word in sorted(continued)[: 2 * beam_size]]
        for total, prefix, word in best[:beam_size]:
            if word == END:
                score = total / length_penalty(length, decoding["length_penalty"])
                if decoding["coverage_penalty"]:
                    coverage = reader.coverage(prefix)
                    penalty = coverage_penalty(coverage, decoding["coverage_penalty"])
                    score += penalty / len(coverage) if decoding["length_penalty"] == "average" else penalty
                finished.append(Translation(prefix, score, total))
        live = [(total, [*prefix, word]) for total, prefix, word in best if word != END][:beam_size]
        if not live or settled(finished, live[0][0] / length_penalty(length, decoding["length_penalty"]), beam_size):
            break
    return sorted(finished, key=lambda translation: -translation.score)


def settled(finished: Sequence[Translation], standing: float, beam_size: int) -> bool:
    """Whether as many translations as the beam is wide have ended, and the best living one stands no better than the
    best of them."""
    return len(finished) >= beam_size and max(translation.score for translation in finished) >= standing


def allowed(prefix: list[int], vocabulary: int, decoding: Settings, *, shortest: int, longest: int) -> list[int]:
    """The words that may follow; END alone where the translation is as long as it may be, or nothing else is left."""
    if len(prefix) == longest - 1:
        return [END]
    words = [word for word in range(vocabulary) if word not in (PAD, BEGIN)]
    if decoding["suppress_unknown"]:
        words.remove(UNKNOWN)
    if len(prefix) < shortest:
        words.remove(END)
    if size := decoding["no_repeat_ngram_size"]:
        words = [word for word in words if not repeats([*prefix, word], size)]
    return words or [END]


def repeats(tokens: list[int], size: int) -> bool:
    """Whether the last `size` tokens occur before, as a sequence."""
    earlier = [tokens[first : first + size] for first in range(len(tokens) - size)]
    return len(tokens) >= size and tokens[-size:] in earlier


def length_penalty(length: int, kind: str | float) -> float:
    """L(n), n counting END."""
    if kind == "none":
        return 1.0
    return float(length) if kind == "average" else ((5 + length) / 6) ** kind


def coverage_penalty(coverage: Vector, beta: float) -> float:
    """β Σ_j log min(Σ_t a_tj, 1), where a sum below 1e-10 counts as that."""
    return beta * sum(log(min(max(float(covered), 1e-10), 1.0)) for covered in coverage)
