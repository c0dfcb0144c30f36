"""Vocabulary files, and the models of words made from them: what is read, what is refused, and text there and back."""

import gzip
import random
from pathlib import Path

import pytest
import sentencepiece

from nmt.config.schema import SubwordsConfig
from nmt.data.segmentation import WORD_START, read_model
from nmt.data.subwords import Subwords
from nmt.data.vocabulary import LONGEST_WORD, joiner_of, read_vocabulary, word_model
from nmt.errors import UserError
from nmt.symbols import BEGIN, END, PAD, PIECES, UNKNOWN

SPECIAL = "<unk>\n<s>\n</s>\n"


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "vocab.en"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def made(*words: str, joiner: str = "") -> Subwords:
    return Subwords(word_model(words, joiner))


# --------------------------------------------------------------------------------------------------------------- files


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (SPECIAL + "the\ndog\n", ["the", "dog"]),
        ("the\ndog", ["the", "dog"]),
        ("the 12\ndog@@ 7\ns 7\n", ["the", "dog@@", "s"]),
        ("the\t12\ndog\t7\n", ["the", "dog"]),
        ("<unk> 0\n<s> 0\n</s> 0\nthe 5\n", ["the"]),
        ("<unk>\n<pad>\n<s>\n</s>\nthe\n", ["the"]),  # JoeyNMT
        ("the 5\n<unk> 3\ndog 2\n</s> 1\n", ["the", "dog"]),  # of a text with <unk>
        ("7\n12\n", ["7", "12"]),
        ("7 7\n12 3\n", ["7", "12"]),
        ("\ufeff<unk>\r\n<s>\r\n</s>\r\nthe\r\n", ["the"]),
        (SPECIAL + "the \n\xa0dog\n", ["the", "dog"]),  # white space around a word, as their readers leave it out
        (
            SPECIAL + "<blank>\n<UNK>\n&lt;s&gt;\n▁the\n@@\n⁇\n\u200b\n",
            ["<blank>", "<UNK>", "&lt;s&gt;", "▁the", "@@", "⁇", "\u200b"],
        ),
        (SPECIAL + "x" * LONGEST_WORD, ["x" * LONGEST_WORD]),
    ],
    ids=ascii,
)
def test_what_is_read(tmp_path: Path, content: str, words: list[str]) -> None:
    assert read_vocabulary(written(tmp_path, content)) == words
    assert read_vocabulary(written(tmp_path, gzip.compress(content.encode()))) == words


EXPECTED = "; expected one word a line, or on every line a word and its count"


@pytest.mark.parametrize(
    ("content", "messages"),
    [
        (SPECIAL, [": has no words; expected a vocabulary with one word a line"]),
        ("a\nb\na\nb\n", [", line 3: 'a' stands in line 1 already", ", line 4: 'b' stands in line 2 already"]),
        ("the 3\n\ndog 2\n \n", [f", line 2: given ''{EXPECTED}", f", line 4: given ' '{EXPECTED}"]),
        (SPECIAL + "the\n<s>\n", [", line 5: '<s>' stands in line 2 already"]),
        ("the\nthe 3\n", [f", line 2: given 'the 3'{EXPECTED}"]),
        ("the 3\ndog\n", [f", line 2: given 'dog'{EXPECTED}"]),
        ("the 3\ndog -1\n", [f", line 2: given 'dog -1'{EXPECTED}"]),
        ("a\nb\u2028c\n", [f", line 2: given 'b\\u2028c'{EXPECTED}"]),
        ("a\nb\0c\n", [", line 2: 'b\\x00c' has a null character"]),
        ("a\n" + "x" * 1001, [f", line 2: '{'x' * 40}...' has 1,001 characters, and a word at most 1,000"]),
    ],
    ids=ascii,
)
def test_what_is_refused(tmp_path: Path, content: str | bytes, messages: list[str]) -> None:
    path = written(tmp_path, content)
    with pytest.raises(UserError) as error:
        read_vocabulary(path)
    assert list(error.value.messages) == [f"{path}{message}" for message in messages]


def test_an_endless_file_is_read_no_further_than_its_most_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("nmt.data.vocabulary.MOST_WORDS", 5)
    assert len(read_vocabulary(written(tmp_path, SPECIAL + "a\nb\nc\nd\ne\n"))) == 5
    with pytest.raises(UserError, match=r"vocab\.en: has more than 5 words, the most that a vocabulary may have"):
        read_vocabulary(written(tmp_path, SPECIAL + "a\nb\nc\nd\ne\nf\n\xff"))


# ---------------------------------------------------------------------------------------------------------------- text

WORDS = ["the", "dog", "a▁b", "▁", "▁x", "<s>", "<pad>", "⁇", "ﬁ", "the@@", "@@", "Ａ", "e\u0301", "\u200b", "'s"]


