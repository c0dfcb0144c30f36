"""Options of a translation: what overrides what, and what does not go together."""

import re
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.config.schema import DecodingConfig
from nmt.data.subwords import Vocabularies
from nmt.decoding.options import TranslationOptions
from nmt.decoding.translator import Translator
from nmt.documents.document import translate_document
from nmt.errors import UserError
from tests.decoding.conftest import TEXT, network
from tests.random_model import save_random_model


def random(vocabularies: Vocabularies, **options: Any) -> Translator:
    size = vocabularies.source.size
    return Translator([network(source_size=size, target_size=size, **options)], vocabularies)


def test_every_key_of_the_configuration_is_an_option_and_none_leaves_it_as_it_is() -> None:
    assert {field.name for field in fields(TranslationOptions)} >= set(DecodingConfig.model_fields)
    configured = DecodingConfig(beam_size=3, suppress_unknown=True, coverage_penalty=0.2)
    assert TranslationOptions().decoding(configured) == configured
    changed = TranslationOptions(beam_size=7, suppress_unknown=False, coverage_penalty=0.0).decoding(configured)
    assert changed == DecodingConfig(beam_size=7)
    with pytest.raises(FrozenInstanceError):
        TranslationOptions().n_best = 2  # type: ignore[misc]


def test_keywords_come_before_the_options(vocabularies) -> None:
    translator = random(vocabularies)
    options = TranslationOptions(beam_size=1, max_length_ratio=0.3, alignments=True)
    several = list(translator.translate(TEXT, options, beam_size=4, n_best=3, alignments=False))
    same = TranslationOptions(beam_size=4, n_best=3, max_length_ratio=0.3)
    assert several == list(translator.translate(TEXT, same))
    assert {len(best) for best in several} == {3}
    assert several[0][0].alignment is None
    (alone,) = next(translator.translate(TEXT, options))
    assert alone.alignment is not None


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"n_best": 4, "beam_size": 3}, [["n_best", "4", "beam_size", "3"]]),
        ({"n_best": 6}, [["n_best", "6", "beam_size", "5"]]),  # that of the configuration
        ({"n_best": 6, "sampling": {}}, []),
        ({"sampling": {}, "beam_size": 3}, [["beam_size", "sampling"]]),
        ({"sampling": {}, "coverage_penalty": 0.1}, [["coverage_penalty", "sampling"]]),
        ({"sampling": {}, "constraints": True}, [["constraints", "sampling"]]),
        ({"coverage_penalty": 0.2, "beam_size": 1}, [["coverage_penalty", "beam_size", "1"]]),
        ({"coverage_penalty": 0.0, "beam_size": 1}, []),
        ({"diversity": 0.5}, [["diversity", "n_best", "2"]]),
        (
            {"diversity": 0.5, "n_best": 2, "sampling": {}, "constraints": True},
            [["constraints", "sampling"], ["diversity", "sampling"], ["diversity", "constraints"]],
        ),
        ({"replace_unknown": {}, "suppress_unknown": True}, [["suppress_unknown", "replace_unknown"]]),
    ],
)
def test_what_does_not_go_together(options: dict[str, Any], named: list[list[str]]) -> None:
    constraints = options.pop("constraints", False)
    asked = TranslationOptions(**options)
    problems = asked.contradictions(asked.decoding(DecodingConfig()), constraints=constraints)
    assert [re.findall(r"`(\w+)`|\b(\d+)\b", problem) for problem in problems] == [
        [(word, "") if word.isidentifier() else ("", word) for word in words] for words in named
    ]
    if "n_best" not in options or "beam_size" in options:  # the same is known before the configuration is
        assert asked.contradictions(constraints=constraints) == problems


