"""Random segmentations: the best one when nothing is random, and otherwise the probabilities in the papers."""

import io
from collections import Counter
from itertools import product
from math import exp
from random import Random

import pytest
import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from nmt.config.schema import SubwordsConfig
from nmt.data.segmentation import Segmenter
from nmt.data.subwords import Subwords
from tests.data.test_subwords import LINES, train

UNSEEN = ["", " ", "Ωmega 日本 dogs", "a<s>b </s>", "▁▁ snow\u2028\x00", "👩‍👩‍👧 river", "thesnowandthedogs " * 40]


def models(kind: str, size: int, **options: object) -> tuple[Subwords, Segmenter]:
    subwords = train(kind, size, **options)
    processor = sentencepiece.SentencePieceProcessor(model_proto=subwords.model)
    return subwords, Segmenter(subwords.model, processor)


def segmentations(pieces: dict[str, float], word: str) -> dict[tuple[str, ...], float]:
    """Every segmentation of a word into known pieces, with its score, found by trying every split."""
    scores = {}
    for cuts in product((False, True), repeat=len(word) - 1):
        parts = "".join(letter + " " * cut for letter, cut in zip(word, (*cuts, False), strict=True)).split(" ")
        if all(part in pieces for part in parts):
            scores[tuple(parts)] = sum(pieces[part] for part in parts)
    return scores


@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_without_chance_it_is_the_segmentation_of_sentencepiece(kind: str, byte_fallback: bool) -> None:
    subwords, segmenter = models(kind, (90 if kind == "bpe" else 50) + 256 * byte_fallback, byte_fallback=byte_fallback)
    # bpe: no merge is left out; unigram: the best path has all the weight
    alpha = {"bpe": 0.0, "unigram": 1e4}[kind]
    for line in LINES + UNSEEN:
        assert segmenter.sample(line, alpha=alpha, random=Random(1)) == subwords.encode(line)


def test_bpe_dropout_of_every_merge_leaves_letters() -> None:
    subwords, segmenter = models("bpe", 90)
    ids = segmenter.sample("dog runs", alpha=1.0, random=Random(1))
    assert subwords.pieces(ids) == list("▁dog▁runs")


def test_bpe_dropout_of_one_merge_by_hand() -> None:
    # ▁ and x make up the only merge, which is tried once: it comes out whole with probability 1 - 0.3.
    subwords = Subwords.train(["x x", "x"], settings=SubwordsConfig(type="bpe", size=7))
    assert sorted(subwords.pieces([4, 5, 6])) == ["x", "▁", "▁x"]
    segmenter = Segmenter(subwords.model, sentencepiece.SentencePieceProcessor(model_proto=subwords.model))
    random, draws = Random(1), 4000
    lengths = Counter(len(segmenter.sample("x", alpha=0.3, random=random)) for _ in range(draws))
    assert lengths[1] + lengths[2] == draws
    assert lengths[1] / draws == pytest.approx(0.7, abs=0.02)


@pytest.mark.parametrize("alpha", [0.5, 1.0])
def test_unigram_segmentations_have_their_probabilities(alpha: float) -> None:
    subwords, segmenter = models("unigram", 50)
    processor = sentencepiece.SentencePieceProcessor(model_proto=subwords.model)
    pieces = {processor.id_to_piece(number): processor.get_score(number) for number in range(4, subwords.size)}
    scores = segmentations(pieces, "▁entlang")
    weights = {parts: exp(alpha * score) for parts, score in scores.items()}
    random, draws = Random(1), 20_000
    drawn = Counter(
        tuple(subwords.pieces(segmenter.sample("entlang", alpha=alpha, random=random))) for _ in range(draws)
    )
    assert set(drawn) <= set(weights)
    assert len(weights) >= 3
    for parts, weight in weights.items():
        assert drawn[parts] / draws == pytest.approx(weight / sum(weights.values()), abs=0.015)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_runs_of_unknown_characters_are_one_unknown_in_every_draw(kind: str) -> None:
    subwords, segmenter = models(kind, 50)
    for seed in range(20):
        ids = segmenter.sample("ΩΩΩ dog", alpha=0.5, random=Random(seed))
        pieces = subwords.pieces(ids)
        assert pieces[:2] == ["▁", "<unk>"]
        assert "".join(pieces[2:]) == "▁dog"


def test_pieces_across_words_are_found_too() -> None:
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["of the of the of the", "in the in the", "of a in a"] * 9),
        model_writer=writer,
        model_type="bpe",
        vocab_size=24,
        split_by_whitespace=False,
        hard_vocab_limit=False,
        minloglevel=2,
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
    )
    subwords = Subwords(writer.getvalue())
    assert any("▁" in piece[1:] for piece in subwords.pieces(range(subwords.size)))
    segmenter = Segmenter(subwords.model, sentencepiece.SentencePieceProcessor(model_proto=subwords.model))
    for line in ("of the in the", "in a of the of the"):
        assert segmenter.sample(line, alpha=0.0, random=Random(1)) == subwords.encode(line)


def test_user_defined_symbols_are_refused() -> None:
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=writer, vocab_size=50, user_defined_symbols=["<2de>"], minloglevel=2
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=writer.getvalue())
    with pytest.raises(ValueError, match="user-defined symbols"):
        Segmenter(writer.getvalue(), processor)


def test_very_long_words_take_no_quadratic_time() -> None:
    _, segmenter = models("bpe", 90)
    ids = segmenter.sample("dog" * 500, alpha=0.1, random=Random(1))
    assert len(ids) > 500 / 3


def field(number: int, content: bytes) -> bytes:
    """A field of a serialized message, of less than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


@pytest.mark.parametrize(
    "piece",
    [
        b"\x15\x00\x00\x80\x3f",
        b"\x08\x01",
        b"\x0a\x01\xff",
        b"\x0a\x03<xy\x18\x06",
        b"\x0a",
        b"\x0a\x01a\x15\x00\x00\xc0\x7f",
    ],
    ids=["without text", "number for text", "not UTF-8", "no byte", "cut off", "not a number"],
)
def test_a_piece_that_sentencepiece_overlooks_and_no_model_has_raises_value_error(piece: bytes) -> None:
    subwords, _ = models("bpe", 60)
    with pytest.raises(ValueError, match="not a sentencepiece model, or damaged"):
        Segmenter(subwords.model + field(1, piece), subwords._processor)


@pytest.mark.parametrize("damage", [b"\x0a", b"\x12\x01\x18"], ids=["end", "inside"])
def test_a_model_whose_settings_cannot_be_read_is_refused_when_it_is_loaded(damage: bytes) -> None:
    model = ModelProto.FromString(models("bpe", 60)[0].model)
    without = b"".join(field(1, piece.SerializeToString()) for piece in model.pieces)
    with pytest.raises(ValueError, match="not a sentencepiece model, or damaged"):
        Subwords(without + damage)
