"""What lies between the translator and the search: batches, threads, and a model that gives a line no translation."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.config.schema import DecodingConfig, SamplingConfig
from nmt.decoding import tasks as search_module
from nmt.decoding.ensemble import Ensemble
from nmt.decoding.search.hypotheses import Hypothesis
from nmt.decoding.tasks import Options, Task, longest_translation, search
from nmt.decoding.text.constraints import Phrase
from nmt.decoding.threads import MOST
from nmt.errors import UserError
from nmt.symbols import UNKNOWN
from tests.decoding.conftest import CopyModel, CopyState, network

SILENT = 7  # a source that begins with it has no translation


class Silent(CopyModel):
    """Gives all that it could write for a silent source the probability 0."""

    def step(self, tokens: Tensor, state: CopyState) -> tuple[Tensor, CopyState]:
        log_probabilities, following = super().step(tokens, state)
        log_probabilities[state.source[:, 0] == SILENT] = float("-inf")
        return log_probabilities, following


def tasks(*sources: list[int]) -> list[Task]:
    return [Task(source, (line, 0)) for line, source in enumerate(sources)]


def batches(options: Options, every: Sequence[Task]) -> list[list[int]]:
    return list(search_module._batches(every, options))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(DecodingConfig(batch_tokens=10)), [[1, 2], [0]]),
        (Options(DecodingConfig(batch_tokens=9)), [[1], [2, 0]]),
        (Options(DecodingConfig(batch_tokens=10, beam_size=1)), [[1, 2], [0]]),
        (Options(DecodingConfig(batch_tokens=18, beam_size=10)), [[1], [2, 0]]),  # half as many rows, twice as wide
        (Options(DecodingConfig(batch_tokens=18, beam_size=10), sampling=SamplingConfig()), [[1, 2, 0]]),
        (Options(DecodingConfig(batch_tokens=18, beam_size=1), n_best=10, sampling=SamplingConfig()), [[1], [2, 0]]),
        (Options(DecodingConfig(batch_tokens=100)), [[1, 2, 0]]),
        (Options(DecodingConfig(batch_tokens=100, batch_sentences=2)), [[1, 2], [0]]),
    ],
)
def test_what_is_searched_together(options: Options, expected: list[list[int]]) -> None:
    """Sources of 2, 5 and 3 tokens, END counted, the longest first."""
    assert batches(options, tasks([4], [4, 5, 6, 7], [4, 5])) == expected


def test_tasks_with_phrases_have_batches_of_their_own_at_the_end() -> None:
    every = tasks([4], [4, 5], [4, 5, 6])
    every[1] = every[1]._replace(phrases=[Phrase("a", [4], True)])
    assert batches(Options(DecodingConfig()), every) == [[2, 0], [1]]


def test_the_longest_translation() -> None:
    assert longest_translation(3, DecodingConfig(max_length_ratio=1.5)) == 15  # 4.5 + 10, rounded up


def test_one_line_without_a_translation_is_a_mistake_of_the_model() -> None:
    model, options = Silent(11), Options(DecodingConfig(beam_size=2))
    found = search(model, tasks([5, 6], [8]), options, device="cpu")  # type: ignore[arg-type]
    assert [best[0].tokens for best in found] == [[5, 6], [8]]
    with pytest.raises(UserError, match=r"every translation of a line the probability 0: its weights are not finite"):
        search(model, tasks([5, 6], [SILENT]), options, device="cpu")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("packed", "most"), [([None], 1), ([True], MOST), ([False], 1), ([True, True], MOST), ([True, False], 1)]
)
def test_batches_are_searched_at_once_where_weights_are_packed(
    packed: list[bool | None], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else several batches would read the same weights, each for itself."""
    asked = []

    def one_after_the_other(work: Callable, items: Sequence, *, most: int = MOST) -> list:
        asked.append(most)
        return [work(item, lambda: None) for item in items]

    monkeypatch.setattr(search_module, "side_by_side", one_after_the_other)
    models = [CopyModel(11) for _ in packed]
    for model, is_packed in zip(models, packed, strict=True):
        if is_packed is not None:
            model.is_packed = is_packed  # type: ignore[assignment]
    whole = models[0] if len(models) == 1 else Ensemble(models)  # type: ignore[arg-type]
    search(whole, tasks([5, 6], [8]), Options(DecodingConfig()), device="cpu")  # type: ignore[arg-type]
    assert asked == [most]


