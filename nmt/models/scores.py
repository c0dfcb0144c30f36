"""Scores of attention: how well a query matches each source position.

A score is a class with `forward` and, if it must, `project`; adding one means a class and a line in SCORES, and no
other source file. What is done with scores is in `attention.py`.

Bahdanau, Cho & Bengio (2014), arXiv 1409.0473, section 3.1; Luong, Pham & Manning (2015), arXiv 1508.04025, section 3.
"""

import math
from collections.abc import Iterator
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from nmt.models.initialization import Role, Weight
from nmt.models.memory import Past
from nmt.ops.activations import TanhScores
from nmt.ops.linear import ConcatLinear, Linear
from nmt.ops.steps import StepLinear, inner_products


class Score(nn.Module):
    """How well each query matches each source position.

    The constructor takes the sizes of a query and of an annotation. Its keyword arguments are keys of the section
    `model.attention` that other scores do not take, or what `build_attention` adds to them.
    """

    same_size: ClassVar[bool] = False
    """Whether the query and the memory must have one size."""
    positional: ClassVar[bool] = False
    """Whether the score is of positions, whatever stands there; it then goes with the global scope only."""
    context: ClassVar[bool] = True
    """Whether there is anything to attend to; without it the context has no units and the weights are 0."""
    aligns: ClassVar[bool] = True
    """Whether the decoder's state has a say in the weights, so that they tell which source words a word is from."""
    remembers: frozenset[str] = frozenset()
    """What of the steps before `forward` reads from `past`: weights, coverage, both, or nothing."""

    def project(self, values: Tensor) -> Tensor:
        """Keys (batch, source_length, key_size) from the annotations; by default the annotations themselves."""
        return values

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        """Scores (batch, queries, source_length) of `query` (batch, queries, query_size) against `keys`.

        `past` has the target position of each query, and what the score remembers: (batch, queries, source_length).
        """
        raise NotImplementedError


class _HiddenLayerScore(TanhScores, Score):
    """What the scores with a hidden layer share: v_aᵀ tanh(… + v_c C_ij), C_ij being the coverage of position j.

    C is Tu et al.'s (2016, arXiv 1601.04811) coverage in its simple, accumulated form: C_ij = Σ_{k<i} a_kj.
    `v_tanh_sum(x, y, …)` is v_aᵀ tanh(x + y + …) for terms that broadcast to (batch, queries, source_length, size).
    """

    def __init__(self, size: int, *, coverage: bool) -> None:
        super().__init__(size)
        self.coverage_vector = nn.Parameter(torch.empty(size)) if coverage else None
        self.remembers = frozenset({"coverage"} if coverage else ())

    def declared(self) -> Iterator[tuple[Tensor, Weight]]:
        yield self.vector, Weight(Role.SCORE_VECTOR)

    def covered(self, past: Past) -> list[Tensor]:
        """The term v_c C_ij (batch, queries, source_length, size), if the score has it."""
        if self.coverage_vector is None:
            return []
        assert past.coverage is not None
        return [past.coverage.unsqueeze(3) * self.coverage_vector]


class AdditiveScore(_HiddenLayerScore):
    """e_ij = v_aᵀ tanh(W_a s_i + U_a h_j), Bahdanau et al. (2014), A.1.2; with `bias`: tanh(W_a s_i + U_a h_j + b).

    s_i is the query, h_j an annotation; W_a (size, query_size), U_a (size, memory_size), v_a (size,). U_a h_j does not
    depend on i and is computed once. The paper writes no bias, and its authors' code has none; dl4mt and Nematus do.
    """

    def __init__(self, query_size: int, memory_size: int, *, size: int, bias: bool, coverage: bool) -> None:
        super().__init__(size, coverage=coverage)
        self.query_layer = StepLinear(query_size, size, bias=False)
        self.memory_layer = Linear(memory_size, size, bias=bias)

    def project(self, values: Tensor) -> Tensor:
        return self.memory_layer(values)

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        return self.v_tanh_sum(self.query_layer(query).unsqueeze(2), keys.unsqueeze(1), *self.covered(past))


class ConcatScore(_HiddenLayerScore):
    """e_ts = v_aᵀ tanh(W_a [h_t; h̄_s]), Luong et al. (2015), section 3.1; W_a (size, query_size + memory_size).

    The same function as `AdditiveScore` without bias; only the start differs, for Xavier sees one wide matrix. It is
    computed as W_a's two halves, so that the source's part is projected once. Luong's code, which the paper's footnote
    calls too simple, has the identity for the source's half; that is not this.
    """

    def __init__(self, query_size: int, memory_size: int, *, size: int, coverage: bool) -> None:
        super().__init__(size, coverage=coverage)
        self.layer = ConcatLinear(query_size, memory_size, size)

    def project(self, values: Tensor) -> Tensor:
        return self.layer.second(values)

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        return self.v_tanh_sum(self.layer.first(query).unsqueeze(2), keys.unsqueeze(1), *self.covered(past))


class DotScore(Score):
    """e_ts = h_tᵀ h̄_s, Luong et al. (2015), section 3.1; query and memory are of one size."""

    same_size = True

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        return inner_products(query, keys)


class ScaledDotScore(DotScore):
    """e_ts = h_tᵀ h̄_s / √d, d the size of both (Vaswani et al. 2017, arXiv 1706.03762, section 3.2.1)."""

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        return super().forward(query, keys, past) / math.sqrt(query.size(-1))


