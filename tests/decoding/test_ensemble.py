"""Ensembles: on tables whose mean can be searched exhaustively, and on small random networks of different kinds."""

import itertools
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from torch import Tensor, nn

from nmt.config.schema import Config, SubwordsConfig
from nmt.data.subwords import Subwords, Vocabularies
from nmt.decoding.forced import forced_decoding
from nmt.decoding.scorer import Scorer
from nmt.decoding.search.beam import beam_search
from nmt.decoding.translator import Translator, difference
from nmt.errors import UserError
from nmt.models.model_file import ModelFile, save_model
from nmt.models.seq2seq import Seq2Seq, build_model
from nmt.symbols import BEGIN, END
from tests.decoding.conftest import TEXT, network
from tests.translating import translate

OPTIONS: list[dict[str, object]] = [
    {},
    {"beam_size": 1},
    {"n_best": 3, "coverage_penalty": 0.3},
    {"no_repeat_ngram_size": 2, "prefixes": ["A dog"] * len(TEXT)},
]


class Rows(NamedTuple):
    table: Tensor  # (rows,)

    def select(self, rows: Tensor) -> "Rows":
        return Rows(self.table[rows.flatten()])


class Table(nn.Module):
    """A model that knows the last token only: log-probabilities (sentences, vocabulary, vocabulary)."""

    def __init__(self, tables: Tensor) -> None:
        super().__init__()
        self.tables = tables

    def start(self, source: Tensor, source_lengths: Tensor) -> Rows:
        return Rows(torch.arange(len(source)))

    def step(self, tokens: Tensor, state: Rows) -> tuple[Tensor, Rows]:
        return self.tables[state.table, tokens], state


def test_three_tables_equal_an_exhaustive_search_over_their_mean() -> None:
    sentences, vocabulary, limit = 2, 6, 4  # the words are 1, 4 and 5
    generator = torch.Generator().manual_seed(17)
    scores = 2 * torch.randn(3, sentences, vocabulary, vocabulary, generator=generator, dtype=torch.float64)
    tables = scores.log_softmax(dim=-1)
    ensemble = Scorer([Table(table) for table in tables])  # type: ignore[misc]
    found = beam_search(
        ensemble.step,
        ensemble.start(torch.zeros(sentences, 1), torch.ones(sentences)),
        beam_size=200,
        length_penalty="average",
        max_lengths=torch.tensor([limit] * sentences),
        n_best=5,
    )
    for sentence in range(sentences):
        every = {}
        for length in range(limit):
            for words in itertools.product((1, 4, 5), repeat=length):
                steps = list(itertools.pairwise((BEGIN, *words, END)))
                totals = [sum(float(table[sentence, last, token]) for last, token in steps) for table in tables]
                every[words] = sum(totals) / 3 / (length + 1)
        best = sorted(every, key=lambda words: -every[words])[:5]
        assert [tuple(each.tokens) for each in found[sentence]] == best
        assert [each.score for each in found[sentence]] == pytest.approx([every[words] for words in best])
    alone = [
        beam_search(
            table.step,
            table.start(torch.zeros(sentences, 1), torch.ones(sentences)),
            beam_size=200,
            length_penalty="average",
            max_lengths=torch.tensor([limit] * sentences),
            n_best=1,
        )
        for table in map(Table, tables)
    ]
    assert any([best.tokens for best, *_ in found] != [best.tokens for best, *_ in each] for each in alone)


def of_size(vocabularies: Vocabularies, kind: str, **options: str) -> Seq2Seq:
    size = vocabularies.source.size
    return network(kind, source_size=size, target_size=size, **options)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_a_model_twice_gives_the_results_of_the_model(vocabularies, options) -> None:
    model = of_size(vocabularies, "bahdanau").float()
    options = {"alignments": True, **options}
    once = list(translate(Translator([model], vocabularies), TEXT, **options))
    twice = list(translate(Translator([model, model], vocabularies), TEXT, **options))
    for one, other in zip(once, twice, strict=True):
        assert [each[:4] for each in one] == [each[:4] for each in other]
        for each, same in zip(one, other, strict=True):
            assert torch.equal(each.soft_alignment.weights, same.soft_alignment.weights)


def test_the_score_is_the_mean_of_the_members_log_probabilities_and_so_is_the_attention(vocabularies) -> None:
    models = [of_size(vocabularies, "bahdanau"), of_size(vocabularies, "luong", score="general")]
    for line, (best,) in zip(
        TEXT, Translator(models, vocabularies).translate(TEXT, length_penalty="none"), strict=True
    ):
        ids = [_id(vocabularies.target, piece) for piece in best.tokens]
        source = vocabularies.source.encode(line)
        each, both = (
            [forced_decoding(Scorer(some), [(source, ids)], batch_tokens=100, attention=True)[0] for some in together]
            for together in ([[model] for model in models], [models])
        )
        assert best.score == pytest.approx((each[0].log_probability + each[1].log_probability) / 2, abs=1e-9)
        weights = (each[0].weights + each[1].weights) / 2
        assert torch.allclose(both[0].weights, weights)
        assert both[0].log_probability == pytest.approx(best.score, abs=1e-9)


