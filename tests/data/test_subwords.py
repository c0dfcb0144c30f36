"""Subword models: special symbols, strange text, sampling as a pure function, and messages about bad sizes."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sentencepiece

from nmt.config.schema import SubwordSampling, SubwordsConfig
from nmt.data.subwords import Subwords
from nmt.errors import UserError
from nmt.symbols import BEGIN, END, PAD, PIECES, UNKNOWN

LINES = [
    "a small dog runs along the sandy beach",
    "two young men are walking along the small river",
    "the dogs and the men run through deep snow",
    "Ein kleiner Hund läuft am Strand entlang",
    "zwei junge Männer gehen an dem kleinen Fluss entlang",
    "die Hunde und die Männer laufen durch tiefen Schnee",
]
STRANGE = [
    "\x00",
    "a\x00b \x01\x02\x1f",
    "a\u2028b\u2029c\x0bd\x0ce\x85f",
    "\ufeffdog",
    "😀 👩‍👩‍👧 🇩🇪",
    "\u202edog\u200b",
    "▁ ▁▁ ⁇ ▅",
    "dog " * 10_000,
    "x" * 100_000,
]


def train(kind: str = "bpe", size: int = 90, lines: list[str] = LINES, **settings: object) -> Subwords:
    config = SubwordsConfig.model_validate({"type": kind, "size": size, **settings})
    return Subwords.train(lines, settings=config)


@pytest.fixture(scope="module")
def bpe() -> Subwords:
    return train("bpe")


@pytest.fixture(scope="module")
def unigram() -> Subwords:
    return train("unigram", 60)


@pytest.mark.parametrize(("kind", "size"), [("bpe", 90), ("unigram", 60), ("char", 500), ("word", 500)])
def test_text_survives_each_type(kind: str, size: int) -> None:
    subwords = train(kind, size)
    assert subwords.pieces([PAD, UNKNOWN, BEGIN, END]) == list(PIECES)
    assert subwords.size == size if kind in ("bpe", "unigram") else subwords.size < size
    for line, ids in zip(LINES, subwords.encode_batch(LINES), strict=True):
        assert ids == subwords.encode(line)
        assert min(ids) > END
        assert subwords.decode(ids) == line


def test_char_and_word_sizes_are_upper_bounds() -> None:
    assert train("char", 20).size == 20
    assert train("word", 11).size == 11
    letters = {letter for line in LINES for letter in line if letter != " "}
    assert train("char", 500).size == len(letters) + len(PIECES) + 1  # and the start of a word


def test_equal_input_gives_the_equal_model(bpe: Subwords) -> None:
    assert train("bpe").model == bpe.model
    assert Subwords(bpe.model).encode(LINES[0]) == bpe.encode(LINES[0])


def test_lowercase_folds_case() -> None:
    subwords = train(lowercase=True)
    assert subwords.decode(subwords.encode("Ein Hund")) == "ein hund"


@pytest.mark.parametrize("normalization", ["nmt_nfkc", "nfkc", "identity"])
@pytest.mark.parametrize(("kind", "size"), [("bpe", 320), ("unigram", 300), ("char", 360)])
def test_byte_fallback_writes_unknown_characters(kind: str, size: int, normalization: str) -> None:
    """Wherever in a word they are, and however many follow each other."""
    subwords = train(kind, size, byte_fallback=True, normalization=normalization)
    for text in ("ein Ω 😀", "Ωhund", "日本 語", "<0x41> Ω"):
        assert subwords.decode(subwords.encode(text)) == text
    assert UNKNOWN not in subwords.encode("Ω")


@pytest.mark.parametrize("text", ["", " ", "\t", "\u3000", "\u2028"])
def test_blank_text_has_no_pieces(bpe: Subwords, text: str) -> None:
    assert bpe.encode(text) == []
    assert bpe.encode_batch([text, "dog", text])[::2] == [[], []]
    assert bpe.decode([]) == ""


@pytest.mark.parametrize("text", STRANGE, ids=ascii)
def test_strange_text_is_encoded_and_comes_back_as_one_line(bpe: Subwords, unigram: Subwords, text: str) -> None:
    for subwords in (bpe, unigram, train("char", 300, normalization="identity"), train("word", 300)):
        ids = subwords.encode(text)
        assert not {PAD, BEGIN, END} & set(ids)
        assert len(subwords.decode(ids).splitlines()) <= 1


@pytest.mark.parametrize(("kind", "size"), [("bpe", 27), ("unigram", 22), ("char", 100), ("word", 100)])
def test_special_symbols_in_text_are_only_text(kind: str, size: int) -> None:
    # sentencepiece leaves such symbols out of what it trains on, so their letters must occur elsewhere too
    tagged = ["<s> <pad> </s> <unk> tag", "dog</s><s>dog <unk><pad>", "<s></s>", "<pad>"]
    subwords = train(kind, size, tagged * 3 + ["< > / s p a d u n k t g o", "pad unk dog tag <a> <o>"])
    for line in tagged:
        ids = subwords.encode(line)
        assert not {PAD, BEGIN, END} & set(ids)
        assert kind == "word" or subwords.decode(ids) == line


def test_decoding_ignores_the_special_symbols(bpe: Subwords) -> None:
    ids = bpe.encode("the dog runs")
    assert bpe.decode([BEGIN, *ids, END, PAD, PAD]) == "the dog runs"


def test_decoding_never_breaks_the_line() -> None:
    subwords = train("char", 300, ["a\u2028b", "c\x0bd", "e\x85f\rg"], normalization="identity")
    assert subwords.decode(subwords.encode("a\u2028b\x0bd\x85f\rg")) == "a b d f g"


def test_lines_too_long_for_sentencepiece_are_trained_on_all_the_same() -> None:
    # sentencepiece by itself drops lines over 4192 bytes, and its BPE trainer dies of a word of 65536 characters
    subwords = train("bpe", 18, ["q" * 70_000, "z " * 10_000, "ﷺ" * 5_000])
    assert UNKNOWN not in subwords.encode("qqq z")


# ------------------------------------------------------------------------------------------------------------ sampling


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_sampling_is_a_pure_function(kind: str, bpe: Subwords, unigram: Subwords) -> None:
    sampling = SubwordSampling(alpha=0.3)
    subwords, other = (bpe, unigram) if kind == "bpe" else (unigram, bpe)
    expected = {seed: subwords.sample(LINES, sampling=sampling, seed=seed) for seed in (0, 1, 2**32 - 1, 2**63)}
    assert len({str(sampled) for sampled in expected.values()}) == len(expected)  # the seed matters
    for seed in reversed(expected):
        other.sample(LINES * 3, sampling=sampling, seed=seed)  # whatever was sampled in between
        subwords.encode_batch(LINES)
        assert subwords.sample(LINES, sampling=sampling, seed=seed) == expected[seed]
    assert Subwords(subwords.model).sample(LINES, sampling=sampling, seed=1) == expected[1]
    for sampled in expected.values():
        assert [subwords.decode(ids) for ids in sampled] == LINES


@pytest.mark.parametrize("kind", ["char", "word"])
def test_models_that_cannot_sample_say_so(kind: str) -> None:
    with pytest.raises(ValueError, match="bpe and unigram models can"):
        train(kind, 500).sample(LINES, sampling=SubwordSampling(alpha=0.1), seed=1)


# ------------------------------------------------------------------------------------------------------------ messages


@pytest.mark.parametrize("raised", [UserError("the file was changed"), KeyboardInterrupt(), MemoryError()])
def test_what_reading_the_text_raises_comes_through_as_it_is(raised: BaseException) -> None:
    """sentencepiece would replace the exception with its own."""

    def lines() -> Iterator[str]:
        yield from ["a b c"] * 50
        raise raised

    with pytest.raises(type(raised)) as error:
        Subwords.train(lines(), settings=SubwordsConfig(type="char", size=10))
    assert error.value is raised


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_a_text_of_few_words_has_fewer_pieces(kind: str) -> None:
    most = train(kind, 8000).size
    assert len(PIECES) < most < 8000
    assert train(kind, most).size == most


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_too_small_a_vocabulary_names_the_smallest(kind: str) -> None:
    letters = {letter for line in LINES for letter in line if letter != " "}
    with pytest.raises(UserError, match=rf"subwords\.size is 9, but .* at least {len(letters) + len(PIECES) + 1}"):
        train(kind, 9)


@pytest.mark.parametrize("lines", [[], ["", "  ", "\u3000"], ["\x01", "\u200b"]])
def test_a_corpus_without_text_is_refused(lines: list[str]) -> None:
    with pytest.raises(UserError, match="this corpus"):
        train(lines=lines)


def test_a_damaged_model_file_is_named(tmp_path: Path, bpe: Subwords) -> None:
    file = tmp_path / "given.model"
    for content in (b"", b"no model", bpe.model[: len(bpe.model) // 2]):
        file.write_bytes(content)
        with pytest.raises(UserError, match=r"given\.model: not a sentencepiece model"):
            Subwords.from_file(file)
    for path, reason in ((tmp_path / "missing.model", "no such file"), (tmp_path, "is a folder, not a file")):
        with pytest.raises(UserError, match=f"^{path}: {reason}"):
            Subwords.from_file(path)


@pytest.mark.parametrize("kind", ["bpe", "unigram", "char"])
@pytest.mark.parametrize(
    "special",
    [
        {},
        {"pad_id": 1, "unk_id": 0, "bos_id": 2, "eos_id": 3},
        {"unk_id": 1, "bos_id": -1, "eos_id": 0, "unk_piece": "[UNK]"},
        {"pad_id": 3, "control_symbols": ["<en>"], "user_defined_symbols": ["dog"], "eos_piece": "<end>"},
    ],
    ids=["spm_train", "joeynmt", "marian", "symbols"],
)
def test_a_model_by_others_cuts_text_as_it_did(tmp_path: Path, kind: str, special: dict[str, Any]) -> None:
    """Only ids change: those of the special symbols come first, and all others in their order."""
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=writer, model_type=kind, vocab_size=40, minloglevel=2,
        hard_vocab_limit=False, **special,
    )  # fmt: skip
    (tmp_path / "given.model").write_bytes(writer.getvalue())
    given = Subwords.from_file(tmp_path / "given.model")
    theirs = sentencepiece.SentencePieceProcessor(model_proto=writer.getvalue())
    names = zip(("pad", "unk", "bos", "eos"), PIECES, strict=True)
    named = [special.get(f"{name}_piece", piece) for name, piece in names]
    others = [piece for piece in map(theirs.id_to_piece, range(theirs.get_piece_size())) if piece not in named]
    assert given.pieces(range(given.size)) == [*named, *others]
    for line in LINES:
        ids = given.encode(line)
        assert given.pieces(ids) == theirs.encode(line, out_type=str)
        assert given.decode(ids) == theirs.decode(theirs.encode(line))
    assert Subwords(given.model).pieces(range(4)) == named


def test_a_model_with_other_special_ids_in_a_model_file_is_refused() -> None:
    writer = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=writer, vocab_size=60, minloglevel=2
    )
    with pytest.raises(ValueError, match="special symbols have other ids"):
        Subwords(writer.getvalue())


def test_a_word_model_has_one_unknown_piece_for_each_unknown_word() -> None:
    """sentencepiece by itself merges a run of them into one piece, which would lose all but one."""
    subwords = train("word", 500, ["the cat sleeps", "the dog runs"])
    text = "the zebra\tgnu runs  okapi "
    assert [subwords.pieces([token])[0] for token in subwords.encode(text)] == [
        "▁the",
        "<unk>",
        "<unk>",
        "▁runs",
        "<unk>",
    ]
    assert subwords.encode_batch([text, ""]) == [subwords.encode(text), []]
    assert [text[start:stop] for start, stop in subwords.spans(text)] == text.split()
    assert subwords.decode(subwords.encode(text)).count("⁇") == 3


# ------------------------------------------------------------------------------------------------------------- symbols


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize(("kind", "size"), [("bpe", 90), ("unigram", 55), ("char", 500), ("word", 500)])
def test_symbols_come_last_and_are_never_cut(kind: str, size: int, lowercase: bool) -> None:
    plain = train(kind, size, lowercase=lowercase)
    tagged = plain.with_symbols(["<BT>", "<2de>"])
    first = plain.size
    assert tagged.size == first + 2
    assert tagged.pieces(range(first)) == plain.pieces(range(first))
    for line in LINES:
        assert tagged.encode(line) == plain.encode(line)
        assert tagged.encode(f"<BT> {line}") == [first, *plain.encode(line)]
        assert tagged.encode(f"<2de> {line}") == [first + 1, *plain.encode(line)]
    assert tagged.spans("<BT> dog")[0] == (0, 4)
    assert tagged.with_symbols(["<2de>"]) is tagged
    assert first not in tagged.encode("x<BT> < BT >")


def test_a_symbol_that_is_a_piece_already_keeps_its_id() -> None:
    learned = train("bpe", 90)
    known = learned.pieces(range(learned.size)).index("▁dog")
    symbol = learned.with_symbols(["dog"])
    assert symbol is not learned
    assert (symbol.size, symbol.encode("dog runs")[0]) == (learned.size, known)
    words = train("word", 500)
    assert words.with_symbols(["dog"]) is words


def test_a_symbol_that_normalization_takes_away() -> None:
    with pytest.raises(ValueError, match="which is no word; choose another symbol"):
        train().with_symbols(["\u200b"])


@pytest.mark.parametrize(("kind", "size"), [("bpe", 90), ("unigram", 60)])
def test_sampled_text_keeps_its_symbols(kind: str, size: int) -> None:
    tagged = train(kind, size).with_symbols(["<BT>", "<BTX>"])
    sampling = SubwordSampling(alpha=0.9 if kind == "bpe" else 0.01)
    for seed in range(20):
        (ids,) = tagged.sample(["<BTX> the <BT> dog"], sampling=sampling, seed=seed)
        pieces = tagged.pieces(ids)
        assert pieces[0] == "▁<BTX>"
        assert pieces.count("▁<BT>") == 1
        assert tagged.decode(ids) == "<BTX> the <BT> dog"
