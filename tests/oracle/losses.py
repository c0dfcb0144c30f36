"""What training minimizes, in plain NumPy: docs/models.md, "Output and loss". Part of the oracle; see equations.py.

label smoothing     Szegedy et al. 2016, arXiv 1512.00567, section 7
guided alignment    Chen et al. 2016, arXiv 1607.01628, equations 6 and 7
"""

from collections.abc import Sequence

import numpy as np

from tests.oracle.equations import Step, Vector

Links = Sequence[tuple[int, int]]  # of words: source, target


def cross_entropy(said: Sequence[Step], targets: Sequence[int], smoothing: float) -> Vector:
    """Summed over the words `targets`, END last: -(1 - ε) log p(y_t) - (ε / V) Σ_w log p(w)."""
    total = np.zeros(())
    for step, word in zip(said, targets, strict=True):
        every = step.log_probabilities
        total = total - (1 - smoothing) * every[word] - smoothing / len(every) * every.sum()
    return total


def guidance(links: Links, source_words: Sequence[int], target_words: Sequence[int], shape: tuple[int, int]) -> Vector:
    """A, (target pieces and END, source pieces and END): A_tj = 1 / (n_w m_v) for piece t of the word w and piece j of
    the word v, if w and v are linked; n_w words are linked to w, and v has m_v pieces. `source_words` has the word of
    each source piece."""
    shares = np.zeros(shape)
    for v, w in links:
        linked = sum(1 for _, other in links if other == w)
        pieces = [j for j, word in enumerate(source_words) if word == v]
        for t in (t for t, word in enumerate(target_words) if word == w):
            for j in pieces:
                shares[t, j] = 1 / (linked * len(pieces))
    return shares


def guided(said: Sequence[Step], shares: Vector) -> Vector:
    """- Σ_t Σ_j A_tj log a_tj, without those a_tj that are 0, or below 1e-30."""
    total = np.zeros(())
    for step, row in zip(said, shares, strict=True):
        for weight, share in zip(step.weights, row, strict=True):
            if share and np.real(weight) >= 1e-30:
                total = total - share * np.log(weight)
    return total
