"""What lies between the translator and the search: batches, threads, and a model that gives a line no translation."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from torch import Tensor

from nmt.config.schema import DecodingConfig, SamplingConfig
from nmt.decoding import batched_search
from nmt.decoding.batched_search import Search, longest_translation, shortest_translation
from nmt.decoding.options import TranslationOptions
from nmt.decoding.runtime import RuntimeScorer
from nmt.decoding.scorer import Scorer
from nmt.decoding.text.segments import Segment
from nmt.decoding.threads import MOST
from nmt.errors import UserError
from tests.decoding.conftest import CopyModel, CopyState

SILENT = 7  # a source that begins with it has no translation


class Silent(CopyModel):
    """Gives all that it could write for a silent source the probability 0."""

    def step(self, tokens: Tensor, state: CopyState) -> tuple[Tensor, CopyState]:
        log_probabilities, following = super().step(tokens, state)
        log_probabilities[state.source[:, 0] == SILENT] = float("-inf")
        return log_probabilities, following


def segments(*sources: list[int]) -> list[Segment]:
    return [Segment(source, (line, 0)) for line, source in enumerate(sources)]


def search(*models: Any, beam_size: int = 5, **options: Any) -> Search:
    """A search as configured by default, but for `beam_size` and other options."""
    fields = {name: options.pop(name) for name in ("decoding", "continuing") if name in options}
    asked = TranslationOptions(**options)
    return Search(scorer=Scorer(models), options=asked, **{"decoding": DecodingConfig(beam_size=beam_size), **fields})


@pytest.mark.parametrize(
    ("decoding", "options", "expected"),
    [
        ({"batch_tokens": 10}, {}, [(2, 5), (1, 2)]),
        ({"batch_tokens": 9}, {}, [(1, 5), (2, 3)]),
        ({"batch_tokens": 10, "beam_size": 1}, {}, [(2, 5), (1, 2)]),
        ({"batch_tokens": 18, "beam_size": 10}, {}, [(1, 5), (2, 3)]),  # half as many rows, twice as wide
        ({"batch_tokens": 18, "beam_size": 10}, {"sampling": SamplingConfig()}, [(3, 5)]),
        ({"batch_tokens": 18, "beam_size": 1}, {"n_best": 10, "sampling": SamplingConfig()}, [(1, 5), (2, 3)]),
        ({"batch_tokens": 100}, {}, [(3, 5)]),
        ({"batch_tokens": 100, "batch_sentences": 2}, {}, [(2, 5), (1, 2)]),
    ],
)
def test_what_is_searched_together(
    decoding: dict[str, Any], options: dict[str, Any], expected: list[tuple[int, int]]
) -> None:
    """Sources of 2, 5 and 3 tokens, END counted, the longest first: the rows of each batch, and the longest of them."""
    model = CopyModel(11)
    search(model, decoding=DecodingConfig(**decoding), **options).hypotheses(segments([4], [4, 5, 6, 7], [4, 5]))
    assert model.batches == expected


@pytest.mark.parametrize(
    ("count", "most", "expected"), [(1, MOST, [1]), (20, MOST, [4, 8, 8]), (60, MOST, [20] * 3), (60, 1, [60])]
)
def test_each_thread_has_a_batch(
    count: int, most: int, expected: list[int], threads: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads(3)
    model = CopyModel(11)
    searching = search(model)
    monkeypatch.setattr(searching.scorer, "most_batches", most)
    searching.hypotheses(segments(*([4, 5] for _ in range(count))))
    assert sorted(rows for rows, _ in model.batches) == expected


def test_the_longest_translation() -> None:
    assert longest_translation(3, DecodingConfig(max_length_ratio=1.5)) == 15  # 4.5 + 10, rounded up
    assert longest_translation(3, DecodingConfig(max_length_ratio=3.0, max_length_extra=0)) == 9  # GroundHog's 3 S
    assert longest_translation(50, DecodingConfig(max_length_ratio=1.1, max_length_extra=0)) == 55  # not 56, as floats
    assert [
        longest_translation(source, DecodingConfig(max_length_ratio=0.0, max_length_extra=100)) for source in (1, 70)
    ] == [100, 100]
    low = DecodingConfig(max_length_ratio=0.2, max_length_extra=0)
    assert [longest_translation(source, low) for source in (1, 5, 10, 11)] == [2, 2, 2, 3]  # room for a piece and END


@pytest.mark.parametrize(
    ("minimum", "ratio", "expected"),
    [
        (0, 0.0, [0, 0, 0, 0, 0]),
        (3, 0.0, [3, 3, 3, 3, 3]),
        (0, 0.5, [1, 1, 2, 4, 5]),  # (pieces + END) // 2, as GroundHog has it, which counts END and rounds down
        (0, 1.1, [2, 3, 4, 8, 11]),  # 1.1 × 10 is 11, and 11.000000000000002 in floating point
        (3, 0.5, [3, 3, 3, 4, 5]),
    ],
)
def test_the_shortest_translation(minimum: int, ratio: float, expected: list[int]) -> None:
    decoding = DecodingConfig(minimum_length=minimum, minimum_length_ratio=ratio)
    assert [shortest_translation(source, decoding) for source in (1, 2, 3, 7, 10)] == expected


def test_one_line_without_a_translation_is_a_mistake_of_the_model() -> None:
    silent = search(Silent(11), beam_size=2)
    assert [best[0].tokens for best in silent.hypotheses(segments([5, 6], [8]))] == [[5, 6], [8]]
    with pytest.raises(UserError, match=r"every translation of a line the probability 0: its weights are not finite"):
        silent.hypotheses(segments([5, 6], [SILENT]))


def test_as_many_batches_are_searched_at_once_as_the_scorer_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def one_after_the_other(work: Callable, items: Sequence, *, most: int = MOST) -> list:
        asked.append(most)
        return list(map(work, items))

    monkeypatch.setattr(batched_search, "side_by_side", one_after_the_other)
    one = search(CopyModel(11))
    for most in (one.scorer.most_batches, RuntimeScorer.most_batches):
        monkeypatch.setattr(one.scorer, "most_batches", most)
        one.hypotheses(segments([5, 6], [8]))
    assert asked == [1, MOST]
