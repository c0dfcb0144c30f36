"""The benchmark of the search for a single sentence: it measures both ways, and notices if they disagree."""

from collections.abc import Callable
from typing import Any

import pytest

from benchmarks import one_sentence
from nmt.config.schema import SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.search import beam
from nmt.decoding.search.hypotheses import Hypothesis
from nmt.decoding.translator import Translator
from tests.decoding.conftest import TEXT, random_translator


@pytest.fixture(scope="module")
def translator() -> Translator:
    subwords = Subwords.train(TEXT, settings=SubwordsConfig(size=71))
    return random_translator(Vocabularies(subwords, subwords), scale=3.0, longest_segment=100)


def test_both_ways_are_measured(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []

    def counted(*arguments: Any, original: Callable[..., Any] = beam.search_one, **options: Any) -> Any:
        called.append(options["beam_size"])
        return original(*arguments, **options)

    monkeypatch.setattr(beam, "search_one", counted)
    measured = one_sentence.measure(translator, TEXT[:2], beam_size=3, runs=2)
    assert called == [3] * 4  # two lines, twice; the other half by the batched loop
    assert measured["beam"] == 3
    assert measured["ratio"] == pytest.approx(measured["batched"] / measured["alone"], rel=0.2)


def test_different_translations_are_no_measurement(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beam, "search_one", lambda *_, **options: [[Hypothesis([5], -1.0, -1.0)]])
    with pytest.raises(RuntimeError, match="different translations"):
        one_sentence.measure(translator, TEXT[:2], beam_size=3, runs=1)
