"""Scores of lines: one for each pair, in order, whatever they hold."""

import pytest
import torch

from nmt.data.batch import make_batch
from nmt.data.subwords import Vocabularies
from nmt.decoding import scoring
from nmt.decoding.options import TranslationOptions
from nmt.decoding.scorer import Scorer
from nmt.decoding.scoring import Scored, score
from nmt.decoding.translator import Translator
from nmt.training.objective import batch_loss
from tests.decoding.conftest import network


def test_lines(vocabularies: Vocabularies) -> None:
    size = vocabularies.source.size
    model = network(source_size=size, target_size=size)
    pairs = [
        ("A dog runs.", "Two men."),
        ("", " "),
        ("\u3000", "Two men."),
        ("A dog runs.", ""),
        ("x" * 300, "men " * 260),
    ]
    scored = list(score(Translator([model], vocabularies), iter(pairs), TranslationOptions(batch_tokens=100)))
    assert scored[1] == Scored(0.0, 0)
    assert scored[3].tokens == 1
    for result, (source, target) in zip(scored, pairs, strict=True):
        if result.tokens == 0:
            continue
        ids = vocabularies.source.encode(source), vocabularies.target.encode(target)
        assert result.tokens == len(ids[1]) + 1  # nothing is cut
        with Scorer([model]).inference():
            pair = make_batch([ids[0]], [ids[1]], torch.zeros(1).long().numpy())
            nll = batch_loss(model, pair, smoothing=0.0).nll
        assert result.log_probability == pytest.approx(-float(nll), rel=1e-9)
        assert result.log_probability < 0


def test_many_lines_stay_in_order(vocabularies: Vocabularies, monkeypatch: pytest.MonkeyPatch) -> None:
    size = vocabularies.source.size
    model = network(source_size=size, target_size=size)
    pairs = [("A dog runs."[:length], "Two men"[: 1 + length % 5]) for length in range(12)]
    translator, few = Translator([model], vocabularies), TranslationOptions(batch_tokens=50)
    together = list(score(translator, pairs, few))
    monkeypatch.setattr(scoring, "_CHUNK_PAIRS", 5)
    in_chunks = list(score(translator, pairs, few))
    assert [result.tokens for result in in_chunks] == [result.tokens for result in together]
    assert [result.log_probability for result in in_chunks] == pytest.approx(
        [result.log_probability for result in together]
    )
    assert list(score(translator, [], few)) == []
