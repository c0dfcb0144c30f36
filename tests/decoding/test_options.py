"""Options of a translation: what overrides what, and what does not go together."""

from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest

from nmt.config.schema import DecodingConfig, SamplingConfig
from nmt.decoding.options import TranslationOptions, contradictions
from nmt.decoding.scorer import Scorer
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from tests.decoding.conftest import TEXT, network


def test_every_key_of_the_configuration_is_an_option_and_none_leaves_it_as_it_is() -> None:
    assert {field.name for field in fields(TranslationOptions)} >= set(DecodingConfig.model_fields)
    configured = DecodingConfig(beam_size=3, suppress_unknown=True, coverage_penalty=0.2)
    assert TranslationOptions().decoding(configured) == configured
    changed = TranslationOptions(beam_size=7, suppress_unknown=False, coverage_penalty=0.0).decoding(configured)
    assert changed == DecodingConfig(beam_size=7)
    with pytest.raises(FrozenInstanceError):
        TranslationOptions().n_best = 2  # type: ignore[misc]


def test_keywords_come_before_the_options(vocabularies) -> None:
    size = vocabularies.source.size
    translator = Translator(network(source_size=size, target_size=size), vocabularies)
    options = TranslationOptions(beam_size=1, n_best=1, max_length_ratio=0.3, alignments=True)
    several = list(translator.translate(TEXT, options, beam_size=4, n_best=3, alignments=False))
    same = TranslationOptions(beam_size=4, n_best=3, max_length_ratio=0.3)
    assert several == list(translator.translate(TEXT, same))
    assert {len(best) for best in several} == {3}
    assert several[0][0].alignment is None
    (alone,) = next(translator.translate(TEXT, options))
    assert alone.alignment is not None


@pytest.mark.parametrize(
    ("options", "constraints", "expected"),
    [
        ({}, True, []),
        ({"replace_unknown": {}, "suppress_unknown": True}, False, ["suppress_unknown leaves no unknown word"]),
        ({"sampling": SamplingConfig()}, True, ["constraints need a search"]),
        ({"n_best": 0}, False, ["n_best is 0; it must be at least 1"]),
        ({"n_best": 4, "beam_size": 3}, False, ["n_best is 4; it must be at most beam_size, which is 3"]),
        ({"n_best": 4, "beam_size": 3, "sampling": SamplingConfig()}, False, []),
        ({"diversity": -1.0}, False, ["diversity is -1.0"]),
        ({"diversity": 0.5}, False, ["diversity has an effect only on n-best lists"]),
        (
            {"diversity": 0.5, "n_best": 2, "sampling": SamplingConfig()},
            True,
            ["constraints need a search", "diversity does not go with sampling", "diversity does not go with constr"],
        ),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], constraints: bool, expected: list[str]) -> None:
    asked = TranslationOptions(**options)
    decoding = asked.decoding(DecodingConfig())
    problems = list(contradictions(asked, decoding, Scorer([network()]), constraints=constraints))
    assert [problem[: len(start)] for problem, start in zip(problems, expected, strict=True)] == expected


def test_values_that_the_configuration_does_not_allow(vocabularies) -> None:
    size = vocabularies.source.size
    translator = Translator(network(source_size=size, target_size=size), vocabularies)
    with pytest.raises(UserError) as caught:
        translator.translate(TEXT, TranslationOptions(batch_tokens=0, max_length_ratio=-1.0), beam_size=0)
    names = [message.partition(" is ")[0] for message in caught.value.messages]
    assert names == ["beam_size", "max_length_ratio", "batch_tokens"]
    assert caught.value.messages[0] == "beam_size is 0: Input should be greater than or equal to 1"


def test_all_problems_are_told_at_once(vocabularies) -> None:
    size = vocabularies.source.size
    translator = Translator(network(source_size=size, target_size=size, score="none"), vocabularies)
    options = TranslationOptions(coverage_penalty=0.1, replace_unknown={}, alignments=True, diversity=0.5)
    with pytest.raises(UserError) as caught:
        translator.translate(TEXT, options)
    assert len(caught.value.messages) == 4
