"""Pretrained vectors: which pieces a file has, in which format, what is refused, and how much memory it takes."""

import gzip
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from nmt.data.word_vectors import check_size, read_vectors
from nmt.errors import UserError
from nmt.symbols import PIECES

Vectors = dict[str, list[float]]
PIECES_OF = [*PIECES, "▁the", "▁dog", "s", "▁", "▁D", "▁<unk>", "<0x41>"]


def written(folder: Path, text: str | bytes, name: str = "vectors.txt") -> Path:
    (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return folder / name


def vectors(path: Path, pieces: list[str] = PIECES_OF, size: int = 2, largest: float = 1e6) -> Vectors:
    ids, values = read_vectors(path, pieces, size=size, largest=largest)
    assert values.shape == (len(ids), size)
    assert values.dtype == np.float32
    return {pieces[number]: row.tolist() for number, row in zip(ids.tolist(), values, strict=True)}


# -------------------------------------------------------------------------------------------------------- what matches


@pytest.mark.parametrize("header", ["", "6 2\n"])
def test_a_file_of_words_has_the_pieces_that_begin_one(tmp_path: Path, header: str) -> None:
    """Neither "s", which is inside words, nor the special symbols; case counts."""
    text = f"{header}the 1 2\ns 3 4\n</s> 5 6\nd 7 8\n<unk> -0.5 1e-3\nDOG 1 1\n"
    path = written(tmp_path, text)
    assert vectors(path) == {"▁the": [1, 2], "▁<unk>": [-0.5, np.float32(1e-3)]}
    assert vectors(written(tmp_path, gzip.compress(text.encode()))) == vectors(path)


def test_a_file_of_pieces_has_every_piece_as_it_stands(tmp_path: Path) -> None:
    path = written(tmp_path, "▁the 1 2\ns 3 4\nthe 5 6\n▁dog 7 8\n▁ 9 10\n</s> 1 1\n")
    assert vectors(path) == {"▁the": [1, 2], "s": [3, 4], "▁dog": [7, 8], "▁": [9, 10]}


def test_a_stray_mark_makes_no_file_of_pieces(tmp_path: Path) -> None:
    """Large files of words have block characters too."""
    path = written(tmp_path, "▁ 9 10\nthe 1 2\ndog 3 4\n")
    assert vectors(path) == {"▁the": [1, 2], "▁dog": [3, 4]}


def test_characters_match_characters(tmp_path: Path) -> None:
    assert vectors(written(tmp_path, "a 1 2\n▁ 3 4\n"), [*PIECES, "▁", "a"]) == {"a": [1, 2], "▁": [3, 4]}


def test_lines_as_the_programs_write_them(tmp_path: Path) -> None:
    """fastText ends lines with a space; GloVe has words with spaces in them, and strange white space is no end."""
    text = "\ufeffthe 1 2 \r\n. . . 3 4\nat name@domain.com 5 6\n\x85 7 8\n\u2028 1 1\n\xa0 1 1\ndog 7 8"
    assert vectors(written(tmp_path, text)) == {"▁the": [1, 2], "▁dog": [7, 8]}


def test_a_number_for_each_unit_of_a_single_one(tmp_path: Path) -> None:
    assert vectors(written(tmp_path, "the 5\n"), size=1) == {"▁the": [5]}


def test_numpy_reads_the_same(tmp_path: Path) -> None:
    """The plain twin: all of the file at once, by another parser."""
    random = np.random.default_rng(7)
    words = [f"w{number}" for number in range(211)]
    matrix = random.normal(size=(211, 13)).astype(np.float32)
    lines = [f"{word} {' '.join(map(repr, row.tolist()))}" for word, row in zip(words, matrix, strict=True)]
    path = written(tmp_path, "211 13\n" + "\n".join(lines) + "\n")
    pieces = [*PIECES, *(f"▁w{number}" for number in range(0, 300, 3)), *(f"w{number}" for number in range(50))]
    ids, values = read_vectors(path, pieces, size=13, largest=1e6)
    table = np.loadtxt(path, skiprows=1, dtype=str)
    rows = {f"▁{row[0]}": row[1:].astype(np.float64).astype(np.float32) for row in table}
    expected = {number: rows[piece] for number, piece in enumerate(pieces) if piece in rows}
    assert sorted(ids.tolist()) == sorted(expected)
    for number, row in zip(ids.tolist(), values, strict=True):
        assert np.array_equal(row, expected[number])


# ----------------------------------------------------------------------------------------------------- what is refused


OUT_OF_RANGE = "a vector has a number that is not from -1e+06 to 1e+06"
NONE = ": has none of the vocabulary's pieces; "


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("", [": the file is empty; "]),
        (
            "the 1 2 3\n",
            [", line 1: its vectors have 3 numbers, separated by single spaces, but model.embedding_size is 2"],
        ),
        ("2 300\nthe 1 2\n", [", line 1: its vectors have 300 numbers"]),
        ("the\t1\t2\n", [", line 1: its vectors have 0 numbers"]),
        (
            "the 1 2\ndog 1\n\n",
            [
                ", line 2: 'dog 1' has 1 number behind a word; expected 2",
                ", line 3: '' has 0 numbers behind a word; expected 2",
            ],
        ),
        ("the 1 x\n", [", line 1: could not convert string to float: 'x'"]),
        ("the nan 1\ndog 1 -inf\n", [f", line 1: {OUT_OF_RANGE}", f", line 2: {OUT_OF_RANGE}"]),
        ("the 1 1e39\n", [f", line 1: {OUT_OF_RANGE}"]),
        ("zebra 1 2\nzebra 1 2\n", [NONE]),
        ("3 2\nthe 1 2\n", [": has 1 vector, but its first line says 3; "]),
        ("1 2\nthe 1 2\ndog 1 2\n", [": has 2 vectors, but its first line says 1; "]),
        (gzip.compress(b"the 1 2\n" * 100, mtime=0)[:-9], [": damaged gzip file "]),
    ],
    ids=ascii,
)
def test_what_is_refused(tmp_path: Path, text: str | bytes, messages: list[str]) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UserError) as error:
        vectors(path)
    for message, start in zip(error.value.messages, messages, strict=True):
        assert message.startswith(f"{path}{start}")


def test_of_several_vectors_of_a_word_the_first_counts(tmp_path: Path) -> None:
    assert vectors(written(tmp_path, "the 1 2\ndog 3 4\nthe 5 6\n")) == {"▁the": [1, 2], "▁dog": [3, 4]}


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing: no such file"):
        check_size(tmp_path / "missing", 2)
    with pytest.raises(UserError, match=r"is a folder, not a file"):
        check_size(tmp_path, 2)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UserError, match=r"pipe: is not a regular file, and is read several times"):
        check_size(tmp_path / "pipe", 2)


def test_memory_is_that_of_the_pieces(tmp_path: Path) -> None:
    """20,000 vectors of 113 numbers would take 9 MB as float32; 100 of them are pieces."""
    numbers = " 0.25" * 113
    path = written(tmp_path, "20000 113\n" + "".join(f"w{number}{numbers}\n" for number in range(20_000)))
    pieces = [*PIECES, *(f"▁w{number}" for number in range(0, 20_000, 200))]
    tracemalloc.start()
    try:
        ids, _ = read_vectors(path, pieces, size=113, largest=1.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(ids) == 100
    assert peak < 4 << 20
