"""Ensembles: on tables whose mean can be searched exhaustively, and on small random networks of different kinds."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from nmt.data.subwords import Vocabularies
from nmt.decoding.engines import ENSEMBLES
from nmt.decoding.forced import forced_decoding
from nmt.decoding.scorer import Scorer
from nmt.decoding.shortlist import Columns
from nmt.decoding.translator import Translator
from nmt.errors import UserError
from nmt.models.seq2seq import Seq2Seq
from nmt.symbols import END
from tests.decoding.conftest import TEXT, network
from tests.random_model import SENTENCES, save_random_model
from tests.translating import translate

SHORT: dict[str, Any] = {"max_length_ratio": 0.3, "max_length_extra": 4}  # these networks hardly ever end a translation


def in_numpy(ensemble: str, logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log-probabilities (…, vocabulary) of models with these logits (models, …, vocabulary) together."""
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    if ensemble == "log-probabilities":
        return np.asarray(np.log(probabilities.prod(axis=0) ** (1 / len(logits))))
    if ensemble == "probabilities":
        return np.asarray(np.log(probabilities.mean(axis=0)))
    means = np.exp(logits.mean(axis=0))
    return np.asarray(np.log(means / means.sum(axis=-1, keepdims=True)))


def of_size(vocabularies: Vocabularies, kind: str, **options: str) -> Seq2Seq:
    size = vocabularies.source.size
    return network(kind, source_size=size, target_size=size, **options)


@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_the_score_of_a_translation_is_that_of_forced_decoding(vocabularies, ensemble) -> None:
    models = [
        of_size(vocabularies, "bahdanau"),
        of_size(vocabularies, "luong", score="general"),
        of_size(vocabularies, "conditional_gru"),
    ]
    translator = Translator(models, vocabularies, ensemble=ensemble)
    options: dict[str, Any] = {"beam_size": 3, "length_penalty": "none", "alignments": True, **SHORT}
    translations = [best for best, *_ in translate(translator, TEXT[:3], **options)]
    pairs = [(vocabularies.source.encode(line), best.ids) for line, best in zip(TEXT[:3], translations, strict=True)]
    scored = forced_decoding(translator.scorer, pairs, batch_tokens=100, attention=True)
    for best, joint, (source, target) in zip(translations, scored, pairs, strict=True):
        assert best.score == pytest.approx(joint.log_probability, abs=1e-9)
        members = [
            forced_decoding(Scorer([model]), [(source, target)], batch_tokens=100, attention=True)[0]
            for model in models
        ]
        np.testing.assert_allclose(joint.weights, sum(alone.weights for alone in members) / 3, rtol=1e-6)
        mean = sum(alone.log_probability for alone in members) / 3
        if ensemble == "log-probabilities":
            assert joint.log_probability == pytest.approx(mean, abs=1e-9)
        else:  # each of the two is at least the geometric mean, which is divided by at most 1
            assert joint.log_probability > mean + 1e-3


@pytest.mark.parametrize("ensemble", ENSEMBLES)
def test_with_columns_each_model_has_the_probabilities_of_those_of_the_sentence(vocabularies, ensemble) -> None:
    models = [of_size(vocabularies, "bahdanau"), of_size(vocabularies, "luong")]
    ids = torch.tensor([0, 1, 2, 3, 7, 11, 13])
    barred = torch.tensor([[True, False, True, False, False, True, False], [True] * 3 + [False] * 4])
    scorer, columns = Scorer(models, ensemble=ensemble), Columns(ids.numpy(), barred.numpy())
    source, lengths = torch.tensor([[5, 7, 9, END], [6, END, 0, 0]]), torch.tensor([4, 2])
    words = torch.tensor([4, 6])  # as columns, of tokens 7 and 13
    with scorer.inference():
        (values, _), _ = scorer.step(words.numpy(), scorer.start(source, lengths, columns=columns))
        logits = []
        for model in models:
            vectors, *_ = model.advance(ids[words], model.start(source, lengths))
            logits.append(vectors @ model.output_weight[ids].T)
    for sentence in range(2):
        open_columns = ~barred[sentence]
        expected = in_numpy(ensemble, torch.stack(logits)[:, sentence, open_columns].numpy())
        np.testing.assert_allclose(values[sentence, open_columns], expected, atol=1e-12)
        assert (values[sentence, barred[sentence]] == -math.inf).all()


def test_one_model_is_no_ensemble_and_a_mean_has_a_name(vocabularies) -> None:
    model = of_size(vocabularies, "luong")
    with pytest.raises(UserError, match="ensemble: logits has an effect only with several models, and there is one"):
        Translator([model], vocabularies, ensemble="logits")
    with pytest.raises(UserError, match="ensemble is 'median'; it must be one of log-probabilities, probabilities, l"):
        Translator([model, model], vocabularies, ensemble="median")  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"alignments": True}, {"coverage_penalty": 0.2}, {"replace_unknown": {}}], ids=str)
@pytest.mark.parametrize("score", ["none", "fixed"])
def test_a_member_without_attention_is_named(vocabularies, options, score) -> None:
    models = [of_size(vocabularies, "luong"), of_size(vocabularies, "luong", score=score)]
    with pytest.raises(
        UserError, match=rf"model 2 of the ensemble's 2 has no attention \(model.attention.score: {score}\)"
    ):
        translate(Translator(models, vocabularies), TEXT, **options)


def test_loading(tmp_path: Path) -> None:
    one = save_random_model(tmp_path / "one", ratio=0.2)
    other = save_random_model(tmp_path / "other", seed=2, decoder="bahdanau")
    translator, lines = Translator.load([one, str(other)]), SENTENCES[:2]
    vocabularies = translator.vocabularies
    assert translator.decoding.max_length_ratio == 0.2  # the first one's
    models = [*Translator.load(one).models, *Translator.load(other).models]
    expected = Translator(models, vocabularies, decoding=translator.decoding)
    assert list(translator.translate(lines)) == list(expected.translate(lines))
    assert list(translator.translate(lines)) != list(Translator.load(one).translate(lines))
    assert list(Translator.load([one]).translate(lines)) == list(Translator.load(one).translate(lines))
    translations = {}
    for ensemble in ENSEMBLES:
        loaded = Translator.load([one, other], ensemble=ensemble)
        results = list(loaded.translate(lines, length_penalty="none"))
        same = Translator(models, vocabularies, decoding=translator.decoding, ensemble=ensemble)
        assert results == list(same.translate(lines, length_penalty="none"))
        translations[ensemble] = [best.score for best, *_ in results]
    assert translations["log-probabilities"] == [
        best.score for best, *_ in translator.translate(lines, length_penalty="none")
    ]
    assert len(set(map(tuple, translations.values()))) == 3


def test_mistakes_in_loading_are_told_together(tmp_path: Path) -> None:
    one, other = save_random_model(tmp_path / "one"), save_random_model(tmp_path / "other", size=41)
    with pytest.raises(UserError) as caught:
        Translator.load([one, other, one, other])
    differing = f"{one} and {other} cannot translate together: their {{}} vocabularies differ (43 and 41 pieces)"
    assert caught.value.messages == (differing.format("source"), differing.format("target"))
    with pytest.raises(UserError) as caught:
        Translator.load([one, tmp_path / "nowhere", tmp_path])
    assert len(caught.value.messages) == 2
    with pytest.raises(UserError, match="the list of paths is empty"):
        Translator.load([])