@pytest.mark.parametrize(
    ("continuing", "expected"),
    [(None, False), ([False, False, False], False), ([False, True, False], True), ([True, True, True], True)],
)
def test_unknown_continues_a_word_where_any_piece_does(
    continuing: list[bool] | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def searched(model: object, some: Sequence[Task], options: Options, *_: object) -> list[list[Hypothesis]]:
        asked.append(options.unknown_continues)
        return [[Hypothesis([], 0.0, 0.0)] for _ in some]

    monkeypatch.setattr(search_module, "_searched", searched)
    options = Options(DecodingConfig(), continuing=None if continuing is None else torch.tensor(continuing))
    search(CopyModel(11), tasks([5, 6]), options, device="cpu")  # type: ignore[arg-type]
    assert asked == [expected]


def test_a_search_that_is_not_wanted_any_more_ends_at_its_next_step() -> None:
    class Ended(Exception):
        pass

    steps = []

    def check() -> None:
        steps.append(len(steps))
        if len(steps) == 3:
            raise Ended

    with pytest.raises(Ended), torch.inference_mode():
        search_module._searched(
            CopyModel(11).eval(),
            tasks([5, 6, 8, 9, 10]),
            Options(DecodingConfig()),
            "cpu",
            check,  # type: ignore[arg-type]
        )
    assert steps == [0, 1, 2]


@pytest.mark.parametrize("coverage", [0.0, 0.3])
@pytest.mark.parametrize(
    ("name", "changes", "phrases", "expected"),
    [
        ("beam_search", {}, [], {"beam_size": 6, "n_best": 2}),
        ("constrained_search", {}, [Phrase("a", [4], True)], {"beam_size": 6, "n_best": 2}),
        ("diverse_search", {"diversity": 0.5}, [], {"groups": 2, "group_size": 3, "strength": 0.5}),
        ("sample", {"sampling": SamplingConfig(top_k=3)}, [], {"sampling": SamplingConfig(top_k=3)}),
    ],
)
def test_what_the_kinds_of_search_are_told(
    name: str,
    changes: dict[str, Any],
    phrases: list[Phrase],
    expected: dict[str, object],
    coverage: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {}

    def noting(*_: object, **options: Any) -> list[list[Hypothesis]]:
        told.update(options)
        return [[Hypothesis([], 0.0, 0.0)]]

    monkeypatch.setattr(search_module, name, noting)
    decoding = DecodingConfig(beam_size=6, length_penalty=0.7, coverage_penalty=coverage, max_length_ratio=2.0)
    options = Options(decoding, n_best=2, continuing=torch.zeros(17, dtype=torch.bool), **changes)
    task = Task([5, 6], (0, 0), phrases=phrases)
    search(network(), [task], options, device="cpu")
    assert expected.items() <= told.items()
    assert told["length_penalty"] == 0.7
    assert told["max_lengths"].tolist() == [16]
    if name == "sample":
        assert told["numbers"].shape[:2] == (1, 2)
        assert "supplement" not in told
    else:
        assert (told["supplement"] is not None) == (coverage > 0)


@pytest.mark.parametrize("unknown", [True, False])
def test_what_translations_with_phrases_are_bound_by(unknown: bool) -> None:
    """Sentences with two phrases and with one: whether the last word of each is complete, False where there is none."""
    complete, incomplete = Phrase("a", [4, 5], True), Phrase("b", [6], False)
    both = [Task([5], (0, 0), phrases=[incomplete, complete]), Task([5], (1, 0), phrases=[complete])]
    continuing = torch.tensor([False, not unknown, False, False, True])
    options = Options(DecodingConfig(), continuing=continuing, unknown_continues=unknown)
    bounds = search_module._bounds(both, options, "cpu")
    assert bounds.complete.dtype == torch.bool
    assert bounds.complete.tolist() == [[False, True], [True, False]]
    assert bounds.continuing.tolist() == [False, unknown, False, False, True]
    assert continuing[UNKNOWN] == (not unknown)  # what was given is left as it was


def test_by_itself_it_is_a_beam_search_for_one_translation(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("constrained_search", "diverse_search", "sample"):
        monkeypatch.delattr(search_module, name)
    found = search(CopyModel(11), tasks([5, 6]), Options(DecodingConfig()), device="cpu")  # type: ignore[arg-type]
    assert [[each.tokens for each in best] for best in found] == [[[5, 6]]]
    assert Hypothesis([], -1.0, -1.0).supplement == 0.0
