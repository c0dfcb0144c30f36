"""The benchmark of joined lines: what it joins, and that cut lines score as single sentences do."""

import pytest

from benchmarks import joined_lines
from nmt.config.schema import SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.reading import Languages
from nmt.decoding.translator import Translator
from tests.decoding.conftest import TEXT, CopyModel

pytest.importorskip("sentencex", reason="needs sentencex, of the extra text")


def test_the_figures_of_a_model_that_copies() -> None:
    subwords = Subwords.train(TEXT, settings=SubwordsConfig(size=71))
    translator = Translator(
        [CopyModel(subwords.size)], Vocabularies(subwords, subwords), languages=Languages("en", "en"), longest_trained=1
    )
    assert joined_lines.joined(["a", "b", "c", "d", "e"], 2) == ["a b", "c d", "e"]
    for sentences, lines, warned in ((1, 6, 6), (4, 2, 2)):
        figures = joined_lines.measure(translator, TEXT, TEXT, sentences=sentences)
        expected = {"sentences": sentences, "lines": lines, "warned of": warned, "whole": 100.0, "split": 100.0}
        assert figures == pytest.approx(expected)