class GeneralScore(DotScore):
    """e_ts = h_tᵀ W_a h̄_s, Luong et al. (2015), section 3.1; W_a (query_size, memory_size), W_a h̄_s computed once."""

    same_size = False

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__(query_size, memory_size)
        self.layer = Linear(memory_size, query_size, bias=False)

    def project(self, values: Tensor) -> Tensor:
        return self.layer(values)


class ScaledGeneralScore(GeneralScore):
    """e_ts = h_tᵀ W_a h̄_s / √d, d the size of h_t: `general` in units in which W_a may move as far as Adam moves it.

    The function is that of `general`, whose W_a could absorb the number; but a step of Adam changes every weight by the
    learning rate, and so a score by up to rate · ‖h_t‖₁ ‖h̄_s‖₁, after few of which the softmax has chosen for good.
    """

    def project(self, values: Tensor) -> Tensor:
        return super().project(values) / math.sqrt(self.layer.out_features)


SHORTEST = 1e-6  # of the vectors that have a direction


class CosineScore(DotScore):
    """e_ts = τ · h_tᵀ h̄_s / (‖h_t‖ ‖h̄_s‖), with a temperature τ (Graves et al. 2014, arXiv 1410.5401, eq. 5-6).

    A cosine is at most 1: without τ, or with 1 for it, no softmax over many positions could be sharp. `temperature` is
    τ, or "learned": then it is a parameter that starts at 10.
    """

    def __init__(self, query_size: int, memory_size: int, *, temperature: float | Literal["learned"]) -> None:
        super().__init__(query_size, memory_size)
        learned = temperature == "learned"
        self.temperature = nn.Parameter(torch.tensor(10.0)) if learned else float(temperature)

    def project(self, values: Tensor) -> Tensor:
        return _unit(values)

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        return self.temperature * super().forward(_unit(query), keys, past)


def _unit(vectors: Tensor) -> Tensor:
    """v / ‖v‖; v itself where it is shorter than SHORTEST, for its gradient would be as much larger as it is shorter.

    A state is 0 where the first word was dropped and biases are still 0.
    """
    lengths = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / lengths.masked_fill(lengths < SHORTEST, 1.0)


class LocationScore(Score):
    """a_t = softmax(W_a h_t), Luong et al. (2015), section 3.1: from the query alone; W_a (positions, query_size).

    The softmax is over a sentence's own positions; words past the last that W_a knows are ignored, as in the paper.
    """

    positional = True

    def __init__(self, query_size: int, memory_size: int, *, positions: int) -> None:
        super().__init__()
        self.layer = StepLinear(query_size, positions, bias=False)

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        length = keys.size(1)
        scores = self.layer(query)[..., :length]
        return functional.pad(scores, (0, length - scores.size(2)), value=-torch.inf)


class LocationSensitiveScore(AdditiveScore):
    """e_ij = v_aᵀ tanh(W_a s_i + U_a h_j + U_f f_ij [+ b]), Chorowski et al. (2015), arXiv 1506.07503, equation 9.

    f_i = F * a_{i-1}, the weights of the last step under `filters` filters of width `filter_width` (an odd number;
    outside the sentence the weights are 0; before the first step all are). U_f (size, filters).
    """

    def __init__(
        self,
        query_size: int,
        memory_size: int,
        *,
        size: int,
        bias: bool,
        coverage: bool,
        filters: int,
        filter_width: int,
    ) -> None:
        super().__init__(query_size, memory_size, size=size, bias=bias, coverage=coverage)
        self.convolution = nn.Conv1d(1, filters, filter_width, padding=filter_width // 2, bias=False)
        self.filter_layer = Linear(filters, size, bias=False)
        self.remembers |= {"weights"}

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        assert past.weights is not None
        filtered = self.convolution(past.weights.flatten(0, 1).unsqueeze(1)).transpose(1, 2)  # (…, positions, filters)
        located = keys.unsqueeze(1) + self.filter_layer(filtered.unflatten(0, past.weights.shape[:2]))
        return self.v_tanh_sum(self.query_layer(query).unsqueeze(2), located, *self.covered(past))


class NoScore(Score):
    """No attention: the plain encoder-decoder, which knows the source from its first state only."""

    positional = True
    context = False
    aligns = False

    def __init__(self, query_size: int, memory_size: int) -> None:
        super().__init__()

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        return query.new_zeros(query.size(0), query.size(1), keys.size(1))


class FixedScore(Score):
    """No attention, but the same context c at every step: the annotation of the token that the encoder reads last.
    RNNencdec, the baseline of Bahdanau et al. (2014), who fix c_i to →h_{T_x} (A.2.2), is their decoder with it.

    e_tj = 10⁴ j: the softmax over the real positions is then 1 at the last of them and 0 elsewhere, exactly. With
    `ends_with_first_word`, the first word is what the encoder reads last, and e_tj = -10⁴ j.
    """

    positional = True
    aligns = False

    def __init__(self, query_size: int, memory_size: int, *, ends_with_first_word: bool) -> None:
        super().__init__()
        self.step = -1e4 if ends_with_first_word else 1e4

    def forward(self, query: Tensor, keys: Tensor, past: Past) -> Tensor:
        length = keys.size(1)
        scores = self.step * torch.arange(length, dtype=query.dtype, device=query.device)
        return scores.expand(query.size(0), query.size(1), length)


SCORES: dict[str, type[Score]] = {
    "additive": AdditiveScore,
    "concat": ConcatScore,
    "dot": DotScore,
    "scaled_dot": ScaledDotScore,
    "general": GeneralScore,
    "scaled_general": ScaledGeneralScore,
    "cosine": CosineScore,
    "location": LocationScore,
    "location_sensitive": LocationSensitiveScore,
    "fixed": FixedScore,
    "none": NoScore,
}