def test_ids_are_those_of_the_file_behind_the_special_symbols() -> None:
    subwords = made(*WORDS)
    assert subwords.size == len(PIECES) + len(WORDS)
    assert subwords.pieces(range(subwords.size)) == [*PIECES, *(f"{WORD_START}{word}" for word in WORDS)]
    assert subwords.encode(" ".join(WORDS)) == list(range(len(PIECES), subwords.size))
    assert (subwords.of_words, subwords.is_listed, subwords.joiner) == (True, True, "")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_what_the_file_has_and_nothing_like_it(word: str) -> None:
    """Neither normalization nor sentencepiece's marks make one word of another."""
    subwords = made(word)
    assert subwords.encode(word) == [END + 1]
    assert subwords.decode([END + 1]) == word
    others = [f"{word}x", f"x{word}", f"{word}\0", word.swapcase(), *("fi", "A", "é", "a", "</s>", "<unk>", "⁇ ")]
    for other in set(map(str.strip, others)) - {word}:
        assert subwords.encode(other) == [UNKNOWN], other


def test_white_space_is_between_words_only() -> None:
    subwords = made("a", "b")
    assert subwords.encode(" a\u3000b\t\xa0 c\x1ca ") == [4, 5, UNKNOWN, 4]
    assert subwords.encode("") == subwords.encode(" \u2028") == []
    assert subwords.spans(" a\u3000b\t\xa0 ccc ") == [(1, 2), (3, 4), (7, 10)]
    assert subwords.decode([BEGIN, 4, 5, UNKNOWN, UNKNOWN, 4, END, PAD]) == "a b ⁇ ⁇ a"
    assert subwords.decode_marked([UNKNOWN, 4, UNKNOWN], "\ud800") == "\ud800 a \ud800"
    assert subwords.text_parts([UNKNOWN, 4, UNKNOWN]) == ["⁇", " a", " ⁇"]


def test_sentencepiece_alone_reads_the_model() -> None:
    """The bytes are an ordinary model of type word, which other programs can load."""
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(word_model(["the", "dog", "ﬁ"], "@@"))
    assert processor.encode("the ﬁ the cat") == [4, 6, 4, UNKNOWN]
    assert processor.decode([4, 5]) == "the dog"


def test_the_joiner_is_in_the_model() -> None:
    assert [joiner_of(read_model(word_model(["a"], mark))) for mark in ("", "→")] == ["", "→"]
    trained = Subwords.train(["a b"], settings=SubwordsConfig(type="word", size=6))
    assert (trained.is_listed, trained.joiner) == (False, "")
    damaged = word_model(["a"], "@@").replace(b"@@", b"\xff@")
    with pytest.raises(ValueError, match="damaged"):
        Subwords(damaged)


# ------------------------------------------------------------------------------------------------------------ cut text


@pytest.mark.parametrize(
    ("cut", "whole"),
    [
        ("foo@@ bar dog", "foobar dog"),
        ("f@@ o@@ o bar@@", "foo bar"),
        ("a @@ b", "a b"),
        ("a@@ @@ b", "ab"),
        ("a@@@@ b", "a@@b"),
        ("a@@b c", "a@@b c"),
        ("@@", ""),
        ("", ""),
    ],
)
def test_cut_words_are_joined_as_subword_nmt_says(cut: str, whole: str) -> None:
    """By its README: sed -r 's/(@@ )|(@@ ?$)//g'."""
    words = sorted(set(cut.split()))
    subwords = made(*words, joiner="@@")
    assert subwords.decode(subwords.encode(cut)) == whole
    assert subwords.whole_words(cut) == whole
    assert made(*words).decode(made(*words).encode(cut)) == made(*words).whole_words(cut) == cut


def test_random_words_cut_and_joined() -> None:
    random_numbers = random.Random(7)
    for _ in range(200):
        words = ["".join(random_numbers.choices("abß@", k=random_numbers.randint(1, 7))) for _ in range(5)]
        pieces = []
        for word in words:
            at = random_numbers.randrange(len(word))
            pieces += [f"{word[:at]}￭", word[at:]] if at else [word]
        subwords = made(*dict.fromkeys(pieces), joiner="￭")
        assert subwords.decode(subwords.encode(" ".join(pieces))) == " ".join(words)


def test_unknown_words_after_a_cut_one() -> None:
    subwords = made("foo@@", "bar", joiner="@@")
    assert subwords.text_parts([4, UNKNOWN, 5]) == ["foo", "⁇", " bar"]
    assert subwords.decode_marked([4, UNKNOWN, 5], "*") == "foo* bar"
    assert subwords.pieces_of_text([5, 4, 5, 5, 4]) == ["▁bar", "▁foo@@", "bar", "▁bar", "▁foo@@"]
    assert subwords.pieces([4, 5]) == ["▁foo@@", "▁bar"]
