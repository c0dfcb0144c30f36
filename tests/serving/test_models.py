"""Models by their pairs of languages: lines are translated as the translator does, by sentences or as a whole."""

from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nmt.decoding.scorer import Scorer
from nmt.decoding.text.protect import SlowPattern
from nmt.decoding.threads import MOST, number
from nmt.decoding.translator import TranslationOptions, Translator
from nmt.errors import UserError
from nmt.serving.limits import Pair
from nmt.serving.models import Served
from tests.random_model import text

PAIR = Pair("en", "de")
LINES = ["A dog runs. Two men are reading!", "", *text(20).splitlines()]


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return Translator.load(model)


def served_by(translator: Translator, **options: Any) -> Served:
    return Served({PAIR: translator}, {PAIR: TranslationOptions(**options)})


@pytest.mark.parametrize("split", ["en", False])
def test_translations_are_those_of_the_translator(translator: Translator, split: str | bool) -> None:
    served = served_by(translator, beam_size=4, split_sentences=split)
    served.check()
    options = TranslationOptions(beam_size=4, n_best=2, alignments=True, split_sentences=split)
    for best, expected in zip(
        served.translate(LINES, served.kind(PAIR, n_best=2, alignments=True)),
        translator.translate(LINES, options),
        strict=True,
    ):
        assert [one.text for one in best] == [one.text for one in expected]
        assert [one.alignment for one in best] == [one.alignment for one in expected]


def test_options_that_a_model_cannot_follow(translator: Translator) -> None:
    served = served_by(translator, replace_unknown={}, suppress_unknown=True)
    with pytest.raises(UserError, match="en → de: `suppress_unknown` leaves no unknown word for `replace_unknown`"):
        served.check()


def test_what_a_client_asks_for_is_not_told_in_the_log(
    translator: Translator, recwarn: pytest.WarningsRecorder
) -> None:
    served = served_by(translator)
    served.translate(["a dog"], served.kind(PAIR, split_sentences="xx-secret"))
    assert not recwarn.list


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_memory_that_is_short(translator: Translator, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*arguments: object, **keywords: object) -> None:
        raise error

    monkeypatch.setattr(translator, "translate", fail)
    served = served_by(translator)
    with pytest.raises(UserError, match="not enough memory"):
        served.translate(["a"], served.kind(PAIR))


def test_a_translation_that_nobody_wants_any_more(translator: Translator) -> None:
    asked = iter([False, False, True])
    served = served_by(translator)
    with pytest.raises(CancelledError):
        served.translate(["a dog runs"], served.kind(PAIR), unwanted=lambda: next(asked))
    assert next(asked, None) is None


@pytest.mark.parametrize("lines", [LINES, ["A dog runs. " * 20]], ids=["lines", "sentences of one line"])
def test_threads_have_their_share_of_the_cores(
    lines: list[str], translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of seven, four of them one; alone one has all."""
    served = replace(served_by(translator, split_sentences="en"), threads=7)
    seen, start = list[int](), Scorer.start
    assert served.workers == 1
    monkeypatch.setattr(translator.scorer, "most_batches", MOST)
    assert served.workers == MOST == 4
    monkeypatch.setattr(Scorer, "start", lambda *given, **more: seen.append(number()) or start(*given, **more))
    texts = []
    for alone in (False, True):
        texts.append([best[0].text for best in served.translate(lines, served.kind(PAIR), alone=alone)])
    assert texts[0] == texts[1]
    assert seen == [1, 2, 2, 2]  # alone, three batches share the seven


@pytest.mark.parametrize(
    "lines", [["a" * 60], [f"{'a' * 24}{number}" for number in range(400)]], ids=["one line", "many lines"]
)
def test_patterns_of_clients_have_a_limit(translator: Translator, lines: list[str]) -> None:
    """Whatever they match, what is read of a batch takes a few seconds at most."""
    served = served_by(translator)
    with pytest.raises(SlowPattern, match="takes more than 1 s"):
        served.translate(lines, served.kind(PAIR, protect=[r"(?:a|aa)+[bc]"]))
    ((best,),) = served.translate(["a dog runs ART-12"], served.kind(PAIR, protect=[r"ART-\d+"]))
    assert "ART-12" in best.text
    ((best,),) = served.translate(["a dog runs"], served.kind(PAIR, protect=[r"\w"]))  # all of it
    assert best.text == "a dog runs"


def test_what_models_can_do(translator: Translator) -> None:
    served = served_by(translator, beam_size=7)
    assert (served.pairs, served.most(PAIR), served.has_alignments(PAIR)) == ([PAIR], 7, True)
