"""Options of a translation: what overrides what, and what does not go together."""

import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config.schema import DecodingConfig, SamplingConfig
from nmt.decoding.options import TranslationOptions, contradictions
from nmt.decoding.scorer import Scorer
from nmt.decoding.text.glossary import Glossary
from nmt.decoding.translator import Translator
from nmt.documents.document import translate_document
from nmt.errors import UserError
from tests.decoding.conftest import TEXT, network
from tests.random_model import save_random_model


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
    translator = Translator([network(source_size=size, target_size=size)], vocabularies)
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
        (
            {"replace_unknown": {"Hund": None, 7: "sieben", "Maus": " \n", "": "x", "Kuh": "cow"}},
            False,
            [
                "replace_unknown: 'Hund' is to be None; expected words on both sides",
                "replace_unknown: 7 is to be 'sieben'; expected words on both sides",
                "replace_unknown: 'Maus' is to be ' \\n'; expected words on both sides",
                "replace_unknown: '' is to be 'x'; expected words on both sides",
            ],
        ),
        (
            {"replace_unknown": {str(number): "" for number in range(2007)}},
            False,
            [*(f"replace_unknown: '{n}' is to be ''" for n in range(5)), "replace_unknown: 2,002 more without words"],
        ),
        ({"sampling": SamplingConfig()}, True, ["constraints need a search"]),
        ({"n_best": 0}, False, ["n_best is 0; it must be at least 1"]),
        ({"n_best": 4, "beam_size": 3}, False, ["n_best is 4; it must be at most beam_size, which is 3"]),
        ({"n_best": 4, "beam_size": 3, "sampling": SamplingConfig()}, False, []),
        ({"coverage_penalty": 0.2, "beam_size": 1}, False, ["coverage_penalty has no effect on greedy search"]),
        ({"coverage_penalty": 0.0, "beam_size": 1}, False, []),
        ({"diversity": -1.0}, False, ["diversity is -1.0"]),
        ({"diversity": 0.5}, False, ["diversity has an effect only on n-best lists"]),
        (
            {"diversity": 0.5, "n_best": 2, "sampling": SamplingConfig()},
            True,
            ["constraints need a search", "diversity does not go with sampling", "diversity does not go with constr"],
        ),
        ({"alignment_step": "next", "alignments": True}, False, []),
        ({"alignment_step": "next", "replace_unknown": {}}, False, []),
        ({"alignment_step": "next"}, False, ["alignment_step has an effect only on alignments and on unknown words"]),
        ({"end_links": "none", "alignments": True}, False, []),
        ({"end_links": "none"}, False, ["end_links has an effect only on alignments"]),
        ({"end_links": "best", "replace_unknown": {}}, False, ["end_links has an effect only on alignments"]),
        ({"end_links": "first"}, False, ["end_links is 'first'; it must be one of last, none, best"]),
        (
            {"max_length_ratio": 0.0, "max_length_extra": 0},
            False,
            ["max_length_extra: 0 with max_length_ratio: 0 has no effect: a piece and the end mark always fit"],
        ),
        (
            {"max_length_ratio": 0.0, "max_length_extra": 1},
            False,
            ["max_length_extra: 1 with max_length_ratio: 0 has no effect: a piece and the end mark always fit"],
        ),
        ({"max_length_ratio": 0.0, "max_length_extra": 2}, False, []),
        ({"alignment_step": "last"}, False, ["alignment_step is 'last'; it must be one of this, next"]),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], constraints: bool, expected: list[str]) -> None:
    asked = TranslationOptions(**options)
    decoding = asked.decoding(DecodingConfig())
    problems = list(contradictions(asked, decoding, Scorer([network()]), constraints=constraints))
    assert [problem[: len(start)] for problem, start in zip(problems, expected, strict=True)] == expected


def test_how_to_draw_may_be_a_mapping() -> None:
    assert TranslationOptions().drawing() is None
    assert TranslationOptions(sampling={}).drawing() == SamplingConfig()
    assert TranslationOptions(sampling={"top_k": 3, "seed": 5}).drawing() == SamplingConfig(top_k=3, seed=5)
    assert TranslationOptions(sampling=SamplingConfig(top_p=0.5)).drawing() == SamplingConfig(top_p=0.5)
    wrong = TranslationOptions(sampling={"temperature": -1.0, "top_k": 2, "top_p": 2.0}, glossary=Glossary({"a": "b"}))
    problems = list(contradictions(wrong, DecodingConfig(), Scorer([network()]), constraints=False))
    beginnings = ("sampling: temperature is -1.0; ", "sampling: top_p is 2.0; ", "a glossary needs a search; ")
    assert [problem.startswith(start) for problem, start in zip(problems, beginnings, strict=True)] == [True] * 3


