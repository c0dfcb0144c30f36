"""What a search works with and what it returns: a model's step from token to token, and finished hypotheses."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from numpy.typing import NDArray

Array = NDArray[Any]
LengthPenalty = Literal["none", "average"] | float
Length = TypeVar("Length", int, Array)


class SearchState(Protocol):
    """What `step` carries from one token to the next, for a number of rows."""

    def select(self: "State", rows: Array) -> "State":
        """The state of the rows `rows` (sentences, beam), which are flat indices into the present ones."""
        ...


State = TypeVar("State", bound=SearchState)


class Scores(NamedTuple):
    """The log-probabilities of what may follow each row, which may be overwritten."""

    values: Array  # (rows, any number); where not all tokens are listed, the largest first
    ids: Array | None = None  # the token of each, of equal values the smaller first; None: column v is token v


Step = Callable[[Array, State, int | None], tuple[Scores, State]]
"""From tokens (rows,), the state, and how many tokens of each row are wanted, to at least these, or all for None, and
the next state."""


class Hypothesis(NamedTuple):
    """A finished translation of one sentence."""

    tokens: list[int]  # without BEGIN and END
    score: float  # log_probability / penalty(length with END) + supplement
    log_probability: float  # summed over the tokens and END
    supplement: float = 0.0  # what was added to the score for how it ends
    totals: Sequence[float] = ()  # the log-probability summed up to each token, without END


def penalty(length: int, length_penalty: LengthPenalty) -> float:
    """What the log-probability of a hypothesis of `length` tokens, END counted, is divided by.

    "none": 1. "average": length. A number alpha: ((5 + length) / 6) ** alpha (Wu et al. 2016, equation 14).
    """
    if length_penalty == "none":
        return 1.0
    if length_penalty == "average":
        return float(length)
    return float(((5.0 + length) / 6.0) ** length_penalty)


def source_penalty(length: Length, length_penalty: LengthPenalty) -> Length | Literal[1]:
    """What the coverage penalty of a source of `length` tokens, END counted, is divided by.

    "average": length, so that both parts of a score count per token. Otherwise 1, as in Wu et al.
    """
    return length if length_penalty == "average" else 1
