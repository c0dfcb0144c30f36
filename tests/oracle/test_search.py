"""Beam search and ensembles against the oracle's, which knows hypotheses by their words alone, to 1e-9."""

from collections.abc import Sequence
from itertools import cycle

import pytest

from nmt.config.schema import DecodingConfig
from nmt.decoding.batched_search import Search
from nmt.decoding.options import TranslationOptions
from nmt.decoding.scorer import Scorer
from nmt.decoding.text.segments import Segment
from tests.oracle.cases import CASES, DECODING, Case, Changes
from tests.oracle.package import END, Sides, close, sides
from tests.oracle.searches import ENSEMBLES, Reader, beam_search

SOURCES = [[10, 5, 9], [4]]  # without END
WITHOUT_ATTENTION = ("fixed", "none")


@pytest.mark.slow
@pytest.mark.parametrize(("case", "decoding"), list(zip(CASES.values(), cycle(DECODING.values()))), ids=CASES)
def test_every_two_options(case: Case, decoding: Changes) -> None:
    """Each model with one kind of search."""
    if case["score"] in WITHOUT_ATTENTION:
        decoding = {**decoding, "coverage_penalty": 0.0}
    compare([sides(case)], decoding)


PLAIN: Case = next(case for case in CASES.values() if case["score"] == "additive, coverage")


@pytest.mark.parametrize("decoding", DECODING.values(), ids=DECODING)
def test_every_option_of_the_search(decoding: Changes) -> None:
    compare([sides(PLAIN)], decoding)


DIFFERENT = next(
    case
    for case in CASES.values()
    if case["decoder"] != PLAIN["decoder"]
    and case["score"] not in WITHOUT_ATTENTION
    and (case["output"] == "all tied") == (PLAIN["output"] == "all tied")  # which has another source vocabulary
    and case["end mark"] == PLAIN["end mark"]  # or there are not as many positions
)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_two_models(ensemble: str, beam_size: int) -> None:
    decoding = {"beam_size": beam_size, "coverage_penalty": 0.2, "minimum_length_ratio": 1.0}
    compare([sides(PLAIN), sides(DIFFERENT, seed=6)], decoding, ensemble)


def compare(models: Sequence[Sides], decoding: Changes, ensemble: str | None = None) -> None:
    """All hypotheses of every sentence, searched in a batch and alone."""
    config = DecodingConfig.model_validate(decoding)
    search = Search(
        scorer=Scorer([both.model for both in models], ensemble=ensemble),
        decoding=config,
        options=TranslationOptions(n_best=config.beam_size),
    )
    segments = [Segment(source, (line, 0)) for line, source in enumerate(SOURCES)]
    together, alone = search.hypotheses(segments), [search.hypotheses([segment])[0] for segment in segments]
    oracles = [both.oracle() for both in models]
    for source, *results in zip(SOURCES, together, alone, strict=True):
        reader = Reader(oracles, [*source, END], ensemble or "log-probabilities")
        expected = beam_search(reader, config.model_dump())[: config.beam_size]
        for result in results:
            assert [hypothesis.tokens for hypothesis in result] == [translation.tokens for translation in expected]
            close([hypothesis.score for hypothesis in result], [translation.score for translation in expected])
            close(
                [hypothesis.log_probability for hypothesis in result],
                [translation.log_probability for translation in expected],
            )