@pytest.mark.parametrize(
    ("options", "name", "value", "allowed"),
    [
        ({"beam_size": 0}, "beam_size", "0", "a whole number, at least 1 and at most 1,000"),
        ({"beam_size": "3"}, "beam_size", "'3'", "a whole number, at least 1 and at most 1,000"),
        ({"n_best": 2.0}, "n_best", "2.0", "a whole number, at least 1"),
        ({"length_penalty": "foo"}, "length_penalty", "'foo'", "none, average, or a number, at least 0 and at most 10"),
        ({"batch_sentences": 0}, "batch_sentences", "0", "a whole number, at least 1 and at most 1,000,000,000"),
        ({"diversity": float("inf")}, "diversity", "inf", "a number, at least 0"),
        ({"end_links": "first"}, "end_links", "'first'", "last, none, best"),
        ({"alignment_step": "later"}, "alignment_step", "'later'", "this, next"),
        ({"alignments": "yes"}, "alignments", "'yes'", "true or false"),
        ({"sampling": {"temperature": 0}}, "sampling.temperature", "0", "a number, more than 0 and at most 100"),
    ],
)
def test_values_that_an_option_may_not_have(options: dict[str, Any], name: str, value: str, allowed: str) -> None:
    with pytest.raises(UserError) as caught:
        TranslationOptions(**options)
    assert caught.value.messages == (f"`{name}` is {value}; allowed: {allowed}",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beamsize": 3}, "`beamsize`: unknown; nearest: beam_size; allowed: beam_size, "),
        ({"sampling": {"topk": 3}}, "`sampling.topk`: unknown; nearest: top_k; allowed: temperature, top_k, "),
        ({"sampling": 0.7}, "`sampling` is 0.7; "),
        ({"glossary": "a"}, "`glossary` is 'a'; "),
        ({"replace_unknown": ["a"]}, "`replace_unknown` is ['a']; must be a mapping of words to words"),
        (
            {"replace_unknown": {"Hund": None, "Kuh": "cow"}},
            "`replace_unknown` is {'Hund': None, 'Kuh': 'cow'}; 'Hund' is to be None; expected words on",
        ),
        (
            {"replace_unknown": {"Maus": " \n"}},
            "`replace_unknown` is {'Maus': ' \\n'}; 'Maus' is to be ' \\n'; expected words",
        ),
    ],
)
def test_what_is_no_option(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=rf"^{re.escape(message)}[^\n]*$"):
        TranslationOptions(**options)


def test_all_wrong_values_are_reported_and_a_large_dictionary_is_not_copied() -> None:
    with pytest.raises(UserError) as caught:
        TranslationOptions(batch_tokens=0, max_length_ratio=-1.0, n_best=0)
    assert [message.split()[0] for message in caught.value.messages] == [
        "`max_length_ratio`",
        "`batch_tokens`",
        "`n_best`",
    ]
    words = {"Hund": "dog"}
    assert TranslationOptions(replace_unknown=words).replace_unknown is words


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"precision": "fp16"}, "precision fp16: unknown; choose one of float32, bfloat16, int8"),
        ({"precision": "bfloat16"}, "precision bfloat16: is for a GPU; choose int8 or float32 on a CPU"),
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
    ],
)
def test_what_is_no_text(vocabularies, texts: dict[str, Any], message: str) -> None:
    translator = random(vocabularies)
    with pytest.raises(UserError) as caught:
        list(translator.translate(**texts))
    assert str(caught.value) == message
    with pytest.raises(UserError, match="the document is of type bytes; it must be a text"):
        translate_document(translator, b"<p>a</p>", format="html")  # type: ignore[arg-type]


def test_the_end_of_a_line_is_no_part_of_it(vocabularies, tmp_path: Path) -> None:
    """As the lines of an open file have it; with split_sentences white space at the end of a line would stay."""
    translator = random(vocabularies)
    (tmp_path / "text").write_text("a b\r\nb\n", encoding="utf-8", newline="")
    options = TranslationOptions(split_sentences="en", max_length_extra=2)
    with open(tmp_path / "text", encoding="utf-8", newline="\n") as file:
        assert list(translator.translate(file, options)) == list(translator.translate(["a b", "b"], options))


@pytest.mark.parametrize(
    ("texts", "messages"),
    [
        ({"lines": "Hello"}, ["lines is one text, and must be a list of texts, one for each line: ['Hello']"]),
        (
            {"lines": "", "prefixes": "x" * 41, "constraints": [""]},
            [
                "lines is one text, and must be a list of texts, one for each line: ['']",
                f"prefixes is one text, and must be a list of texts, one for each line: ['{'x' * 40}...']",
            ],
        ),
    ],
)
def test_one_text_is_not_a_list_of_letters(vocabularies, texts: dict[str, Any], messages: list[str]) -> None:
    translator = random(vocabularies)
    with pytest.raises(UserError) as caught:
        translator.translate(**texts)
    assert list(caught.value.messages) == messages


def test_all_problems_are_told_at_once(vocabularies) -> None:
    translator = random(vocabularies, score="none")
    translator.decoding = DecodingConfig(coverage_penalty=0.1)
    options = TranslationOptions(replace_unknown={}, alignments=True, diversity=0.5)
    lacking = "the model has no attention (model.attention.score: none)"
    with pytest.raises(UserError) as caught:
        translator.translate(TEXT, options)
    assert caught.value.messages == (
        "`diversity` has an effect only on n-best lists: ask for `n_best` of at least 2",
        f"`coverage_penalty` needs attention, and {lacking}; set it to 0",
        f"`replace_unknown` needs attention, to know the source word of each, and {lacking}",
        f"there are no alignments: {lacking} to read them from",
    )
