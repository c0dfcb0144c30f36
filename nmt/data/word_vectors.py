"""Pretrained vectors of words, in the text formats of word2vec, fastText and GloVe, for the pieces of a vocabulary.

    2000000 300
    the 0.0231 -0.0170 …

A word and its numbers, separated by single spaces; the first line may say how many words and how many numbers there
are (https://fasttext.cc/docs/en/crawl-vectors.html), or not (https://nlp.stanford.edu/projects/glove). The file is
UTF-8, plain or gzip. It is read as a stream, and only the vectors of pieces are kept, so it may be larger than memory.

A file is one of words or one of pieces, whichever has more of the pieces that begin a word. In a file of words, the
piece "▁dog" has the vector of "dog", and a piece inside words has none, though a word may look the same. In a file of
pieces, as trained on segmented text, each has its own. Special symbols never have one. It knows no models.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import excerpt, read_lines
from nmt.data.segmentation import WORD_START
from nmt.errors import UserError, counted
from nmt.symbols import PIECES

_MOST_MESSAGES = 20  # a file of another kind has a mistake in every line
_COUNT = re.compile("[0-9]{1,18}")


class WordVectors(NamedTuple):
    """The vectors of the pieces that a file has, in the order of its lines."""

    ids: npt.NDArray[np.int64]  # (pieces,)
    values: npt.NDArray[np.float32]  # (pieces, size)


def check_size(path: Path, size: int) -> bool:
    """Whether a file begins with the header; its vectors must have `size` numbers, or UserError is raised."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UserError(f"{path}: is not a regular file, and vectors are read twice; write them to a file")
    line = next(read_lines(path), None)
    if line is None:
        raise UserError(f"{path}: the file is empty; expected lines with a word and its vector")
    fields = line.rstrip(" ").split(" ")
    has_header = len(fields) == 2 and all(_COUNT.fullmatch(field) for field in fields)
    numbers = int(fields[1]) if has_header else len(fields) - 1
    if not has_header and numbers != size:
        at_end = sum(1 for _ in takewhile(_is_number, reversed(fields[1:])))
        if at_end == size:  # behind a word with spaces in it
            return False
        if at_end == 0 or at_end < numbers:
            raise UserError(f"{path}, line 1: {excerpt(line)} is no vector; {_expected(size)}")
    if numbers != size:
        raise UserError(
            f"{path}, line 1: its vectors have {counted(numbers, 'number')}, but model.embedding_size is {size:,}; set "
            f"it to {numbers:,}, or give vectors of that size"
        )
    return has_header


def read_vectors(path: Path, pieces: Sequence[str], *, size: int, largest: float) -> WordVectors:
    """The vectors of `pieces`, a whole vocabulary, in a file whose vectors have `size` numbers each.

    They must be between -largest and largest; the numbers of other words are counted and not looked at. Raises
    UserError with a message for each line that is wrong, for a file with more or fewer lines than its header says, and
    when it has none of the pieces.
    """
    has_header = check_size(path, size)
    rows = _Rows(pieces, size, largest)
    problems: list[str] = []
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        if number == 1 and has_header:
            announced = int(line.split(" ")[0])
            continue
        try:
            rows.add(line, number)
        except ValueError as error:
            problems.append(f"{path}, line {number}: {error}")
            if len(problems) == _MOST_MESSAGES:
                raise UserError(*problems, f"{path}: the lines behind them were not read") from None
    if has_header and number - 1 != announced:
        vectors = counted(number - 1, "vector")
        problems.append(f"{path}: has {vectors}, but its first line says {announced:,}; is it all there?")
    ids, twice = rows.chosen()
    problems += [f"{path}, line {again}: the word of line {line} again; remove one of them" for line, again in twice]
    if not ids and not problems:
        problems.append(f"{path}: has none of the vocabulary's pieces; is it of this language, and in the same case?")
    if problems:
        raise UserError(*problems)
    return WordVectors(np.array(list(ids), dtype=np.int64), np.stack(list(ids.values())))


class _Rows:
    """What was read so far: the vectors of pieces as they stand, and those of words that begin one."""

    def __init__(self, pieces: Sequence[str], size: int, largest: float) -> None:
        self._size, self._largest = size, largest
        self._ids = {piece: number for number, piece in enumerate(pieces) if number >= len(PIECES)}
        self._beginnings = {number for piece, number in self._ids.items() if piece.startswith(WORD_START)}
        self._pieces: dict[int, npt.NDArray[np.float32]] = {}
        self._words: dict[int, npt.NDArray[np.float32]] = {}
        self._lines: dict[tuple[bool, int], int] = {}  # where each stands
        self._twice: list[tuple[bool, int, int]] = []

    def add(self, line: str, number: int) -> None:
        """Take the line of that number. Raises ValueError that says what is wrong with it."""
        line = line.rstrip(" ")
        word, spaces = line.partition(" ")[0], line.count(" ")
        if spaces != self._size:
            word = self._other_word(line, spaces)
        values = None
        for is_word, piece in ((False, word), (True, f"{WORD_START}{word}")):
            piece_id = self._ids.get(piece)
            if piece_id is None:
                continue
            if (first := self._lines.setdefault((is_word, piece_id), number)) != number:
                self._twice.append((is_word, first, number))
                continue
            values = self._vector(line) if values is None else values
            (self._words if is_word else self._pieces)[piece_id] = values

    def _other_word(self, line: str, spaces: int) -> str:
        """The word of a line with another number of spaces than a vector has numbers: one with spaces in it, or none.

        GloVe's have some, such as ". . .".
        """
        if spaces > self._size:
            word, *numbers = line.rsplit(" ", self._size)
            if all(map(_is_number, numbers)) and not any(map(_is_number, word.split(" ")[1:])):
                return word
        raise ValueError(f"{excerpt(line)} has {counted(spaces + 1, 'column')}; {_expected(self._size)}")

    def _vector(self, line: str) -> npt.NDArray[np.float32]:
        word, *fields = line.rsplit(" ", self._size)
        values = []
        for field in fields:
            if not _is_number(field):
                raise ValueError(f"{excerpt(field)} in the vector of {excerpt(word)} is not a number")
            values.append(float(field))
            if not abs(values[-1]) <= self._largest:
                raise ValueError(
                    f"{excerpt(field)} in the vector of {excerpt(word)}: allowed: numbers from {-self._largest:g} to "
                    f"{self._largest:g}"
                )
        return np.array(values, dtype=np.float32)

    def chosen(self) -> tuple[dict[int, npt.NDArray[np.float32]], Iterator[tuple[int, int]]]:
        """The vectors of the pieces by their ids, and the lines of words that stand there twice."""
        of_words = len(self._words) > len(self._beginnings & self._pieces.keys())
        twice = ((first, again) for is_word, first, again in self._twice if is_word == of_words)
        return self._words if of_words else self._pieces, twice


def _expected(size: int) -> str:
    return f"expected a word and {counted(size, 'number')}, with single spaces between them"


def _is_number(text: str) -> bool:
    """Whether it is a number as programs write it; nan and inf are."""
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text