def test_values_that_the_configuration_does_not_allow(vocabularies) -> None:
    size = vocabularies.source.size
    translator = Translator([network(source_size=size, target_size=size)], vocabularies)
    with pytest.raises(UserError) as caught:
        translator.translate(TEXT, TranslationOptions(batch_tokens=0, max_length_ratio=-1.0), beam_size=0)
    names = [message.partition(" is ")[0] for message in caught.value.messages]
    assert names == ["beam_size", "max_length_ratio", "batch_tokens"]
    assert caught.value.messages[0] == "beam_size is 0; allowed: a whole number, at least 1 and at most 1,000"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"length_penalty": "foo"}, "length_penalty is 'foo'; allowed: none, average, or a number, at least 0 and at"),
        ({"beam_size": "3"}, "beam_size is '3'; allowed: a whole number, at least 1 and at most 1,000"),
        ({"n_best": "2"}, "n_best is '2'; it must be a whole number"),
        ({"n_best": 2.0}, "n_best is 2.0; it must be a whole number"),
        ({"diversity": "1", "n_best": 2}, "diversity is '1'; it must be a number"),
        ({"sampling": 0.7}, "sampling is 0.7; it must be a mapping, such as {'temperature': 0.7}, or a SamplingConfig"),
        ({"sampling": {"temperature": 0}}, "sampling: temperature is 0; allowed: a number, more than 0 and at most"),
        ({"sampling": {"top_k": "3"}}, "sampling: top_k is '3'; allowed: a whole number, at least 1"),
        (
            {"sampling": {"topk": 3}},
            "sampling: 'topk' is unknown; nearest: top_k; allowed: temperature, top_k, top_p, seed",
        ),
        ({"sampling": {1: 3}}, "sampling: 1 is unknown; allowed: temperature, top_k, top_p, seed"),
        ({"replace_unknown": ["a"]}, "replace_unknown is ['a']; it must be a mapping of words to words"),
        ({"alignments": "yes"}, "alignments is 'yes'; it must be True or False"),
    ],
)
def test_values_of_another_type(vocabularies, options: dict[str, Any], message: str) -> None:
    size = vocabularies.source.size
    translator = Translator([network(source_size=size, target_size=size)], vocabularies)
    with pytest.raises(UserError, match=rf"^{re.escape(message)}[^\n]*$"):
        translator.translate(TEXT, TranslationOptions(**options))


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"precision": "fp16"}, "precision fp16: unknown; choose one of float32, bfloat16, int8"),
        ({"device": "gpu"}, "device gpu: cannot be used: Expected one of cpu, cuda, "),
        ({"device": "meta"}, "device meta: cannot be used: "),
        ({"device": None}, "device None: cannot be used: "),
        ({"device": f"cuda:{torch.cuda.device_count()}"}, f"device cuda:{torch.cuda.device_count()}: cannot be used: "),
    ],
)
def test_a_precision_or_device_that_is_not_there(tmp_path: Path, where: dict[str, str], message: str) -> None:
    with pytest.raises(UserError, match=rf"^{re.escape(message)}"):
        Translator.load(save_random_model(tmp_path / "model.safetensors"), **where)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"lines": ["a", None]}, "line 2 is of type NoneType; it must be a text (str)"),
        ({"lines": [b"a"]}, "line 1 is of type bytes; it must be a text (str)"),
        ({"lines": ["a"], "prefixes": [2.5]}, "line 1 of the prefixes is of type float; it must be a text (str)"),
        ({"lines": ["a"], "options": {"beam_size": 3}}, "options is {'beam_size': 3}; it must be TranslationOptions"),
    ],
)
def test_what_is_no_text(vocabularies, texts: dict[str, Any], message: str) -> None:
    size = vocabularies.source.size
    translator = Translator([network(source_size=size, target_size=size)], vocabularies)
    with pytest.raises(UserError) as caught:
        list(translator.translate(**texts))
    assert str(caught.value) == message
    with pytest.raises(UserError, match=r"options is \{\}; it must be TranslationOptions"):
        translate_document(translator, "a", options={})  # type: ignore[arg-type]
    with pytest.raises(UserError, match="the document is of type bytes; it must be a text"):
        translate_document(translator, b"<p>a</p>", format="html")  # type: ignore[arg-type]


def test_the_end_of_a_line_is_no_part_of_it(vocabularies, tmp_path: Path) -> None:
    """As the lines of an open file have it; with split_sentences white space at the end of a line would stay."""
    size = vocabularies.source.size
    translator = Translator([network(source_size=size, target_size=size)], vocabularies)
    (tmp_path / "text").write_text("a b\r\nb\n", encoding="utf-8", newline="")
    options = TranslationOptions(split_sentences="en", max_length_extra=2)
    with open(tmp_path / "text", encoding="utf-8", newline="\n") as file:
        assert list(translator.translate(file, options)) == list(translator.translate(["a b", "b"], options))


@pytest.mark.parametrize(
    ("texts", "messages"),
    [
        ({"lines": "Hello"}, ["lines is one text, and must be a list of texts, one for each line: ['Hello']"]),
        ({"lines": b"Hello"}, ["lines is one text, and must be a list of texts, one for each line: ['Hello']"]),
        (
            {"lines": "", "prefixes": "x" * 41, "constraints": bytearray(b"\xff")},
            [
                "lines is one text, and must be a list of texts, one for each line: ['']",
                f"prefixes is one text, and must be a list of texts, one for each line: ['{'x' * 40}...']",
                "constraints is one text, and must be a list of texts, one for each line: ['\ufffd']",
            ],
        ),
    ],
)
def test_one_text_is_not_a_list_of_letters(vocabularies, texts: dict[str, Any], messages: list[str]) -> None:
    size = vocabularies.source.size
    translator = Translator([network(source_size=size, target_size=size)], vocabularies)
    with pytest.raises(UserError) as caught:
        translator.translate(**texts)
    assert list(caught.value.messages) == messages


def test_all_problems_are_told_at_once(vocabularies) -> None:
    size = vocabularies.source.size
    translator = Translator([network(source_size=size, target_size=size, score="none")], vocabularies)
    options = TranslationOptions(coverage_penalty=0.1, replace_unknown={}, alignments=True, diversity=0.5)
    with pytest.raises(UserError) as caught:
        translator.translate(TEXT, options)
    assert len(caught.value.messages) == 4
