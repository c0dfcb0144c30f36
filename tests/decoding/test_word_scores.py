"""How sure the model is of each word: in every search what the model says of its pieces, step by step."""

from typing import Any

import pytest
import torch

from nmt.config.schema import SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.translator import Translator
from nmt.models.stepwise import given_steps
from nmt.symbols import BEGIN, END
from tests.decoding.conftest import TEXT, random_translator
from tests.translating import translate

LINES = ["A dog runs across the field.", "Two men", "", "Is the boy playing with a ball?"]


@pytest.fixture(scope="module")
def translator(vocabularies: Vocabularies) -> Translator:
    return random_translator(vocabularies, scale=3.0, longest_segment=250)


def by_steps(translator: Translator, line: str, ids: list[int]) -> tuple[list[float], float]:
    """The sums over the pieces of each word, and the log-probability of END: for texts without unknown pieces."""
    source, (model,) = translator.vocabularies.source.encode(line), translator.models
    with translator.scorer.inference():
        steps = given_steps(model, torch.tensor([[*source, END]]), torch.tensor([[BEGIN, *ids, END]]))
        pieces = [float(said[token]) for token, (said, _) in zip([*ids, END], steps, strict=True)]
    sums: list[float] = []
    for piece, score in zip(translator.vocabularies.target.pieces(ids), pieces, strict=False):
        if piece.startswith("▁") or not sums:
            sums.append(0.0)
        sums[-1] += score
    return sums, pieces[-1]


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 3, "n_best": 3},
        {"beam_size": 12},
        {"beam_size": 4, "n_best": 2, "diversity": 0.5},
        {"sampling": {"seed": 1, "temperature": 2.0}, "n_best": 2},
        {"beam_size": 6, "constraints": ["men", "field", "", "ball"]},
        {"beam_size": 3, "prefixes": ["", "Two o", "", "A"], "alignments": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("alone", [False, True])
def test_they_are_the_model_s(translator: Translator, options: dict[str, Any], alone: bool) -> None:
    options = {**options, "suppress_unknown": True, "max_length_ratio": 0.6, "length_penalty": "none"}
    places = [[place] for place in range(len(LINES))] if alone else [[*range(len(LINES))]]
    for some in places:
        lines = [LINES[place] for place in some]
        beside = {
            name: [options[name][place] for place in some] for name in ("prefixes", "constraints") if name in options
        }
        results = translate(translator, lines, **{**options, **beside}, word_scores=True)
        for line, several in zip(lines, results, strict=True):
            for one in several:
                found = one.word_scores
                assert found is not None
                assert found.words == one.text.split()
                assert sum(found.scores) + found.end == pytest.approx(one.score, abs=1e-9)
                if line and all(piece != "▁" for piece in one.tokens):  # which is no word by itself
                    scores, end = by_steps(translator, line, [*one.ids])
                    assert found.scores == pytest.approx(scores, abs=1e-9)
                    assert found.end == pytest.approx(end, abs=1e-9)


def test_of_sentences_and_segments_together(vocabularies: Vocabularies) -> None:
    short = random_translator(vocabularies, scale=3.0, longest_segment=9)
    line = " ".join(TEXT)
    (best,) = next(translate(short, [line], word_scores=True, length_penalty="none", max_length_ratio=0.6))
    assert best.word_scores is not None
    assert best.word_scores.words == best.text.split()
    assert sum(best.word_scores.scores) + best.word_scores.end == pytest.approx(best.score, abs=1e-9)


def test_only_on_request_and_of_the_words_in_the_place_of_unknown_ones() -> None:
    words = Subwords.train(TEXT, settings=SubwordsConfig(type="word", size=20))
    translator = random_translator(Vocabularies(words, words), scale=3.0, longest_segment=250)
    (plain,) = next(translate(translator, ["Unheard of"], sampling={"seed": 3}))
    assert plain.word_scores is None
    (best,) = next(translate(translator, ["Unheard of"], sampling={"seed": 3}, word_scores=True, replace_unknown={}))
    assert "⁇" in plain.text
    assert "⁇" not in best.text
    assert best.word_scores is not None
    assert best.word_scores.words == best.text.split()
    (known,) = next(translate(translator, ["Unheard of"], sampling={"seed": 3}, word_scores=True))
    assert known.word_scores is not None
    assert best.word_scores[1:] == known.word_scores[1:]