def _id(subwords: Subwords, piece: str) -> int:
    return subwords.pieces(range(subwords.size)).index(piece)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_batches_change_nothing(vocabularies, options) -> None:
    models = [
        of_size(vocabularies, "conditional_gru"),
        of_size(vocabularies, "luong"),
        of_size(vocabularies, "bahdanau"),
    ]
    translator = Translator(models, vocabularies)
    alone = list(translate(translator, TEXT, batch_tokens=1, **options))
    together = list(translate(translator, TEXT, batch_tokens=1000, **options))
    assert [[each.tokens for each in best] for best in alone] == [[each.tokens for each in best] for best in together]
    for one, other in zip(alone, together, strict=True):
        assert [each.score for each in one] == pytest.approx([each.score for each in other], abs=1e-9)


@pytest.mark.parametrize("options", [{"alignments": True}, {"coverage_penalty": 0.2}, {"replace_unknown": {}}], ids=str)
@pytest.mark.parametrize("score", ["none", "fixed"])
def test_a_member_without_attention_is_named(vocabularies, options, score) -> None:
    models = [of_size(vocabularies, "luong"), of_size(vocabularies, "luong", score=score)]
    with pytest.raises(
        UserError, match=rf"model 2 of the ensemble's 2 has no attention \(model.attention.score: {score}\)"
    ):
        translate(Translator(models, vocabularies), TEXT, **options)


def test_what_is_different_between_vocabularies() -> None:
    subwords = [
        Subwords.train(text, settings=SubwordsConfig(type=kind, size=size))
        for text, kind, size in ((TEXT, "bpe", 71), (TEXT, "bpe", 73), (TEXT[::-1], "char", 41), (TEXT, "char", 41))
    ]
    one, larger = subwords[:2]
    assert difference(Vocabularies(one, one), Vocabularies(one, one)) is None
    assert difference(Vocabularies(one, one), Vocabularies(larger, one)) == (
        "their source vocabularies differ: 71 and 73 pieces"
    )
    assert difference(Vocabularies(one, one), Vocabularies(one, larger)) == (
        "their target vocabularies differ: 71 and 73 pieces"
    )
    other = Subwords.train([line.upper() for line in TEXT], settings=SubwordsConfig(type="bpe", size=71))
    message = difference(Vocabularies(one, one), Vocabularies(other, one))
    assert message is not None
    assert message.startswith("their source vocabularies differ: piece ")
    assert " in the one and " in message


def save(path: Path, *, seed: int, subwords: Subwords, ratio: float = 2.0, decoder: str = "luong") -> Path:
    pair = {"source": "a", "target": "b"}
    config = Config.model_validate(
        {
            "name": "tiny",
            "data": {"source_language": "en", "target_language": "de", "train": [pair], "valid": pair},
            "model": {
                "embedding_size": 5,
                "encoder": {"hidden_size": 3},
                "decoder": {"hidden_size": 7, "type": decoder},
            },
            "decoding": {"max_length_ratio": ratio},
        }
    )
    torch.manual_seed(seed)
    model = build_model(config.model, source_size=subwords.size, target_size=subwords.size)
    weights = {name: 3 * weight for name, weight in model.state_dict().items()}
    sizes = (subwords.size, subwords.size)
    save_model(path, ModelFile(config, weights, subwords.model, subwords.model, sizes, {}))
    return path


def test_loading(tmp_path, vocabularies) -> None:
    subwords = vocabularies.source
    one = save(tmp_path / "one", seed=1, subwords=subwords, ratio=0.5)
    other = save(tmp_path / "other", seed=2, subwords=subwords, decoder="bahdanau")
    translator = Translator.load([one, str(other)])
    assert translator.decoding.max_length_ratio == 0.5  # the first one's
    models = [*Translator.load(one).models, *Translator.load(other).models]
    expected = Translator(models, vocabularies, decoding=translator.decoding)
    assert list(translator.translate(TEXT)) == list(expected.translate(TEXT))
    assert list(translator.translate(TEXT)) != list(Translator.load(one).translate(TEXT))
    assert list(Translator.load([one]).translate(TEXT)) == list(Translator.load(one).translate(TEXT))


def test_mistakes_in_loading_are_told_together(tmp_path, vocabularies) -> None:
    one = save(tmp_path / "one", seed=1, subwords=vocabularies.source)
    larger = Subwords.train(TEXT, settings=SubwordsConfig(size=73))
    other = save(tmp_path / "other", seed=1, subwords=larger)
    with pytest.raises(UserError) as caught:
        Translator.load([one, other, one, other])
    differing = f"{one} and {other} cannot translate together: their source vocabularies differ: 71 and 73 pieces"
    assert caught.value.messages == (differing,)
    with pytest.raises(UserError) as caught:
        Translator.load([one, tmp_path / "nowhere", tmp_path])
    assert len(caught.value.messages) == 2
    with pytest.raises(UserError, match="the list of paths is empty"):
        Translator.load([])
